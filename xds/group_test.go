package xds

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"pgregory.net/rapid"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy"
	"isthmus.dev/isthmus/xds/envoy/check"
)

// A group that followed every change holds the bytes that one made from nothing
// holds, and its log names every resource that changed.
func TestPropertyIncrementalEqualsFromNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := fixture{t: t, s: federation.Empty(), shown: map[*group]map[string]string{}, at: map[*group]uint64{}}
		w.open()
		for range rapid.IntRange(1, 10).Draw(t, "edits") {
			w.s, _ = federation.Next(w.s, w.edit())
			if rapid.Bool().Draw(t, "look") {
				w.look()
			}
		}
		w.look()
	})
}

type fixture struct {
	t      *rapid.T
	s      *federation.Snapshot
	groups []*group
	shown  map[*group]map[string]string // as a stream that follows the log knows it
	at     map[*group]uint64
}

func (w *fixture) open() {
	w.openFor("sidecar~10.0.0.1~a.n1~n1.svc.cluster.local", map[string]any{"CLUSTER_ID": "c1", "NAMESPACE": "n1", "HTTP_PROXY_PORT": "15080"})
	w.openFor("sidecar~10.0.0.2~b.n1~svc", map[string]any{"CLUSTER_ID": "c1", "NAMESPACE": "n1", "GENERATOR": "grpc"})
	w.openFor("sidecar~10.0.0.3~d.n2~n2.svc.cluster.local", map[string]any{"CLUSTER_ID": "c2", "NAMESPACE": "n2", "DNS_CAPTURE": "true"})
	w.openFor("router~10.0.0.4~gw.istio-system~istio-system.svc.cluster.local",
		map[string]any{"CLUSTER_ID": "c1", "NAMESPACE": "istio-system", "ROUTER_MODE": "sni-dnat"})
}

func (w *fixture) openFor(id string, fields map[string]any) {
	metadata, _ := structpb.NewStruct(fields)
	n, err := envoy.ParseNode(&corev3.Node{Id: id, Metadata: metadata})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, kind := range pushOrder {
		for _, f := range facetsWithRules(kind, n) {
			g := newGroup(kind, f, envoyBuilder)
			g.failed = func(_ envoy.Type, name string, err error) { w.t.Fatalf("%s: %v", name, err) }
			w.groups = append(w.groups, g)
			w.shown[g] = map[string]string{}
		}
	}
}

// look brings every group up and compares.
func (w *fixture) look() {
	for _, g := range w.groups {
		g.sync(w.s)
		if rapid.Bool().Draw(w.t, "prepare") {
			g.prepare(slices.Values(g.list()))
			if !g.kind.Has(envoy.BuiltInParts) && !isBuilt(g) {
				w.t.Fatalf("%s: a name is not built", g.kind)
			}
		}
		w.bookkeeping(g)
		shown := w.shown[g]
		update := func(name string) {
			if r := g.get(name); r != nil {
				shown[name] = r.version
			} else {
				delete(shown, name)
			}
		}
		changed, now, ok := g.since(w.at[g])
		for _, e := range changed {
			update(e.name)
		}
		if _, read := w.at[g]; !read || !ok {
			clear(shown)
			for _, name := range g.list() {
				update(name)
			}
		}
		w.at[g] = now
		w.compare(g, shown)
	}
}

// bookkeeping compares what the group counts with what it has.
func (w *fixture) bookkeeping(g *group) {
	dirty := 0
	for name, c := range g.subscribed.byName {
		if c.dirty {
			dirty++
		}
		if !g.names.has(name) {
			w.t.Fatalf("%s: %q does not exist and is subscribed to", g.kind, name)
		}
	}
	if dirty != g.subscribed.dirty {
		w.t.Fatalf("%s: %d are dirty, and %d are counted", g.kind, dirty, g.subscribed.dirty)
	}
	if want := slices.Sorted(maps.Keys(g.names.counts)); !slices.Equal(g.list(), want) {
		w.t.Fatalf("%s: the names are %q, want %q", g.kind, g.list(), want)
	}
}

func (w *fixture) compare(g *group, shown map[string]string) {
	want := map[string]string{}
	for _, name := range envoy.Names(g.kind, g.facet, w.s) {
		m, _, err := envoy.Build(g.kind, name, g.facet, w.s.Read())
		if err != nil {
			w.t.Fatal(err)
		}
		if m == nil {
			continue
		}
		r, err := newResource(g.kind, name, m)
		if err != nil {
			w.t.Fatal(err)
		}
		want[name] = r.version
	}
	if fmt.Sprint(want) != fmt.Sprint(shown) {
		w.t.Fatalf("%s of %s\n from nothing %v\n incremental  %v", g.kind, g.facet, want, shown)
	}
}

func (w *fixture) edit() federation.Edit {
	t := w.t
	e := federation.Edit{Source: federation.ShardKey{
		Cluster:  rapid.SampledFrom([]federation.ClusterID{"c1", "c2"}).Draw(t, "cluster"),
		Provider: federation.Mock,
	}}
	key := federation.ServiceKey{
		Hostname:  federation.Hostname(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "host") + ".svc"),
		Namespace: rapid.SampledFrom([]string{"n1", "n2"}).Draw(t, "namespace"),
	}
	switch rapid.IntRange(0, 9).Draw(t, "kind") {
	case 0:
		e.Services.Gone = []federation.ServiceKey{key}
	case 1:
		id := e.Source.Cluster
		if rapid.Bool().Draw(t, "detach") {
			e.Clusters.Gone = []federation.ClusterID{id}
		} else {
			spec := federation.ClusterSpec{
				Precedence: rapid.IntRange(1, 3).Draw(t, "precedence"),
				Network:    rapid.SampledFrom([]federation.NetworkID{"", "net2"}).Draw(t, "network"),
			}
			e.Clusters.Set = map[federation.ClusterID]federation.ClusterSpec{id: spec}
		}
	case 2:
		e.Settings = &federation.Settings{Addresses: federation.AddressPolicy{AllowLoopback: rapid.Bool().Draw(t, "loopback")}}
	case 3:
		return drawRule(t)
	case 4:
		e.Objects = drawRules(t)
	case 5:
		if svc, exists := w.s.Service(key); exists && svc.Shards.Of(e.Source) != nil {
			moved := *svc.Shards.Of(e.Source)
			moved.Endpoints = drawEndpoints(t, moved.Ports[0].Name)
			e.Services.Set = map[federation.ServiceKey]*federation.Shard{key: &moved}
		}
	default:
		e.Services.Set = map[federation.ServiceKey]*federation.Shard{key: drawShard(t)}
	}
	return e
}

func drawShard(t *rapid.T) *federation.Shard {
	s := &federation.Shard{
		Resolution: rapid.SampledFrom([]federation.Resolution{
			federation.ClientSideLB, federation.ClientSideLB, federation.DNSLB,
			federation.Passthrough,
		}).Draw(t, "resolution"),
		ExportTo: rapid.SampledFrom([][]string{nil, nil, {"."}, {"n1"}}).Draw(t, "exportTo"),
	}
	ports := rapid.SliceOfNDistinct(rapid.SampledFrom([]uint16{80, 90, 15080}), 1, 2, rapid.ID).Draw(t, "ports")
	for _, p := range ports {
		protocol := rapid.SampledFrom([]federation.Protocol{federation.HTTP, federation.TCP, federation.GRPC}).Draw(t, "protocol")
		s.Ports = append(s.Ports, federation.Port{Name: fmt.Sprint("p", p), Number: p, Protocol: protocol})
	}
	if rapid.Bool().Draw(t, "vip") {
		s.VIPs = []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 96, 0, byte(rapid.IntRange(1, 3).Draw(t, "vipByte"))}), 32)}
	}
	if rapid.IntRange(0, 3).Draw(t, "another name") == 0 {
		s.ExternalName = rapid.SampledFrom([]federation.Hostname{"a.svc", "b.svc", "c.svc"}).Draw(t, "of")
	}
	s.Endpoints = drawEndpoints(t, fmt.Sprint("p", ports[0]))
	return s
}

func drawEndpoints(t *rapid.T, port string) (all []federation.Endpoint) {
	for _, n := range rapid.SliceOfN(rapid.IntRange(1, 4), 0, 3).Draw(t, "endpoints") {
		all = append(all, federation.Endpoint{
			Address: federation.IPAddress(netip.AddrFrom4([4]byte{10, 0, 0, byte(n)})), Health: federation.Healthy,
			Ports:  []federation.EndpointPort{{Name: port, Number: 8080}},
			Labels: map[string]string{"version": fmt.Sprint("v", n%2)},
		})
	}
	return all
}

// breakable builds like xds/envoy until it is told not to.
type breakable struct{ why string }

func (b *breakable) builder() *builder {
	made := envoyBuilder
	made.build = func(t envoy.Type, name string, f envoy.Facet, r *federation.Reader) (proto.Message, []envoy.Reason, error) {
		m, reasons, err := envoy.Build(t, name, f, r)
		switch {
		case !strings.HasPrefix(name, "outbound|"):
		case b.why == "error":
			return nil, nil, fmt.Errorf("no")
		case b.why == "panic":
			panic("no")
		}
		return m, reasons, err
	}
	made.validate = func(m proto.Message) error {
		if b.why == "invalid" && strings.HasPrefix(nameOf(m), "outbound|") {
			return fmt.Errorf("invalid")
		}
		return check.Resource(m)
	}
	return &made
}

func TestWhatCannotBeBuiltKeepsItsLastGoodBytes(t *testing.T) {
	for _, why := range []string{"error", "panic", "invalid"} {
		t.Run(why, func(t *testing.T) {
			var b breakable
			a := federation.NewAggregate(nil)
			w := a.Open(source1)
			w.Update(federation.Edit{Services: service("web", 1)})
			g := newGroup(envoy.EndpointType, everyones(envoy.EndpointType), *b.builder())
			var failures []string
			g.failed = func(_ envoy.Type, name string, _ error) { failures = append(failures, name) }
			g.sync(a.Latest())
			good := g.get(cluster("web"))

			b.why = why
			w.Update(federation.Edit{Services: service("web", 1, 2)})
			g.sync(a.Latest())
			if got := g.get(cluster("web")); got != good || good == nil {
				t.Errorf("got %v, want the last good %v", got, good)
			}
			if !slices.Equal(failures, []string{cluster("web")}) {
				t.Errorf("failures = %v", failures)
			}
			b.why = ""
			w.Update(federation.Edit{Services: service("web", 1, 2, 3)})
			g.sync(a.Latest())
			if got := g.get(cluster("web")); got == good {
				t.Error("a good build after the bad one is not used")
			}
		})
	}
}

// everyones is the facet of the services that everyone sees, wherever the proxy is.
func everyones(t envoy.Type) envoy.Facet {
	all := envoy.Facets(t, envoy.Node{Type: envoy.Sidecar, Cluster: "c1"}, federation.Empty())
	return all[slices.IndexFunc(all, func(f envoy.Facet) bool { return f.Scope.String() == "public" })]
}

// counting builds like xds/envoy, and counts.
func counting(built, contributed *int) builder {
	made := envoyBuilder
	made.build = func(t envoy.Type, name string, f envoy.Facet, r *federation.Reader) (proto.Message, []envoy.Reason, error) {
		*built++
		return envoy.Build(t, name, f, r)
	}
	made.contributes = func(t envoy.Type, f envoy.Facet, svc *federation.Service, r *federation.Reader) []string {
		*contributed++
		return envoy.Contributes(t, f, svc, r)
	}
	return made
}

// TestTrafficDistributionCostsItsService: when one service of many asks for what
// is nearby, its endpoints move from the group of everyone to that of the place.
func TestTrafficDistributionCostsItsService(t *testing.T) {
	a := federation.NewAggregate(nil)
	w := a.Open(source1)
	all := serviceDelta{Set: map[federation.ServiceKey]*federation.Shard{}}
	for i := range 100 {
		all.Set[key(fmt.Sprint("s", i))] = httpShard(1)
	}
	w.Update(federation.Edit{Services: all})
	var built, contributed int
	made := counting(&built, &contributed)
	groups := map[string]*group{}
	for _, f := range envoy.Facets(envoy.EndpointType, envoy.Node{
		Cluster: "c1", Namespace: "shop",
		Locality: federation.Locality{Region: "eu"},
	}, a.Latest()) {
		if f.Scope == everyones(envoy.EndpointType).Scope {
			groups[f.Place] = newGroup(envoy.EndpointType, f, made)
		}
	}
	have := func() map[string]int {
		names := map[string]int{}
		for place, g := range groups {
			g.sync(a.Latest())
			names[place] = len(g.list())
			for _, name := range g.list() {
				g.get(name)
			}
		}
		return names
	}
	if got := have(); got["far"] != 100 || got["near"] != 0 {
		t.Fatalf("at first there are %v", got)
	}
	built, contributed = 0, 0
	nearby := httpShard(1)
	nearby.TrafficDistribution = "PreferSameZone"
	w.Update(federation.Edit{Services: serviceDelta{Set: map[federation.ServiceKey]*federation.Shard{key("s7"): nearby}}})
	if got := have(); got["far"] != 99 || got["near"] != 1 {
		t.Errorf("then there are %v", got)
	}
	if built > 2 || contributed > 2 {
		t.Errorf("built %d, asked %d services for names", built, contributed)
	}
}

func TestOneThatCannotBeBuiltSpoilsNoOther(t *testing.T) {
	for _, why := range []string{"error", "panic", "invalid"} {
		a := federation.NewAggregate(nil)
		a.Open(source1).Update(federation.Edit{Services: serviceDelta{Set: map[federation.ServiceKey]*federation.Shard{
			key("a"): httpShard(1), key("bad"): httpShard(2), key("c"): httpShard(3),
		}}})
		made := envoyBuilder
		made.build = func(t envoy.Type, name string, f envoy.Facet, r *federation.Reader) (proto.Message, []envoy.Reason, error) {
			b := breakable{}
			if name == cluster("bad") {
				b.why = why
			}
			return b.builder().build(t, name, f, r)
		}
		made.validate = func(m proto.Message) error {
			if why == "invalid" && nameOf(m) == cluster("bad") {
				return fmt.Errorf("invalid")
			}
			return check.Resource(m)
		}
		g := newGroup(envoy.EndpointType, everyones(envoy.EndpointType), made)
		var failures []string
		g.failed = func(_ envoy.Type, name string, _ error) { failures = append(failures, name) }
		g.sync(a.Latest())
		g.prepare(slices.Values(append(slices.Clone(g.list()), "unknown")))
		for _, name := range []string{"a", "bad", "c"} {
			if got := g.get(cluster(name)); (got == nil) != (name == "bad") {
				t.Errorf("%s: %s is %v", why, name, got)
			}
		}
		if !slices.Equal(failures, []string{cluster("bad")}) || g.get("unknown") != nil {
			t.Errorf("%s: failures = %v", why, failures)
		}
	}
}

func TestGroupsCostWhatChanged(t *testing.T) {
	a := federation.NewAggregate(nil)
	w := a.Open(source1)
	all := serviceDelta{Set: map[federation.ServiceKey]*federation.Shard{}}
	for i := range 500 {
		all.Set[key(fmt.Sprint("s", i))] = httpShard(1)
	}
	w.Update(federation.Edit{Services: all})
	var built, contributed int
	made := counting(&built, &contributed)
	g := newGroup(envoy.EndpointType, everyones(envoy.EndpointType), made)
	g.sync(a.Latest())
	for _, name := range g.list() {
		g.get(name)
	}
	before := g.sync(a.Latest())
	built, contributed = 0, 0
	w.Update(federation.Edit{Services: service("s7", 1, 2)})
	g.sync(a.Latest())
	var touched []string
	changed, _, _ := g.since(before)
	for _, e := range changed {
		touched = append(touched, e.name)
		g.get(e.name)
	}
	if !slices.Equal(touched, []string{cluster("s7")}) || built != 1 || contributed != 0 {
		t.Errorf("touched %v, built %d, asked %d services for names", touched, built, contributed)
	}
}
