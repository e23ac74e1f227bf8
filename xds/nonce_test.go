package xds

import (
	"slices"
	"testing"

	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/xds/xdstest"
)

// Both of the following send a stale request and then one whose answer shows
// the result of the first.
func TestX05StaleSotWRequestIsNotAnswered(t *testing.T) {
	h := newHub(t)
	h.set(service("a", 1), service("b", 2))
	c := h.client(xdstest.Options{})
	old := c.get(xdstest.Request{Type: xdstest.EDS, Names: []string{cluster("a")}})
	h.set(service("a", 1, 3))
	newest := c.next(xdstest.EDS)
	q := xdstest.Request{Type: xdstest.EDS, Names: []string{cluster("a"), cluster("b")}, Nonce: old.Nonce, Version: old.Version}
	c.ask(q)
	c.get(xdstest.Request{Type: xdstest.LDS}) // is the very next response
	q.Nonce, q.Version = newest.Nonce, newest.Version
	wantNames(t, c.get(q), cluster("b"))
}

func TestX06StaleDeltaRequestSubscribes(t *testing.T) {
	h := newHub(t)
	h.set(service("a", 1), service("b", 2))
	c := h.client(xdstest.Options{Delta: true})
	old := c.get(xdstest.Request{Type: xdstest.EDS, Names: []string{cluster("a")}})
	h.set(service("a", 1, 3))
	c.next(xdstest.EDS)
	c.ask(xdstest.Request{Type: xdstest.EDS, Names: []string{cluster("b")}, Nonce: old.Nonce})
	wantNames(t, c.next(xdstest.EDS), cluster("b"))
}

func TestX07ForeignNoncesAcceptNothing(t *testing.T) {
	bothVariants(t, func(t *testing.T, delta bool) {
		h := newHub(t)
		h.set(service("a", 1), service("b", 2))
		other := h.client(xdstest.Options{Delta: delta, Node: router()}).get(xdstest.Request{Type: xdstest.CDS})
		c := h.client(xdstest.Options{Delta: delta})
		clusters := c.get(xdstest.Request{Type: xdstest.CDS})
		r := func() xdstest.Response {
			c.ask(xdstest.Request{Type: xdstest.EDS, Names: []string{cluster("a")}})
			return c.next(xdstest.EDS)
		}()
		for _, nonce := range []string{clusters.Nonce, other.Nonce, "\u00e9", string(slices.Repeat([]byte("n"), 1<<20))} {
			c.ask(xdstest.Request{Type: xdstest.EDS, Names: nil, Nonce: nonce, Version: r.Version})
		}
		c.ask(xdstest.Request{Type: xdstest.EDS, Names: []string{cluster("b")}, Nonce: other.Nonce})
		if delta { // what the client wants counts, whatever the nonce
			r = c.next(xdstest.EDS)
			wantNames(t, r, cluster("b"))
		}
		c.get(xdstest.Request{Type: xdstest.LDS})
		if s := h.fleet.Latest().ByID(node("web-1").Id)[0].Sync[xdstest.EDS]; s.State != fleet.Pending || s.VersionAcked != "" {
			t.Errorf("EDS is %+v", s)
		}
		if delta {
			c.ack(r)
		} else {
			c.ask(xdstest.Request{Type: xdstest.EDS, Names: []string{cluster("a")}, Nonce: r.Nonce, Version: r.Version})
		}
		h.eventually("the right nonce counts", func(v *fleet.Value) bool {
			return v.ByID(node("web-1").Id)[0].Sync[xdstest.EDS].State == fleet.Synced
		})
	})
}

func TestX08NoncesAreUnique(t *testing.T) {
	bothVariants(t, func(t *testing.T, delta bool) {
		h := newHub(t)
		h.set(service("a", 1))
		c := h.client(xdstest.Options{Delta: delta})
		seen := map[string]bool{}
		note := func(r xdstest.Response) {
			if seen[r.Nonce] || r.Nonce == "" {
				t.Errorf("nonce %q twice", r.Nonce)
			}
			seen[r.Nonce] = true
		}
		note(c.get(xdstest.Request{Type: xdstest.CDS}))
		note(c.get(xdstest.Request{Type: xdstest.LDS}))
		note(c.get(xdstest.Request{Type: xdstest.EDS, Names: []string{cluster("a")}}))
		for i := range 10 {
			h.set(service("a", 1, 10+i))
			note(c.accept(xdstest.EDS))
		}
	})
}

func TestX22TypesAreIndependent(t *testing.T) {
	bothVariants(t, func(t *testing.T, delta bool) {
		h := newHub(t)
		h.set(service("a", 1))
		c := h.client(xdstest.Options{Delta: delta})
		c.ask(xdstest.Request{Type: xdstest.CDS})
		c.ask(xdstest.Request{Type: xdstest.EDS, Names: []string{cluster("a")}})
		clusters, endpoints := c.next(xdstest.CDS), c.next(xdstest.EDS)
		c.ack(endpoints)
		h.set(service("a", 1, 2)) // endpoints go on although the clusters are not answered
		r := c.accept(xdstest.EDS)
		if r.Version == endpoints.Version {
			t.Error("the version of the endpoints did not change")
		}
		c.ack(clusters)
		h.eventually("both are accepted at their own versions", func(v *fleet.Value) bool {
			s := v.ByID(node("web-1").Id)[0].Sync
			return s[xdstest.CDS].VersionAcked == clusters.Version && s[xdstest.EDS].VersionAcked == r.Version
		})
	})
}
