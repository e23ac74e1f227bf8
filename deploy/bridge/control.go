package bridge

import (
	"fmt"
	"testing"

	"isthmus.dev/isthmus/deploy/testbed"
)

// startControl starts the control plane of a site, with what runs there.
func (s *Site) startControl(t testing.TB) {
	t.Helper()
	if s.Network == "n3" {
		s.Consul = testbed.StartConsul(t, testbed.ConsulOptions{Name: s.Cluster, Datacenter: s.Cluster, Namespace: s.control})
		s.Scale(len(s.Workload.Addresses))
		for _, g := range s.Gateways {
			registerGateway(s, g)
		}
		return
	}
	vips := map[string]string{"n1": "10.96.0", "n2": "10.97.0"}[s.Network]
	s.Kube = testbed.StartKube(t, testbed.KubeOptions{Name: s.Cluster, Namespace: s.control, ServiceCIDR: vips + ".0/16"})
	s.reader = testbed.TokenOptions{Namespace: "isthmus", Account: "isthmus-reader"}
	s.Kube.Apply(readerAccount...)
	s.Kube.Apply(kubernetesObjects(s, vips)...)
	s.Kube.ApplyStatus(podStatuses(s)...)
	if s.Network == "n1" {
		s.Kube.Apply(labelledGateway(s, len(s.Gateways)))
	}
}

// Credentials are new ones for the hub, in a kubeconfig.
func (s *Site) Credentials() string {
	return string(testbed.Access{URL: s.Kube.URL, CA: s.Kube.Admin.CA, Token: s.Kube.ServiceAccountToken(s.reader)}.Kubeconfig())
}

// attach makes the site's cluster one of the hub's.
func (w *Topology) attach(t testing.TB, s *Site) {
	t.Helper()
	if s.Consul != nil {
		w.Hub.Apply(t, fmt.Sprintf(`apiVersion: isthmus.dev/v1
kind: Cluster
metadata: {name: %[1]s}
spec:
  provider: Consul
  network: %[2]s
  consul: {address: %[3]q, datacenter: %[1]s, hostname: "{{.Service}}.shop.svc.cluster.local"}
`, s.Cluster, s.Network, s.Consul.URL))
		return
	}
	err := w.Hub.change("attachCluster", "AttachClusterInput", map[string]any{
		"clusterID": s.Cluster, "networkID": s.Network, "kubernetes": map[string]any{"kubeconfig": s.Credentials()},
	})
	if err != nil {
		t.Fatalf("attaching %s: %v", s.Cluster, err)
	}
}

// Rotate gives the hub new credentials of a cluster.
func (w *Topology) Rotate(s *Site) error {
	return w.Hub.change("rotateCluster", "RotateClusterInput", map[string]any{
		"clusterID": s.Cluster, "kubernetes": map[string]any{"kubeconfig": s.Credentials()},
	})
}
