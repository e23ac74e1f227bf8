package bridge

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"isthmus.dev/isthmus/deploy/testbed"
)

// readerAccount is the account that deploy/kubernetes has for hubs: with it one
// reads what a hub needs, and has tokens reviewed.
var readerAccount = []string{`apiVersion: v1
kind: Namespace
metadata:
  name: isthmus
`, `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: isthmus-reader
rules:
- {apiGroups: [""], resources: [services, pods, nodes], verbs: [list, watch]}
- {apiGroups: [discovery.k8s.io], resources: [endpointslices], verbs: [list, watch]}
- {apiGroups: [""], resources: [namespaces], resourceNames: [kube-system], verbs: [list, watch]}
- {apiGroups: [authentication.k8s.io], resources: [tokenreviews], verbs: [create]}
`, `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: isthmus-reader
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: isthmus-reader}
subjects:
- {kind: ServiceAccount, name: isthmus-reader, namespace: isthmus}
`}

// zone is that of a pod: there are three in each site.
func zone(i int) string { return fmt.Sprint("zone-", i%3) }

// kubernetesObjects are the service that is everywhere, the one that is here
// alone, and the pods that answer for both.
func kubernetesObjects(s *Site, vips string) []string {
	objects := []string{
		"apiVersion: v1\nkind: Namespace\nmetadata:\n  name: shop\n",
		"apiVersion: v1\nkind: Namespace\nmetadata:\n  name: istio-system\n",
	}
	for _, p := range podsOf(s) {
		objects = append(objects, p.Manifest())
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
`, name, vips, i, Port), endpointSlice(s, name, len(s.Workload.Addresses)))
	}
	return objects
}

func endpointSlice(s *Site, service string, pods int) string {
	text := fmt.Sprintf(`apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: %[1]s-1
  namespace: shop
  labels: {kubernetes.io/service-name: %[1]s}
addressType: IPv4
ports: [{name: http, port: %[2]d, protocol: TCP}]
endpoints:
`, service, Port)
	for i, address := range s.Workload.Addresses[:pods] {
		text += fmt.Sprintf("- {addresses: [%s], conditions: {ready: true}, zone: %s, targetRef: {kind: Pod, namespace: shop, name: %s}}\n",
			address, zone(i), podName(i))
	}
	return text
}

func podStatuses(s *Site) (all []string) {
	for _, p := range podsOf(s) {
		all = append(all, p.Status())
	}
	return all
}

// podsOf are those of workloads and of gateways.
func podsOf(s *Site) (all []testbed.Pod) {
	at := s.pods()
	for _, name := range slices.Sorted(maps.Keys(at)) {
		account, _, _ := strings.Cut(name, "-")
		labels := "{app: " + account + ", security.istio.io/tlsMode: istio}"
		all = append(all, testbed.Pod{Namespace: "shop", Name: name, Account: account, Labels: labels, Address: at[name]})
	}
	for _, g := range s.Gateways {
		all = append(all, testbed.Pod{
			Namespace: "istio-system", Name: g.Name, Account: g.Account, Labels: "{istio: eastwestgateway}", Address: g.Addresses[0],
		})
	}
	return all
}

// labelledGateway declares gateways as Istio's users do, by a Service.
func labelledGateway(s *Site, gateways int) string {
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
`, s.Network, strings.Join(s.outsides(gateways), ", "))
}

func (s *Site) outsides(gateways int) []string {
	var all []string
	for _, g := range s.Gateways[:gateways] {
		all = append(all, g.Outside)
	}
	return all
}

func registerInConsul(s *Site, service string, pod int) {
	id, node := fmt.Sprint(service, "-", pod), fmt.Sprint("vm-", pod)
	s.Consul.Put("/v1/catalog/register", map[string]any{
		"Node": node, "Address": s.Workload.Addresses[pod],
		"Service": map[string]any{
			"ID": id, "Service": service, "Port": Port,
			"Meta": map[string]string{"protocol": "http"}, "Tags": []string{"security.istio.io/tlsMode|istio"},
		},
		"Check": map[string]any{"Node": node, "CheckID": id, "Name": id, "Status": "passing", "ServiceID": id},
	})
}

// registerGateway lets the hub know a gateway, and the label by which Gateways
// select it: what a gateway reports about itself does not count.
func registerGateway(s *Site, g *Gateway) {
	s.Consul.Put("/v1/catalog/register", map[string]any{
		"Node": "edge-" + g.Name, "Address": g.Addresses[0],
		"Service": map[string]any{
			"ID": g.Name, "Service": "east-west", "Port": 15443,
			"Meta": map[string]string{"protocol": "tcp"}, "Tags": []string{"istio|eastwestgateway"},
		},
	})
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
		manifests = append(manifests, networkManifest(s, len(s.Gateways)))
	}
	return strings.Join(manifests, "---\n")
}

func networkManifest(s *Site, gateways int) string {
	var all []string
	for _, address := range s.outsides(gateways) {
		all = append(all, fmt.Sprintf("{address: %s}", address))
	}
	return fmt.Sprintf(`apiVersion: isthmus.dev/v1
kind: Network
metadata: {name: %s}
spec: {clusters: [%s], gateways: [%s]}
`, s.Network, s.Cluster, strings.Join(all, ", "))
}
