package derive_test

import (
	"fmt"
	"iter"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/derive"
)

type reader = federation.Reader

// spec is what a look at the specs of services may show.
func spec(services ...*federation.Service) string {
	var text strings.Builder
	for _, s := range services {
		if s != nil {
			fmt.Fprintf(&text, "%v %v %v %v %v; ", s.Key, s.Ports, s.Resolution, s.ClusterVIPs, s.ExternalName)
		}
	}
	return text.String()
}

func objects(all iter.Seq[*federation.Object]) string {
	var text strings.Builder
	for o := range all {
		fmt.Fprintf(&text, "%v %s; ", o.Key, o.Digest)
	}
	return text.String()
}

// places are those of proxies: in a network that they say, and in that of their cluster.
var places = []federation.Place{
	{Cluster: "c1", Network: "n1", Addresses: []netip.Addr{address(1)}},
	{Cluster: "c1", Addresses: []netip.Addr{address(1), address(2)}},
	{Cluster: "absent", Addresses: []netip.Addr{address(3)}},
}

// eachPlace shows what is computed at each of the places.
func eachPlace(show func(*reader, federation.Place) string) func(*reader) string {
	return func(r *reader) string {
		var text []string
		for _, p := range places {
			text = append(text, show(r, p))
		}
		return strings.Join(text, "\n")
	}
}

// eachScope shows what is read with and without the objects of a cluster, and with those of all.
func eachScope(show func(*reader) string) func(*reader) string {
	return func(r *reader) string {
		defer r.For("")
		return show(r) + "\n" + show(r.For("c1")) + "\n" + show(r.For(federation.AnyCluster))
	}
}

func visible(s *federation.Service) bool { return s.Resolution != federation.DNSLB }

// reads shows for each method of readers all that it tells.
var reads = map[string]func(*reader) string{
	"Spec": func(r *reader) string {
		s, _ := r.Spec(federation.ServiceKey{Hostname: "a.x", Namespace: "ns"})
		return spec(s)
	},
	"Endpoints": func(r *reader) string {
		s, ok := r.Endpoints(federation.ServiceKey{Hostname: "a.x", Namespace: "ns"})
		if !ok {
			return ""
		}
		return fmt.Sprint(spec(s), s.Endpoints)
	},
	"Accounts": func(r *reader) string {
		s, ok := r.Accounts(federation.ServiceKey{Hostname: "a.x", Namespace: "ns"})
		if !ok {
			return ""
		}
		return fmt.Sprint(spec(s), s.ServiceAccounts)
	},
	"SpecsOnPort":  func(r *reader) string { return spec(slices.Collect(r.SpecsOnPort(81))...) },
	"SelectOnPort": func(r *reader) string { return spec(r.SelectOnPort(81, visible)...) },
	"Specs":        func(r *reader) string { return spec(slices.Collect(r.Specs())...) },
	"ByHostname":   func(r *reader) string { return spec(r.ByHostname("a.x")...) },
	"At.Instances": eachPlace(func(r *reader, p federation.Place) string {
		var text []string
		for _, i := range r.At(p).Instances() {
			text = append(text, fmt.Sprint(spec(i.Service), i.Shard, *i.Endpoint, i.Number))
		}
		return strings.Join(text, "; ")
	}),
	"Cluster": func(r *reader) string {
		c, ok := r.Cluster("c1")
		return fmt.Sprint(ok && true, ok && c.Spec.TrustDomain != "", networkOf(c))
	},
	"Settings": func(r *reader) string { return fmt.Sprint(r.Settings()) },
	"Object": eachScope(func(r *reader) string {
		return digest(r.Object(federation.ObjectKey{Group: "test", Kind: "Rule", Namespace: "ns", Name: "r1"}))
	}),
	"Objects.Named": eachScope(func(r *reader) string { return objects(r.Objects().Named(ruleKind, "*.x")) }),
	"Objects.For": eachScope(func(r *reader) string {
		return objects(r.Objects().For(ruleKind, "a.x")) + objects(r.Objects().For(ruleKind, "*.x"))
	}),
	"Objects.In": eachScope(func(r *reader) string { return objects(r.Objects().In(ruleKind, "other")) }),
	"Objects.Of": eachScope(func(r *reader) string { return objects(r.Objects().Of(ruleKind)) }),
	"Objects.Select": eachScope(func(r *reader) string {
		return objects(slices.Values(r.Objects().Select(ruleKind, func(o *federation.Object) bool { return slices.Contains(o.Names, "*") })))
	}),
	"Objects.HasOf": func(r *reader) string { return fmt.Sprint(r.Objects().HasOf("c1")) },
	"At.Registered": eachPlace(func(r *reader, p federation.Place) string {
		w, ok := r.At(p).Registered(federation.WorkloadKey{Namespace: "ns", Name: "w1"})
		if !ok {
			return ""
		}
		return fmt.Sprint(*w.Workload, w.Network)
	}),
	"At.Network": eachPlace(func(r *reader, p federation.Place) string { return string(r.At(p).Network()) }),
	"At.Placed": eachPlace(func(r *reader, p federation.Place) string {
		n, ok := r.At(p).Placed()
		return fmt.Sprint(n, ok)
	}),
	"Objects.ProxyLabels": func(r *reader) string { return fmt.Sprint(r.Objects().ProxyLabels()) },
	"Networks": func(r *reader) string {
		var text []string
		for n := range r.Networks() {
			text = append(text, network(n))
		}
		return strings.Join(text, "; ")
	},
	"KeySet": func(r *reader) string {
		set, tried := federation.ReadKeySet(r, federation.KeySource{URI: "https://a.x"})
		other, _ := federation.ReadKeySet(r, federation.KeySource{URI: "https://a.x", OpenID: true})
		return fmt.Sprint(set, tried, other)
	},
	"Problems": func(r *reader) string {
		return fmt.Sprint(federation.ReadProblems(r, federation.ProblemSubject{Cluster: "c1", Object: "Rule r1"}),
			federation.ReadProblems(r, federation.ProblemSubject{Cluster: "c1"}))
	},
	"Network": func(r *reader) string {
		n, _ := r.Network("n1")
		return network(n)
	},
	"AliasTarget": func(r *reader) string {
		target, is := r.AliasTarget(&federation.Service{ExternalName: "a.x"}, visible)
		return fmt.Sprint(target, is)
	},
	"AliasesOf":    func(r *reader) string { return spec(r.AliasesOf("a.x", visible)...) },
	"SelectAtVIP":  func(r *reader) string { return spec(r.SelectAtVIP(address(200), visible)...) },
	"Mesh":         func(r *reader) string { return fmt.Sprint(r.Mesh().Trust()) },
	"TrustDomain":  func(r *reader) string { return r.TrustDomain("c1") + r.TrustDomain("absent") },
	"TrustDomains": func(r *reader) string { return fmt.Sprint(r.TrustDomains()) },
}

func digest(o *federation.Object, _ bool) string {
	if o == nil {
		return ""
	}
	return o.Digest
}

func networkOf(c *federation.Cluster) federation.NetworkID {
	if c == nil {
		return ""
	}
	return c.Network()
}

func network(n *federation.Network) string {
	if n == nil {
		return ""
	}
	plain := *n
	plain.Version = 0
	return fmt.Sprintf("%+v", plain)
}

// Every method of a Reader is in the property below.
func TestAllReadsAreTested(t *testing.T) {
	notReads := []string{"Deps", "Apart", "At", "Objects", "For"}
	for prefix, of := range map[string]reflect.Type{
		"": reflect.TypeFor[*federation.Reader](), "At.": reflect.TypeFor[federation.NotedPlace](),
		"Objects.": reflect.TypeFor[federation.NotedObjects](),
	} {
		for i := range of.NumMethod() {
			name := prefix + of.Method(i).Name
			if reads[name] == nil && !slices.Contains(notReads, name) {
				t.Errorf("no value of the property reads by %s: add one to reads", name)
			}
		}
	}
}

// TestPropertyDerivedValuesAreAsComputedFromNothing: after each edit of a random history
// every cached value equals the one computed from nothing, for
// readers of any version, and is computed only when something changed that it reads.
func TestPropertyDerivedValuesAreAsComputedFromNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		computed := 0
		table := derive.NewTable(func(r *reader, name string) string {
			computed++
			return reads[name](r)
		})
		a := federation.NewAggregate(nil)
		history := []*federation.Snapshot{a.Latest()}
		for range rapid.IntRange(1, 12).Draw(t, "edits") {
			e := drawEdit(t)
			a.Open(e.Source).Update(e)
			history = append(history, a.Latest())
			for _, s := range []*federation.Snapshot{a.Latest(), rapid.SampledFrom(history).Draw(t, "a reader behind"), a.Latest()} {
				for name, read := range reads {
					if got, want := table.Get(s, name), read(s.Read()); got != want {
						t.Fatalf("%s at version %d of %d is\n%s\nfrom nothing it is\n%s", name, s.Version(), a.Latest().Version(), got, want)
					}
				}
			}
			computed = 0
			for name := range reads {
				table.Get(a.Latest(), name)
			}
			if computed > 0 {
				t.Fatalf("%d values are computed again though nothing changed", computed)
			}
		}
		for name := range reads {
			table.Forget(name)
		}
		if table.Len() > 0 {
			t.Fatalf("%d values are kept of which nobody wants any", table.Len())
		}
	})
}

// TestPropertyValuesByHostAreAsComputedFromNothing: what is computed from the services of
// a hostname and the objects about it is computed again when these change, or something
// else that any of the values reads.
func TestPropertyValuesByHostAreAsComputedFromNothing(t *testing.T) {
	compute := func(r *reader, host federation.Hostname) (text string) {
		for _, s := range r.ByHostname(host) {
			text += spec(s)
			if s.Resolution == federation.Passthrough {
				s, _ = r.Endpoints(s.Key)
				text += fmt.Sprint(s.Endpoints)
			}
		}
		switch {
		case text == "": // without a service there is no value
		case host == "a.x":
			text += objects(r.Objects().For(ruleKind, "a.x")) +
				digest(r.Object(federation.ObjectKey{Group: "test", Kind: "Rule", Namespace: "ns", Name: "r1"}))
		case host == "b.x":
			text += r.Mesh().Trust() + spec(r.ByHostname("c.y")...)
		}
		return text
	}
	rapid.Check(t, func(t *rapid.T) {
		kept, b := map[federation.Hostname]string{}, derive.NewByHost()
		at, _ := federation.Next(federation.Empty(),
			federation.Edit{Settings: &federation.Settings{Addresses: federation.AddressPolicy{AllowLoopback: true}}})
		look := func(host federation.Hostname) {
			r := at.Read()
			kept[host] = compute(r, host)
			b.Note(host, at, r.Deps())
		}
		for _, host := range hosts {
			look(host)
		}
		for range rapid.IntRange(1, 12).Draw(t, "edits") {
			before := at
			var changes federation.ChangeSet
			at, changes = federation.Next(at, drawEdit(t))
			for _, host := range b.Affected(changes, before, at) {
				look(host)
			}
			for _, host := range hosts {
				if want := compute(at.Read(), host); kept[host] != want {
					t.Fatalf("of %s is kept\n%s\nfrom nothing it is\n%s", host, kept[host], want)
				}
			}
		}
	})
}

// Readers ask at the same time, each at its own version.
func TestReadersOfATableDoNotWaitForComputations(t *testing.T) {
	a := federation.NewAggregate(nil)
	w := a.Open(federation.ShardKey{Cluster: "c1", Provider: federation.Mock})
	begun, goOn := make(chan struct{}), make(chan struct{})
	table := derive.NewTable(func(r *reader, slow bool) string {
		if slow {
			begun <- struct{}{}
			<-goOn
		}
		return spec(r.ByHostname("a.x")...)
	})
	first := a.Latest()
	var readers sync.WaitGroup
	var got string
	readers.Go(func() { got = table.Get(first, true) })
	<-begun
	k := federation.ServiceKey{Hostname: "a.x", Namespace: "ns"}
	w.Update(federation.Edit{Services: federation.Delta[federation.ServiceKey,
		*federation.Shard]{Set: map[federation.ServiceKey]*federation.Shard{k: {}}}})
	if now := table.Get(a.Latest(), false); now == "" {
		t.Error("the new service is not read")
	}
	goOn <- struct{}{}
	readers.Wait()
	if got != "" {
		t.Errorf("the snapshot without a service has %s", got)
	}
	// What changed while it was computed was not looked at: it is computed again.
	readers.Go(func() { got = table.Get(a.Latest(), true) })
	<-begun
	goOn <- struct{}{}
	readers.Wait()
	if got == "" {
		t.Error("the new service is not read by who was slow")
	}
}
