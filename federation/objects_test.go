package federation

import (
	"fmt"
	"iter"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

var routes = Kind{Group: "networking.istio.io", Name: "VirtualService"}

func object(name, digest string, names ...string) *Object {
	return &Object{Key: ObjectKey{Group: routes.Group, Kind: routes.Name, Namespace: "shop", Name: name}, Digest: digest, Names: names}
}

func objects(all ...*Object) Edit {
	e := Edit{Objects: Delta[ObjectKey, *Object]{Set: map[ObjectKey]*Object{}}}
	for _, o := range all {
		e.Objects.Set[o.Key] = o
	}
	return e
}

func namesOf(list iter.Seq[*Object]) string {
	var names []string
	for o := range list {
		names = append(names, o.Key.Name+o.Digest)
	}
	return fmt.Sprint(names)
}

func TestSeed33ConfigChangeHasItsKeyAndReason(t *testing.T) {
	a, b := object("a", "1", "a.shop"), object("b", "1", "b.shop")
	s := after(objects(a, b))
	next, changes := Next(s, objects(object("a", "2", "a.shop")))
	if len(changes.Objects) != 1 || changes.Objects[0] != (ObjectChange{Key: a.Key}) || changes.Reasons() != ReasonConfig {
		t.Errorf("the change set is %+v, its reasons %s", changes, changes.Reasons())
	}
	if len(changes.Services)+len(changes.Clusters)+len(changes.Addresses) != 0 || changes.Settings {
		t.Errorf("more than the object changed: %+v", changes)
	}
	if again, changes := Next(next, objects(object("a", "2", "a.shop"))); again != next || !changes.Empty() {
		t.Errorf("the same once more publishes %+v", changes)
	}
}

func TestObjectsAreFoundByTheirNamesAndPlaces(t *testing.T) {
	s := after(objects(object("exact", "", "web.example.com"), object("wild", "", "*.example.com"), object("other", "", "web.example.org")))
	for name, c := range map[string]struct{ got, want string }{
		"by hostname":         {namesOf(s.Read().Objects().For(routes, "web.example.com")), "[exact wild]"},
		"by another hostname": {namesOf(s.Read().Objects().For(routes, "db.example.com")), "[wild]"},
		"by a prefix":         {namesOf(s.Objects().Named(routes, "web.example")), "[]"},
		"by namespace":        {namesOf(s.Objects().In(routes, "shop")), "[exact other wild]"},
		"by part of it":       {namesOf(s.Objects().In(routes, "sho")), "[]"},
		"of another kind":     {namesOf(s.Objects().In(Kind{Group: routes.Group, Name: "Virtual"}, "shop")), "[]"},
	} {
		if c.got != c.want {
			t.Errorf("%s: %s, want %s", name, c.got, c.want)
		}
	}
}

func TestWildcardsFromTheMostSpecific(t *testing.T) {
	for host, want := range map[Hostname]string{
		"a.b.c": "[a.b.c *.b.c *.c *]",
		"*.b.c": "[*.b.c *.c *]",
		"local": "[local *]",
	} {
		if got := fmt.Sprint(Wildcards(host)); got != want {
			t.Errorf("%s: %s, want %s", host, got, want)
		}
	}
}

func TestProxyLabelsStayTheSameSliceUntilTheSetChanges(t *testing.T) {
	one, two := object("one", ""), object("two", "")
	one.ProxyLabels, two.ProxyLabels = []string{"app"}, []string{"app", "version"}
	s := after(objects(one))
	more := after(objects(one), objects(two))
	if got := fmt.Sprint(s.Objects().ProxyLabels(), more.Objects().ProxyLabels()); got != "[app] [app version]" {
		t.Fatalf("the labels are %s", got)
	}
	less, _ := Next(more, Edit{Objects: Delta[ObjectKey, *Object]{Gone: []ObjectKey{one.Key}}})
	if &less.Objects().ProxyLabels()[0] != &more.Objects().ProxyLabels()[0] {
		t.Error("the set is the same, the slice is another")
	}
	if none, _ := Next(less, Edit{Objects: Delta[ObjectKey, *Object]{Full: true}}); len(none.Objects().ProxyLabels()) != 0 {
		t.Errorf("without objects there are %v", none.Objects().ProxyLabels())
	}
}

// TestPropertyObjectIndexesAgree: what the indexes find after any changes is
// what a look at every object finds.
func TestPropertyObjectIndexesAgree(t *testing.T) {
	names := []string{"a", "b", "a.b"}
	rapid.Check(t, func(t *rapid.T) {
		s := Empty()
		for range rapid.IntRange(1, 20).Draw(t, "edits") {
			o := object(rapid.SampledFrom(names).Draw(t, "object"), rapid.SampledFrom([]string{"1", "2"}).Draw(t, "digest"),
				rapid.SliceOfNDistinct(rapid.SampledFrom(names), 0, 3, rapid.ID).Draw(t, "names")...)
			e := objects(o)
			if rapid.Bool().Draw(t, "gone") {
				e = Edit{Objects: Delta[ObjectKey, *Object]{Gone: []ObjectKey{o.Key}}}
			}
			e.Objects.Full = rapid.IntRange(0, 9).Draw(t, "full") == 0
			s, _ = Next(s, e)
		}
		for _, name := range names {
			var want []string
			for o := range s.Objects().All() {
				if slices.Contains(o.Names, name) {
					want = append(want, o.Key.Name+o.Digest)
				}
			}
			if got := namesOf(s.Objects().Named(routes, name)); got != fmt.Sprint(want) {
				t.Fatalf("by %q: %s, want %v", name, got, want)
			}
		}
	})
}

func TestReaderNotesObjectsAndTheirAbsence(t *testing.T) {
	o := object("a", "", "a.shop")
	r := after(objects(o)).Read()
	namesOf(r.Objects().For(routes, "a.shop"))
	namesOf(r.Objects().In(routes, "shop"))
	r.Object(ObjectKey{Name: "absent"})
	deps := r.Deps()
	if !deps.Objects.Has(o.Key) || !deps.Objects.Has(ObjectKey{Name: "absent"}) || !deps.Sets.Has(ObjectSet{Kind: routes, Namespace: "shop"}) {
		t.Errorf("noted: %+v", deps)
	}
	if !deps.Hosts.Has(ObjectName{Kind: routes, Name: "a.shop"}) {
		t.Errorf("hosts noted: %v, want a.shop", deps.Hosts)
	}
}

func TestRevisionOfTheStoreIsInTheSnapshot(t *testing.T) {
	e := objects(object("a", "1"))
	e.Revision = 7
	s := after(e)
	if s.Revision() != 7 {
		t.Errorf("the revision is %d", s.Revision())
	}
	if older, _ := Next(s, Edit{Revision: 6}); older != s {
		t.Error("the revision goes back")
	}
	if next, changes := Next(s, Edit{Revision: 8}); next.Revision() != 8 || !changes.Empty() {
		t.Errorf("a revision that changes nothing: %d, %+v", next.Revision(), changes)
	}
}

// TestSeed35KubernetesServiceChangeIsFull: a change of the service itself names
// the service, whatever its registry, with the reason spec.
func TestSeed35KubernetesServiceChangeIsFull(t *testing.T) {
	k := key("web.shop", "shop")
	s := after(set(shardOf("c1"), map[ServiceKey]*Shard{k: web("10.0.0.1", endpoint("10.1.0.1", 8080))}))
	changed := web("10.0.0.1", endpoint("10.1.0.1", 8080))
	changed.Ports[0].Protocol = GRPC
	_, changes := Next(s, set(shardOf("c1"), map[ServiceKey]*Shard{k: changed}))
	if len(changes.Services) != 1 || changes.Services[0].Key != k || changes.Reasons() != ReasonSpec {
		t.Errorf("the change set is %+v, its reasons %s", changes, changes.Reasons())
	}
}
