package envoy_test

import (
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy"
	"isthmus.dev/isthmus/xds/xdstest"
)

const (
	istiodAt    = "10.78.0.6"
	ofIstiod    = "defaultProviders: {metrics: [prometheus]}\n"
	twoServices = `apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {clusterIP: 10.96.0.10, selector: {app: front}, ports: [{name: http, port: 80}]}
---
apiVersion: v1
kind: Service
metadata: {name: db, namespace: shop}
spec: {clusterIP: 10.96.0.11, ports: [{name: tcp, port: 3306}]}
---
apiVersion: v1
kind: Pod
metadata:
  name: web-5c9f-abcde
  namespace: shop
  generateName: web-5c9f-
  labels: {app: front, version: v1, pod-template-hash: 5c9f}
  ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web-5c9f, uid: a, controller: true}]
spec: {containers: [{name: web, image: web}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web, namespace: shop, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
endpoints: [{addresses: [10.7.0.9], conditions: {ready: true}, targetRef: {kind: Pod, name: web-5c9f-abcde, namespace: shop}}]
ports: [{name: http, port: 80, protocol: TCP}]
`
)

// TestU25IstiodSendsTheSameFilters to a proxy that says the same of itself: names, types and configurations, and their places
// in chains of each kind.
func TestU25IstiodSendsTheSameFilters(t *testing.T) {
	t.Parallel()
	network, inside := testbed.NewNetwork(t, "mesh", "10.78.0.0/24"), testbed.NewNamespace(t, "istiod")
	inside.Join(network, istiodAt)
	kube := testbed.StartKube(t, testbed.KubeOptions{Name: "c1", Namespace: inside})
	kube.Apply("apiVersion: v1\nkind: Namespace\nmetadata:\n  name: shop\n")
	kube.Apply(strings.Split(twoServices, "---\n")...)
	kube.ApplyStatus("apiVersion: v1\nkind: Pod\nmetadata: {name: web-5c9f-abcde, namespace: shop}\nstatus: {phase: Running, podIP: 10.7.0.9, podIPs: [{ip: 10.7.0.9}]}\n")
	testbed.StartIstiod(t, testbed.IstiodOptions{
		Namespace: inside, Address: istiodAt, Kube: kube, CA: testbed.NewAuthority(t, "mesh").Folder(t), Mesh: ofIstiod, Filters: true,
	})
	n := &corev3.Node{
		Id: "sidecar~10.7.0.9~web-5c9f-abcde.shop~shop.svc.cluster.local",
		Metadata: fields(t, map[string]any{
			"CLUSTER_ID": "Kubernetes", "NAMESPACE": "shop", "ISTIO_VERSION": "1.32.0", "INTERCEPTION_MODE": "REDIRECT",
			"WORKLOAD_IDENTITY_SOCKET_FILE": "socket",
		}),
		Extensions: []*corev3.Extension{{Name: "envoy.filters.http.istio_stats"}, {Name: "envoy.filters.http.peer_metadata"}},
	}
	workload := at("10.7.0.9", 80)
	workload.Workload, workload.Labels = "shop/web-5c9f-abcde", map[string]string{"app": "front", "version": "v1", "pod-template-hash": "5c9f"}
	shop, db := web(workload), tcp(3306, federation.TCP, "10.96.0.11/32")
	shop.VIPs = vips("10.96.0.10/32")
	s := newFixture().attach("Kubernetes", "").say("Kubernetes", webKey, shop).say("Kubernetes", key("db.shop.svc.cluster.local"), db).snapshot
	said, err := envoy.ParseNode(n)
	if err != nil {
		t.Fatal(err)
	}
	ours := map[string]map[string]bool{}
	for _, typ := range []envoy.Type{envoy.ClusterType, envoy.EndpointType, envoy.ListenerType} {
		for _, r := range build(t, typ, said, s) {
			noteFilters(t, ours, r.message)
		}
	}
	testbed.WaitFor(t, time.Minute, "istiod to send the filters that the hub sends", func() error {
		theirs, err := filtersOfIstiod(t, inside, n)
		for _, place := range slices.Sorted(maps.Keys(ours)) {
			if err == nil && !maps.Equal(theirs[place], ours[place]) {
				err = fmt.Errorf("%s: istiod has\n%s\nthe hub\n%s", place, sortedLines(theirs[place]), sortedLines(ours[place]))
			}
		}
		return err
	})
}

// sortedLines is for messages.
func sortedLines(set map[string]bool) string {
	return strings.Join(slices.Sorted(maps.Keys(set)), "\n")
}

// filtersOfIstiod asks istiod as the proxy would.
func filtersOfIstiod(t *testing.T, at *testbed.Namespace, n *corev3.Node) (map[string]map[string]bool, error) {
	conn, err := grpc.NewClient("passthrough:///"+istiodAt+":15010", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, to string) (net.Conn, error) { return at.DialContext(ctx, "tcp", to) }))
	if err != nil {
		return nil, fmt.Errorf("connecting: %w", err)
	}
	defer conn.Close()
	client, err := xdstest.Open(t.Context(), conn, xdstest.Options{Node: n})
	if err != nil {
		return nil, fmt.Errorf("connecting: %w", err)
	}
	defer client.Close()
	found := map[string]map[string]bool{}
	for _, typ := range []string{xdstest.CDS, xdstest.EDS, xdstest.LDS} {
		names := map[string][]string{xdstest.EDS: {"outbound|80||web.shop.svc.cluster.local"}}[typ]
		if err := client.Send(xdstest.Request{Type: typ, Names: names}); err != nil {
			return nil, fmt.Errorf("asking: %w", err)
		}
		for got := ""; got != typ; {
			r, err := client.Receive(t.Context())
			if err != nil {
				return nil, fmt.Errorf("waiting: %w", err)
			}
			got = r.Type
			for _, packed := range r.Resources {
				m, err := packed.UnmarshalNew()
				if err != nil {
					return nil, fmt.Errorf("reading what istiod sends: %w", err)
				}
				noteFilters(t, found, m)
			}
		}
	}
	return found, nil
}

// noteFilters adds Istio's filters of a cluster or listener, as one text for each chain, by the kind of the chain, and the services that
// the filters know by a cluster.
func noteFilters(t *testing.T, found map[string]map[string]bool, m proto.Message) {
	t.Helper()
	note := func(place string, filters []string) {
		if found[place] == nil {
			found[place] = map[string]bool{}
		}
		found[place][strings.Join(filters, " ")] = true
	}
	switch m := m.(type) {
	case *clusterv3.Cluster:
		var filters []string
		for _, f := range m.GetFilters() {
			filters = appendIstios(t, filters, f.GetName(), f.GetTypedConfig())
		}
		if strings.HasPrefix(m.GetName(), "outbound|80||web.") || strings.HasPrefix(m.GetName(), "outbound|3306||db.") {
			note("cluster "+m.GetName(), filters)
		}
		if services := m.GetMetadata().GetFilterMetadata()["istio"].GetFields()["services"]; services != nil {
			note("services of cluster "+m.GetName(), []string{fmt.Sprintf("%q", marshal(t, services))})
		}
	case *endpointv3.ClusterLoadAssignment:
		for _, group := range m.GetEndpoints() {
			for _, e := range group.GetLbEndpoints() {
				note("workload", []string{e.GetMetadata().GetFilterMetadata()["istio"].GetFields()["workload"].GetStringValue()})
			}
		}
	case *listenerv3.Listener:
		for _, chain := range append(slices.Clone(m.GetFilterChains()), m.GetDefaultFilterChain()) {
			kind, filters := istiosOfChain(t, chain)
			if kind != "" {
				note(m.GetTrafficDirection().String()+" "+kind, filters)
			}
		}
	}
}

// istiosOfChain are Istio's filters of a chain, those for requests after those for connections.
func istiosOfChain(t *testing.T, chain *listenerv3.FilterChain) (kind string, filters []string) {
	t.Helper()
	if len(chain.GetFilters()) == 0 {
		return "", nil
	}
	kind = "connections"
	for _, f := range chain.GetFilters() {
		filters = appendIstios(t, filters, f.GetName(), f.GetTypedConfig())
		manager := &hcmv3.HttpConnectionManager{}
		if !f.GetTypedConfig().MessageIs(manager) {
			continue
		}
		if err := f.GetTypedConfig().UnmarshalTo(manager); err != nil {
			t.Fatal(err)
		}
		kind = "requests"
		for _, f := range manager.GetHttpFilters() {
			if f.GetName() == "envoy.filters.http.router" {
				filters = append(filters, f.GetName())
			}
			filters = appendIstios(t, filters, f.GetName(), f.GetTypedConfig())
		}
	}
	return kind, filters
}

func appendIstios(t *testing.T, filters []string, name string, config *anypb.Any) []string {
	t.Helper()
	if name != "istio.stats" && name != "istio.metadata_exchange" && name != "envoy.filters.http.grpc_stats" {
		return filters
	}
	m, err := config.UnmarshalNew()
	if err != nil {
		t.Fatal(err)
	}
	return append(filters, fmt.Sprintf("%s %s %q", name, config.GetTypeUrl(), marshal(t, m)))
}
