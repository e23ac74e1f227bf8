package xds

import (
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"testing"
	"time"

	networking "istio.io/api/networking/v1"
	"pgregory.net/rapid"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/xds/envoy"
)

// testStream is a stream without a connection, and a client that asks for what its
// resources refer to and accepts everything.
type testStream struct {
	*stream
	now   time.Time
	asked map[envoy.Type][]string
	heard func(*response) // each response that comes; nil: nobody looks
}

func newTestStream(s *Server, n envoy.Node) *testStream {
	f := &testStream{
		stream: &stream{
			server: s, client: xdsClient{server: s, node: n, log: slog.New(slog.DiscardHandler), trusted: true},
			wire: wire{delta: true}, held: map[envoy.Type][]groupKey{},
			refused: map[string]struct{}{},
		},
		now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), asked: map[envoy.Type][]string{},
	}
	if s.options.Secrets != nil {
		f.renewed = s.options.Secrets.Changed()
	}
	f.state = f.newState()
	f.state.handle(request{kind: envoy.ClusterType}, f.now)
	f.state.handle(request{kind: envoy.ListenerType}, f.now)
	return f
}

// follow takes everything that there is in the latest snapshot.
func (f *testStream) follow() {
	select {
	case <-f.renewed:
		f.renew(f.now)
	default:
	}
	f.state.collect(f.state.latest(), f.now)
	for more := true; more; {
		more = f.subscribe()
		for range 3 { // past what waits for an answer or for its time
			for r, _ := f.state.next(f.now); r != nil; r, _ = f.state.next(f.now) {
				if f.heard != nil {
					f.heard(r)
				}
				f.state.handle(request{kind: r.kind, nonce: r.nonce}, f.now)
				f.subscribe()
				more = true
			}
			f.now = f.now.Add(time.Minute)
		}
	}
}

// subscribe asks by name for what the clusters and listeners refer to.
func (f *testStream) subscribe() (changed bool) {
	wanted := map[envoy.Type]map[string]bool{envoy.EndpointType: {}, envoy.RouteType: {}, envoy.SecretType: {}}
	for _, kind := range []envoy.Type{envoy.ClusterType, envoy.ListenerType} {
		for _, r := range f.state.subs[kind].client.resources() {
			for to, names := range map[envoy.Type][]string{
				envoy.EndpointType: r.refs.assignments, envoy.RouteType: r.refs.routes,
				envoy.SecretType: r.refs.secrets,
			} {
				for _, name := range names {
					wanted[to][name] = true
				}
			}
		}
	}
	for kind, names := range wanted {
		now := slices.Sorted(maps.Keys(names))
		r := request{kind: kind}
		for _, name := range now {
			if !slices.Contains(f.asked[kind], name) {
				r.names = append(r.names, name)
			}
		}
		for _, name := range f.asked[kind] {
			if !names[name] {
				r.unsubscribe = append(r.unsubscribe, name)
			}
		}
		f.asked[kind] = now
		if len(r.names)+len(r.unsubscribe) > 0 {
			f.state.handle(r, f.now)
			changed = true
		}
	}
	return changed
}

// has is everything that the client was told to have, with its versions.
func (f *testStream) has() map[string]string {
	all := map[string]string{}
	for kind, sub := range f.state.subs {
		for _, r := range sub.client.resources() {
			all[string(kind)+" "+r.name] = r.version
		}
	}
	return all
}

// followedNodes are a sidecar, gateways that had to prove who they are, and routers
// in sni-dnat mode, in the network of their cluster or another.
func followedNodes(t testing.TB) []envoy.Node {
	side, gateway := sidecarNode(t), routerNode(t)
	side.Labels = map[string]string{"app": "a"}
	gateway.Labels = map[string]string{"istio": "ingress"}
	proven := gateway
	proven.Proven = true
	bridge := gateway
	bridge.RouterMode, bridge.Network, bridge.Identity = envoy.SNIDNAT, "n2", true
	agent := side
	agent.Identity, agent.Agent, agent.DNSCapture = true, true, true
	return []envoy.Node{side, gateway, proven, bridge, agent}
}

// TestR32StreamsHaveWhatNewStreamsGet: for random histories, whatever is derived of a
// node, its facets, what registries know of it and its gateway's secrets, is derived
// again when what it was derived from changes.
func TestR32StreamsHaveWhatNewStreamsGet(t *testing.T) {
	nodes := followedNodes(t)
	rapid.Check(t, func(t *rapid.T) {
		a := federation.NewAggregate(nil)
		v := newFakeSecrets()
		v.keep(webSecret(false), "one")
		s := New(Options{Snapshots: a, Fleet: fleet.New(), Logger: slog.New(slog.DiscardHandler), Secrets: v})
		operator, registry := a.Open(federation.ShardKey{Provider: federation.Operator}), a.Open(source1)
		operator.Update(clusterIn("n1"))
		operator.Update(servingGateway())
		registry.Update(federation.Edit{Services: service("a", 1)})
		var open []*testStream
		for _, n := range nodes {
			open = append(open, newTestStream(s, n))
		}
		for range rapid.IntRange(1, 8).Draw(t, "steps") {
			drawStep(t, operator, registry, v)
			for _, f := range open {
				f.follow()
			}
		}
		for i, f := range open {
			fresh := newTestStream(s, nodes[i])
			fresh.follow()
			if got, want := f.has(), fresh.has(); !maps.Equal(got, want) {
				t.Fatalf("node %d has\n%s\na new stream gets\n%s", i, lines(got), lines(want))
			}
			fresh.close()
		}
		for _, f := range open {
			f.close()
		}
		if n := s.views.Len() + len(s.groups); n > 0 {
			t.Fatalf("%d views and groups of streams that have ended are kept", n)
		}
	})
}

// servingGateway has a secret from the start, with the authorities of its clients.
func servingGateway() federation.Edit {
	key := federation.ObjectKey{Group: "networking.istio.io", Kind: "Gateway", Namespace: "shop", Name: "serving"}
	spec := &networking.Gateway{Selector: map[string]string{"istio": "ingress"}, Servers: []*networking.Server{{
		Port: &networking.Port{Number: 8443, Name: "https", Protocol: "HTTPS"}, Hosts: []string{"*"},
		Tls: &networking.ServerTLSSettings{Mode: networking.ServerTLSSettings_MUTUAL, CredentialName: "web"},
	}}}
	o := &federation.Object{Key: key, Digest: "1", Spec: spec, ProxyLabels: []string{"istio"}}
	return federation.Edit{Objects: federation.Delta[federation.ObjectKey,
		*federation.Object]{Set: map[federation.ObjectKey]*federation.Object{key: o}}}
}

func lines(m map[string]string) (text string) {
	for _, k := range slices.Sorted(maps.Keys(m)) {
		text += fmt.Sprintf("  %s %s\n", k, m[k])
	}
	return text
}

func clusterIn(network federation.NetworkID) federation.Edit {
	return federation.Edit{Clusters: federation.Delta[federation.ClusterID, federation.ClusterSpec]{
		Set: map[federation.ClusterID]federation.ClusterSpec{"c1": {Provider: federation.Mock, Network: network}},
	}}
}

// drawStep changes something of which a node's view, or what is made for it, depends.
func drawStep(t *rapid.T, operator, registry *federation.Writer, secrets *fakeSecrets) {
	object := func(kind federation.Kind, namespace, name string, spec any, labels ...string) {
		key := federation.ObjectKey{Group: kind.Group, Kind: kind.Name, Namespace: namespace, Name: name}
		if kind.Group != federation.MeshGroup {
			key.Cluster = rapid.SampledFrom([]federation.ClusterID{"", "", "c1", "c2"}).Draw(t, "of cluster")
		}
		if rapid.IntRange(0, 3).Draw(t, "gone") == 0 {
			operator.Update(federation.Edit{Objects: federation.Delta[federation.ObjectKey, *federation.Object]{Gone: []federation.ObjectKey{key}}})
			return
		}
		o := &federation.Object{Key: key, Digest: fmt.Sprint(spec), Spec: spec, Names: namesOf(spec), ProxyLabels: labels}
		operator.Update(federation.Edit{Objects: federation.Delta[federation.ObjectKey,
			*federation.Object]{Set: map[federation.ObjectKey]*federation.Object{key: o}}})
	}
	istio := func(name string) federation.Kind { return federation.Kind{Group: "networking.istio.io", Name: name} }
	network := federation.NetworkID(rapid.SampledFrom([]string{"n1", "n2"}).Draw(t, "network"))
	name := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "name")
	switch rapid.IntRange(0, 9).Draw(t, "step") {
	case 0:
		operator.Update(clusterIn(network))
	case 1:
		object(federation.NetworkKind, "", string(network), drawNetwork(t))
	case 2:
		namespaces := rapid.SampledFrom([][]string{nil, {"shop"}, {"*"}}).Draw(t, "gatewayNamespaces")
		object(federation.MeshSettingsKey.Of(), "", federation.MeshSettingsKey.Name, &federation.MeshSettings{GatewayNamespaces: namespaces})
	case 3:
		host := rapid.SampledFrom([]string{"*/*", "./*", "shop/a.shop.svc.cluster.local"}).Draw(t, "egress")
		spec := &networking.Sidecar{Egress: []*networking.IstioEgressListener{{Hosts: []string{host}}}}
		if rapid.Bool().Draw(t, "selects") {
			spec.WorkloadSelector = &networking.WorkloadSelector{Labels: map[string]string{"app": name}}
		}
		object(istio("Sidecar"), "shop", name, spec, "app")
	case 4:
		object(istio("Gateway"), "infra", name, drawGateway(t), "istio")
	case 5:
		object(istio("DestinationRule"), "shop", name, drawDestinationRule(t, name))
	case 6:
		registry.Update(drawWorkload(t, network))
	case 7:
		delta := service(name, rapid.IntRange(1, 3).Draw(t, "endpoint"))
		if rapid.IntRange(0, 3).Draw(t, "service gone") == 0 {
			delta = serviceDelta{Gone: []federation.ServiceKey{key(name)}}
		}
		registry.Update(federation.Edit{Services: delta})
	case 8:
		object(istio("VirtualService"), "shop", name, drawVirtualService(t, name), "app")
	case 9:
		ref := webSecret(rapid.Bool().Draw(t, "authorities"))
		ref.Name = rapid.SampledFrom([]string{"web", "other"}).Draw(t, "secret")
		secrets.keep(ref, rapid.SampledFrom([]string{"one", "three", "seven"}).Draw(t, "content"))
	}
}

// namesOf are the names under which builders look for the object.
func namesOf(spec any) []string {
	switch s := spec.(type) {
	case *networking.DestinationRule:
		return []string{s.Host}
	case *networking.VirtualService:
		names := slices.Clone(s.Hosts)
		for _, gateway := range s.Gateways {
			if gateway != "mesh" {
				names = append(names, "gateway:"+gateway)
			}
		}
		return names
	}
	return nil
}

func drawDestinationRule(t *rapid.T, name string) *networking.DestinationRule {
	rule := &networking.DestinationRule{Host: name + ".shop.svc.cluster.local", ExportTo: []string{"."}}
	if rapid.Bool().Draw(t, "subset") {
		rule.Subsets = []*networking.Subset{{Name: "v1", Labels: map[string]string{"v": "1"}}}
	}
	return rule
}

// drawVirtualService routes a host of the mesh, of a gateway or of both, for all workloads or some.
func drawVirtualService(t *rapid.T, name string) *networking.VirtualService {
	to := &networking.Destination{
		Host:   rapid.SampledFrom([]string{"a", "b"}).Draw(t, "to") + ".shop.svc.cluster.local",
		Subset: rapid.SampledFrom([]string{"", "v1"}).Draw(t, "to subset"),
	}
	route := &networking.HTTPRoute{Route: []*networking.HTTPRouteDestination{{Destination: to}}}
	if rapid.Bool().Draw(t, "for some") {
		route.Match = []*networking.HTTPMatchRequest{{SourceLabels: map[string]string{"app": rapid.SampledFrom([]string{"a", "b"}).Draw(t,
			"source")}}}
	}
	return &networking.VirtualService{
		Hosts:    []string{rapid.SampledFrom([]string{name + ".shop.svc.cluster.local", "*.example.com"}).Draw(t, "host")},
		Gateways: rapid.SampledFrom([][]string{nil, {"infra/a"}, {"mesh", "infra/b"}}).Draw(t, "gateways"),
		Http:     []*networking.HTTPRoute{route},
	}
}

func drawNetwork(t *rapid.T) *federation.NetworkObject {
	o := &federation.NetworkObject{}
	if rapid.Bool().Draw(t, "cidr") {
		o.CIDRs = []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")}
	}
	if rapid.Bool().Draw(t, "clusters") {
		o.Clusters = []federation.ClusterID{"c1"}
	}
	return o
}

func drawGateway(t *rapid.T) *networking.Gateway {
	g := &networking.Gateway{Servers: []*networking.Server{{
		Port: &networking.Port{Number: 443, Name: "https", Protocol: "HTTPS"}, Hosts: []string{"*"},
		Tls: &networking.ServerTLSSettings{
			Mode: rapid.SampledFrom([]networking.ServerTLSSettings_TLSmode{
				networking.ServerTLSSettings_SIMPLE,
				networking.ServerTLSSettings_AUTO_PASSTHROUGH,
			}).Draw(t, "mode"),
			CredentialName: rapid.SampledFrom([]string{"web", "other"}).Draw(t, "credential"),
		},
	}}}
	if rapid.IntRange(0, 3).Draw(t, "selector") > 0 {
		g.Selector = map[string]string{"istio": rapid.SampledFrom([]string{"ingress", "another"}).Draw(t, "istio")}
	}
	return g
}

// drawWorkload has a workload come to an address of one of the nodes, or go.
func drawWorkload(t *rapid.T, network federation.NetworkID) federation.Edit {
	name := rapid.SampledFrom([]string{"web-1", "gw", "stranger"}).Draw(t, "workload")
	key := federation.WorkloadKey{Namespace: "shop", Name: name}
	if rapid.IntRange(0, 3).Draw(t, "workload gone") == 0 {
		return federation.Edit{Workloads: federation.Delta[federation.WorkloadKey, *federation.Workload]{Gone: []federation.WorkloadKey{key}}}
	}
	address := rapid.SampledFrom([]string{"10.1.0.8", "10.1.0.9", "10.2.0.1"}).Draw(t, "address")
	w := &federation.Workload{Addresses: []netip.Addr{netip.MustParseAddr(address)}, Network: network, Labels: map[string]string{
		"app": rapid.SampledFrom([]string{"a", "b"}).Draw(t, "app"), "istio": rapid.SampledFrom([]string{"ingress", "another"}).Draw(t, "is"),
	}}
	return federation.Edit{Workloads: federation.Delta[federation.WorkloadKey,
		*federation.Workload]{Set: map[federation.WorkloadKey]*federation.Workload{key: w}}}
}

// TestR32RoutersFollowTheirClustersNetwork: a router in sni-dnat mode that no registry
// knows serves as soon as its cluster is in the network that it says.
func TestR32RoutersFollowTheirClustersNetwork(t *testing.T) {
	a := federation.NewAggregate(nil)
	operator := a.Open(federation.ShardKey{Provider: federation.Operator})
	operator.Update(clusterIn("n1"))
	a.Open(source1).Update(federation.Edit{Services: service("web", 1)})
	n := routerNode(t)
	n.RouterMode, n.Network = envoy.SNIDNAT, "n2"
	n.Namespace, n.Name = "istio-system", "gw.istio-system"
	f := newTestStream(New(Options{Snapshots: a, Fleet: fleet.New(), Logger: slog.New(slog.DiscardHandler)}), n)
	f.follow()
	passes := string(envoy.ClusterType) + " outbound_.80_._.web.shop.svc.cluster.local"
	if _, serves := f.has()[passes]; serves {
		t.Fatal("it serves a network that its cluster is not in")
	}
	operator.Update(clusterIn("n2"))
	f.follow()
	if _, serves := f.has()[passes]; !serves {
		t.Errorf("its cluster is in n2, and it has only\n%s", lines(f.has()))
	}
}
