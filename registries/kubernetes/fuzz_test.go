package kubernetes

import (
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"isthmus.dev/isthmus/federation"
)

// wild is a cluster as a hostile API server may send it.
type wild struct {
	Services  []corev1.Service
	Slices    []discoveryv1.EndpointSlice
	Pods      []corev1.Pod
	Nodes     []corev1.Node
	Namespace corev1.Namespace
}

func (w *wild) model() *model {
	m := newModel("")
	for i := range w.Services {
		m.set(parseService(&w.Services[i], "cluster.local"))
	}
	for i := range w.Slices {
		m.set(parseSlice(&w.Slices[i]))
	}
	for i := range w.Pods {
		m.set(parsePod(&w.Pods[i]))
	}
	for i := range w.Nodes {
		m.set(parseNode(&w.Nodes[i]))
	}
	m.set(parseNamespace(&w.Namespace))
	return m
}

// FuzzTranslate: nothing that a server sends panics, and what comes out holds
// what readers rely on.
func FuzzTranslate(f *testing.F) {
	f.Add([]byte(`{"Services":[{"metadata":{"name":"web","namespace":"shop"},"spec":{"clusterIPs":["10.0.0.1","None"],"ports":[{"port":80},{"name":"http","port":80}]}}],
"Slices":[{"metadata":{"name":"s","namespace":"shop","labels":{"kubernetes.io/service-name":"web"}},"addressType":"IPv4","ports":[{"name":"http","port":70000}],"endpoints":[{"addresses":["10.0.0.01"]},{"addresses":["10.1.1.1"],"zone":"a/b","targetRef":{"kind":"Pod","name":"p"}}]}],
"Pods":[{"metadata":{"name":"p","namespace":"shop"},"spec":{"containers":[{"readinessProbe":{"httpGet":{"port":"x"}}}]},"status":{"podIP":"10.1.1.1"}}],"Nodes":[{"metadata":{"name":"n"}}]}`))
	f.Add([]byte(`{"Services":[{"spec":{"type":"ExternalName","externalName":"...","ports":[{"port":-1,"protocol":"SCTP"}]}}],"Slices":[{"addressType":"FQDN"}],"Namespace":{"metadata":{"labels":{"topology.istio.io/network":"\u0000"}}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var in wild
		if json.Unmarshal(data, &in) != nil {
			return
		}
		m := in.model()
		e := full(m)
		for k, s := range e.Services.Set {
			wantSound(t, k, s)
		}
		for name, p := range e.Problems.Set {
			if p.Code == "" || p.Object == "" || p.Message == "" || strings.ContainsRune(p.Message, 0) {
				t.Errorf("problem %q: %+v", name, p)
			}
		}
		for i := range in.Services {
			m.remove(kindServices, key{Namespace: in.Services[i].Namespace, Name: in.Services[i].Name})
		}
		if left := full(m); len(left.Services.Set) != 0 {
			t.Errorf("left: %v", left.Services.Set)
		}
	})
}

func wantSound(t *testing.T, k federation.ServiceKey, s *federation.Shard) {
	t.Helper()
	if string(k.Hostname) != strings.ToLower(string(k.Hostname)) {
		t.Errorf("%s is not lower case", k)
	}
	names := map[string]bool{}
	for _, p := range s.Ports {
		if p.Number == 0 || names[p.Name] || p.Name == "" && len(s.Ports) > 1 && names[""] {
			t.Errorf("%s has the port %+v", k, p)
		}
		names[p.Name] = true
	}
	for _, v := range s.VIPs {
		if !v.IsValid() || !v.IsSingleIP() {
			t.Errorf("%s has the VIP %s", k, v)
		}
	}
	for _, e := range s.Endpoints {
		ip, isIP := e.Address.IP()
		host, isHost := e.Address.Host()
		if isIP == isHost || isIP && ip.Zone() != "" || isHost && !dnsName(host) || e.Network == "" || e.Health == "" {
			t.Errorf("%s has the endpoint %+v", k, e)
		}
		for _, p := range e.Ports {
			if p.Number == 0 {
				t.Errorf("%s has the endpoint port %+v", k, p)
			}
		}
	}
}
