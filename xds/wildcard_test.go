package xds

import (
	"testing"

	"isthmus.dev/isthmus/xds/xdstest"
)

// wildcardClient is a router's, which has the clusters of a and b only.
func wildcardClient(t *testing.T, delta bool) (*hub, client) {
	h := newHub(t)
	h.set(service("a", 1), service("b", 2))
	return h, h.client(xdstest.Options{Delta: delta, Node: router()})
}

func TestX13ExplicitWildcard(t *testing.T) {
	bothVariants(t, func(t *testing.T, delta bool) {
		h, c := wildcardClient(t, delta)
		wantNames(t, c.get(xdstest.Request{Type: xdstest.CDS, Names: []string{"*"}}), cluster("a"), cluster("b"))
		h.set(service("c", 3))
		if _, there := c.accept(xdstest.CDS).Resources[cluster("c")]; !there {
			t.Error("a new cluster is missing")
		}
	})
}

func TestX14LegacyWildcardThenSpecificName(t *testing.T) {
	t.Run("sotw", func(t *testing.T) { // names take the place of the wildcard
		_, c := wildcardClient(t, false)
		r := c.get(xdstest.Request{Type: xdstest.CDS})
		r = c.get(xdstest.Request{Type: xdstest.CDS, Names: []string{cluster("a")}, Nonce: r.Nonce})
		wantNames(t, r, cluster("a"))
		r = c.get(xdstest.Request{Type: xdstest.CDS, Nonce: r.Nonce}) // no wildcard any more: nothing is wanted
		wantNames(t, r)
	})
	t.Run("delta", func(t *testing.T) { // names add to the wildcard
		h, c := wildcardClient(t, true)
		c.get(xdstest.Request{Type: xdstest.CDS})
		wantNames(t, c.get(xdstest.Request{Type: xdstest.CDS, Names: []string{cluster("a")}}), cluster("a"))
		h.set(service("c", 3))
		wantNames(t, c.accept(xdstest.CDS), cluster("c"))
	})
}

func TestX15DroppedNameStaysThroughTheWildcard(t *testing.T) {
	t.Run("sotw", func(t *testing.T) {
		_, c := wildcardClient(t, false)
		r := c.get(xdstest.Request{Type: xdstest.CDS, Names: []string{"*", cluster("a")}})
		r = c.get(xdstest.Request{Type: xdstest.CDS, Names: []string{"*"}, Nonce: r.Nonce})
		wantNames(t, r, cluster("a"), cluster("b"))
	})
	t.Run("delta", func(t *testing.T) {
		_, c := wildcardClient(t, true)
		c.get(xdstest.Request{Type: xdstest.CDS, Names: []string{"*", cluster("a")}})
		r := c.get(xdstest.Request{Type: xdstest.CDS, Unsubscribe: []string{cluster("a")}})
		wantNames(t, r, cluster("a")) // the client gets its state
		wantRemoved(t, r)
	})
}

func TestX16DroppedWildcardLeavesTheNames(t *testing.T) {
	t.Parallel()
	t.Run("sotw", func(t *testing.T) {
		_, c := wildcardClient(t, false)
		r := c.get(xdstest.Request{Type: xdstest.CDS, Names: []string{"*", cluster("a")}})
		wantNames(t, c.get(xdstest.Request{Type: xdstest.CDS, Names: []string{cluster("a")}, Nonce: r.Nonce}), cluster("a"))
	})
	t.Run("delta", func(t *testing.T) {
		h, c := wildcardClient(t, true)
		c.get(xdstest.Request{Type: xdstest.CDS, Names: []string{"*", cluster("a")}})
		r := c.get(xdstest.Request{Type: xdstest.CDS, Unsubscribe: []string{"*"}})
		wantNames(t, r)
		wantRemoved(t, r, cluster("b"))
		h.set(service("c", 3), gone("a"))
		r = c.accept(xdstest.CDS)
		wantNames(t, r)
		wantRemoved(t, r, cluster("a"))
	})
}

func TestX17PhantomUnsubscribeIsIgnored(t *testing.T) {
	_, c := wildcardClient(t, true)
	c.get(xdstest.Request{Type: xdstest.CDS})
	c.ask(xdstest.Request{Type: xdstest.CDS, Unsubscribe: []string{cluster("a"), "nobody"}})
	c.ask(xdstest.Request{Type: xdstest.EDS, Unsubscribe: []string{cluster("a"), "*"}})
	wantNames(t, c.get(xdstest.Request{Type: xdstest.EDS, Names: []string{cluster("b")}}), cluster("b"))
}

func TestX18SubscribingAgainSendsAgain(t *testing.T) {
	t.Run("sotw", func(t *testing.T) {
		_, c := wildcardClient(t, false)
		r := c.get(xdstest.Request{Type: xdstest.EDS, Names: []string{cluster("a"), cluster("b")}})
		c.ask(xdstest.Request{Type: xdstest.EDS, Names: []string{cluster("a")}, Nonce: r.Nonce, Version: r.Version})
		r = c.get(xdstest.Request{Type: xdstest.EDS, Names: []string{cluster("a"), cluster("b")}, Nonce: r.Nonce, Version: r.Version})
		wantNames(t, r, cluster("b"))
	})
	t.Run("delta", func(t *testing.T) {
		_, c := wildcardClient(t, true)
		q := xdstest.Request{Type: xdstest.EDS, Names: []string{cluster("a")}}
		first := c.get(q)
		if again := c.get(q); again.Versions[cluster("a")] != first.Versions[cluster("a")] {
			t.Errorf("got %v", again.Versions)
		}
	})
}

func TestBX05SubscribedAndUnsubscribedAtOnceIsSubscribed(t *testing.T) {
	h, c := wildcardClient(t, true)
	names := []string{cluster("a"), cluster("a")}
	wantNames(t, c.get(xdstest.Request{Type: xdstest.EDS, Names: names, Unsubscribe: names}), cluster("a"))
	h.set(service("a", 1, 9))
	wantNames(t, c.accept(xdstest.EDS), cluster("a"))
}

func TestX19WhatDoesNotExist(t *testing.T) {
	t.Run("sotw", func(t *testing.T) { // silence, until it comes
		h, c := wildcardClient(t, false)
		c.ask(xdstest.Request{Type: xdstest.EDS, Names: []string{cluster("z")}})
		c.get(xdstest.Request{Type: xdstest.LDS})
		h.set(service("z", 1))
		wantNames(t, c.accept(xdstest.EDS), cluster("z"))
	})
	t.Run("delta", func(t *testing.T) {
		h, c := wildcardClient(t, true)
		r := c.get(xdstest.Request{Type: xdstest.EDS, Names: []string{cluster("a"), cluster("z")}})
		wantNames(t, r, cluster("a"))
		wantRemoved(t, r, cluster("z"))
		h.set(service("z", 1))
		wantNames(t, c.accept(xdstest.EDS), cluster("z"))
	})
}
