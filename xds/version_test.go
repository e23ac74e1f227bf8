package xds

import (
	"fmt"
	"slices"
	"testing"

	"isthmus.dev/isthmus/xds/xdstest"
)

func TestX09VersionChangesIffContentChanges(t *testing.T) {
	bothVariants(t, func(t *testing.T, delta bool) {
		h := newHub(t)
		h.set(service("a", 1), service("b", 2))
		q := xdstest.Request{Type: xdstest.EDS, Names: []string{cluster("a"), cluster("b")}}
		one, two := h.client(xdstest.Options{Delta: delta}), h.client(xdstest.Options{Delta: delta, Node: node("web-2")})
		r1, r2 := one.get(q), two.get(q)
		if r1.Version != r2.Version || r1.Version == "" {
			t.Errorf("two streams have %q and %q", r1.Version, r2.Version)
		}
		h.set(service("a", 1, 3))
		changed := one.accept(xdstest.EDS)
		if changed.Version == r1.Version {
			t.Error("a change kept the version")
		}
		h.set(service("a", 1))
		if back := one.accept(xdstest.EDS); back.Version != r1.Version {
			t.Errorf("there and back went from %q to %q", r1.Version, back.Version)
		}
	})
}

func TestX10ReconnectWithRightVersionsGetsNothing(t *testing.T) {
	h := newHub(t)
	h.set(service("a", 1))
	c := h.client(xdstest.Options{Delta: true})
	clusters := c.get(xdstest.Request{Type: xdstest.CDS})
	endpoints := c.get(xdstest.Request{Type: xdstest.EDS, Names: []string{cluster("a")}})
	c.Close()
	c = h.client(xdstest.Options{Delta: true})
	r := c.get(xdstest.Request{Type: xdstest.CDS, Initial: clusters.Versions})
	wantNames(t, r) // a wildcard is answered, if only with nothing
	wantRemoved(t, r)
	if r.Version != clusters.Version {
		t.Errorf("version %q, before %q", r.Version, clusters.Version)
	}
	c.ask(xdstest.Request{Type: xdstest.EDS, Names: []string{cluster("a")}, Initial: endpoints.Versions})
	c.get(xdstest.Request{Type: xdstest.LDS}) // is the very next response
	h.set(service("a", 1, 2))
	wantNames(t, c.accept(xdstest.EDS), cluster("a"))
}

func TestX11ReconnectWithOldVersionsGetsTheDifference(t *testing.T) {
	h := newHub(t)
	h.set(service("a", 1), service("b", 2))
	c := h.client(xdstest.Options{Delta: true})
	q := xdstest.Request{Type: xdstest.EDS, Names: []string{cluster("a"), cluster("b")}}
	r := c.get(q)
	c.Close()
	h.set(service("b", 2, 3))
	c = h.client(xdstest.Options{Delta: true})
	q.Initial = r.Versions
	wantNames(t, c.get(q), cluster("b"))
}

func TestX12ReconnectListingDeletedOnesGetsThemRemoved(t *testing.T) {
	h := newHub(t)
	h.set(service("a", 1), service("b", 2))
	c := h.client(xdstest.Options{Delta: true})
	r := c.get(xdstest.Request{Type: xdstest.CDS})
	c.Close()
	h.set(gone("b"))
	c = h.client(xdstest.Options{Delta: true})
	r = c.get(xdstest.Request{Type: xdstest.CDS, Initial: r.Versions})
	wantNames(t, r)
	wantRemoved(t, r, cluster("b"))
}

func TestX20ResponsesAreSortedAndWithoutDuplicates(t *testing.T) {
	bothVariants(t, func(t *testing.T, delta bool) {
		h := newHub(t)
		var names []string
		for i := range 30 {
			h.set(service(fmt.Sprint("s", i), i))
			names = append(names, cluster(fmt.Sprint("s", i)), cluster(fmt.Sprint("s", i)))
		}
		one, two := h.client(xdstest.Options{Delta: delta}), h.client(xdstest.Options{Delta: delta, Node: node("web-2")})
		for _, q := range []xdstest.Request{{Type: xdstest.CDS}, {Type: xdstest.EDS, Names: names}} {
			r := one.get(q)
			if !slices.IsSorted(r.Order) || len(slices.Compact(slices.Clone(r.Order))) != len(r.Resources) {
				t.Errorf("order is %v", r.Order)
			}
			again := two.get(q)
			for name, res := range r.Resources {
				if string(res.Value) != string(again.Resources[name].GetValue()) {
					t.Errorf("%s has other bytes on another stream", name)
				}
			}
		}
	})
}
