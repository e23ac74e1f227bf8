package bridge

import (
	"fmt"
	"strings"

	"isthmus.dev/isthmus/deploy/testbed"
)

// kubernetesObjects are the service that is everywhere, the one that is here
// alone, and the pod that answers for both.
func kubernetesObjects(s *Site, vips string) []string {
	objects := []string{"apiVersion: v1\nkind: Namespace\nmetadata:\n  name: shop\n", "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: istio-system\n"}
	for _, pod := range s.pods() {
		objects = append(objects, fmt.Sprintf(`apiVersion: v1
kind: Pod
metadata:
  name: %[1]s
  namespace: shop
  labels: {app: %[1]s, security.istio.io/tlsMode: istio}
spec:
  nodeName: node-1
  serviceAccountName: %[1]s
  containers: [{name: main, image: none}]
`, pod.Name))
	}
	for i, name := range []string{"web", "only-" + s.Cluster} {
		objects = append(objects, fmt.Sprintf(`apiVersion: v1
kind: Service
metadata:
  name: %[1]s
  namespace: shop
spec:
  clusterIP: %[2]s.1%[3]d
  selector: {app: web}
  ports: [{name: http, port: %[4]d, targetPort: %[4]d}]
`, name, vips, i, Port), fmt.Sprintf(`apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: %[1]s-1
  namespace: shop
  labels: {kubernetes.io/service-name: %[1]s}
addressType: IPv4
ports: [{name: http, port: %[2]d, protocol: TCP}]
endpoints:
- {addresses: [%[3]s], conditions: {ready: true}, targetRef: {kind: Pod, namespace: shop, name: web}}
`, name, Port, s.Workload.Address))
	}
	return objects
}

func (s *Site) pods() []*Pod { return []*Pod{s.Caller, s.Workload} }

func podStatuses(s *Site) []string {
	var all []string
	for _, pod := range s.pods() {
		all = append(all, fmt.Sprintf(`apiVersion: v1
kind: Pod
metadata:
  name: %s
  namespace: shop
status: {phase: Running, conditions: [{type: Ready, status: "True"}], podIP: %[2]s, podIPs: [{ip: %[2]s}]}
`, pod.Name, pod.Address))
	}
	return all
}

// labelledGateway declares a gateway as Istio's users do, by a Service.
func labelledGateway(s *Site) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Service
metadata:
  name: istio-eastwestgateway
  namespace: istio-system
  labels: {topology.istio.io/network: %s, istio: eastwestgateway}
spec:
  clusterIP: 10.96.0.200
  externalIPs: [%s]
  ports: [{name: tls, port: 15443, targetPort: 15443}]
`, s.Network, s.Gateway.Address)
}

func registerInConsul(dc *testbed.Consul, s *Site) {
	for _, service := range []string{"web", "only-" + s.Cluster} {
		dc.Put("/v1/catalog/register", map[string]any{
			"Node": "vm-1", "Address": s.Workload.Address,
			"Service": map[string]any{
				"ID": service, "Service": service, "Port": Port,
				"Meta": map[string]string{"protocol": "http"}, "Tags": []string{"security.istio.io/tlsMode|istio"},
			},
			"Check": map[string]any{"Node": "vm-1", "CheckID": service, "Name": service, "Status": "passing", "ServiceID": service},
		})
	}
}

// meshManifests declare the gateways that no Service does, and what every
// gateway lets in.
func meshManifests(sites []*Site) string {
	manifests := []string{`apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: east-west, namespace: istio-system}
spec:
  selector: {istio: eastwestgateway}
  servers:
  - {port: {number: 15443, name: tls, protocol: TLS}, hosts: ["*.local"], tls: {mode: AUTO_PASSTHROUGH}}
`}
	for _, s := range sites[1:] {
		manifests = append(manifests, fmt.Sprintf(`apiVersion: isthmus.dev/v1
kind: Network
metadata: {name: %s}
spec: {clusters: [%s], gateways: [{address: %s}]}
`, s.Network, s.Cluster, s.Gateway.Address))
	}
	return strings.Join(manifests, "---\n")
}
