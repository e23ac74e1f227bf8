package xds

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/xds/envoy"
	"isthmus.dev/isthmus/xds/xdstest"
)

// clusterClient has accepted the clusters of one service, web.
func clusterClient(t *testing.T, delta bool) (*hub, client) {
	h := newHub(t)
	h.set(service("web", 1))
	c := h.client(xdstest.Options{Delta: delta, Node: router()})
	wantNames(t, c.get(xdstest.Request{Type: xdstest.CDS}), cluster("web"))
	return h, c
}

func TestX01RefusedContentIsNotSentAgain(t *testing.T) {
	bothVariants(t, func(t *testing.T, delta bool) {
		h, c := clusterClient(t, delta)
		h.set(service("bad", 2))
		r := c.next(xdstest.CDS)
		c.nack(r, "Error adding/updating cluster(s) "+cluster("bad")+": unknown something")
		if !delta { // the repair repeats the last good state
			wantNames(t, c.accept(xdstest.CDS), cluster("web"))
		}
		h.eventually("the refusal is shown", func(v *fleet.Value) bool {
			s := v.ByID(router().Id)[0].Sync[xdstest.CDS]
			return s.State == fleet.Nacked && strings.Contains(s.LastError, "unknown something")
		})
		h.set(service("other", 3))
		r = c.accept(xdstest.CDS)
		if _, again := r.Resources[cluster("bad")]; again {
			t.Error("the refused cluster was sent again")
		}
		if _, there := r.Resources[cluster("other")]; !there {
			t.Errorf("the good cluster is missing: %v", r.Names())
		}
		h.eventually("the refusal still stands", func(v *fleet.Value) bool {
			s := v.ByID(router().Id)[0].Sync[xdstest.CDS]
			return s.State == fleet.Nacked && s.VersionAcked == r.Version
		})
	})
}

func TestX02FixedContentIsSentAndAccepted(t *testing.T) {
	bothVariants(t, func(t *testing.T, delta bool) {
		h, c := clusterClient(t, delta)
		h.set(service("bad", 2))
		refused := c.next(xdstest.CDS)
		c.nack(refused, cluster("bad")+": no")
		if !delta {
			c.accept(xdstest.CDS)
		}
		fixed := service("bad", 2)
		fixed.Set[key("bad")].Resolution = 1 // DNS: another cluster
		h.set(fixed)
		r := c.accept(xdstest.CDS)
		if _, there := r.Resources[cluster("bad")]; !there || r.Version == refused.Version {
			t.Errorf("version %s → %s with %v", refused.Version, r.Version, r.Names())
		}
		h.eventually("all is well", func(v *fleet.Value) bool {
			s := v.ByID(router().Id)[0].Sync[xdstest.CDS]
			return s.State == fleet.Synced && s.LastError == "" && s.VersionAcked == r.Version
		})
	})
}

func TestX03RepairCarriesTheGoodOnes(t *testing.T) {
	h, c := clusterClient(t, true)
	d := service("bad", 2)
	d.Set[key("good")], d.Set[key("web")] = httpShard(3), httpShard(1)
	d.Set[key("web")].Resolution = 1
	h.set(d)
	r := c.next(xdstest.CDS)
	wantNames(t, r, cluster("bad"), cluster("good"), cluster("web"))
	before := r.Versions[cluster("good")]
	c.nack(r, cluster("bad")+": no. "+cluster("web")+": no, too")
	repair := c.accept(xdstest.CDS)
	wantNames(t, repair, cluster("good"), cluster("web"))
	if repair.Versions[cluster("good")] != before || repair.Versions[cluster("web")] == r.Versions[cluster("web")] {
		t.Errorf("repair has %v, refused was %v", repair.Versions, r.Versions)
	}
	c.Close()
	// A client that reports only what it accepted before loses the rest.
	c = h.client(xdstest.Options{Delta: true, Node: router()})
	r = c.get(xdstest.Request{Type: xdstest.CDS, Initial: map[string]string{cluster("good"): before, cluster("zombie"): "1"}})
	wantNames(t, r, cluster("web"), cluster("bad"))
	wantRemoved(t, r, cluster("zombie"))
}

func TestX04RefusedSotWStillDeletesWhatIsAbsent(t *testing.T) {
	h, c := clusterClient(t, false)
	d := service("bad", 2)
	d.Gone = gone("web").Gone
	d.Set[key("good")] = httpShard(3)
	h.set(d)
	r := c.next(xdstest.CDS)
	wantNames(t, r, cluster("bad"), cluster("good"))
	c.nack(r, cluster("bad")+" is bad")
	repair := c.accept(xdstest.CDS)
	wantNames(t, repair, cluster("good"))
	h.eventually("hub and client agree", func(v *fleet.Value) bool {
		return v.ByID(router().Id)[0].Sync[xdstest.CDS].VersionAcked == repair.Version
	})
}

func TestRefusalWithoutNamesAccusesAllThatIsNew(t *testing.T) {
	bothVariants(t, func(t *testing.T, delta bool) {
		h, c := clusterClient(t, delta)
		d := service("one", 2)
		d.Set[key("two")] = httpShard(3)
		h.set(d)
		c.nack(c.next(xdstest.CDS), "no")
		if !delta {
			r := c.next(xdstest.CDS)
			wantNames(t, r, cluster("web"))
			c.nack(r, "no, again") // nothing new is in it: that is all
		}
		h.set(service("three", 4))
		r := c.accept(xdstest.CDS)
		if delta {
			wantNames(t, r, cluster("three"))
		} else {
			wantNames(t, r, cluster("three"), cluster("web"))
		}
	})
}

// A client that refuses whatever it gets is left alone in the end.
func TestRefusalsOfEverythingEnd(t *testing.T) {
	bothVariants(t, func(t *testing.T, delta bool) {
		d := newDrive(t, delta, routerNode(t))
		d.set(service("a", 1), service("b", 2), service("c", 3))
		d.start(request{kind: envoy.ClusterType})
		changes := service("new", 4)
		changes.Gone = gone("a").Gone
		d.set(changes)
		queue, refused := d.due(), 0
		for ; len(queue) > 0; queue = queue[1:] {
			refused++
			if refused > 10 {
				t.Fatalf("refused %d times, and %d resources and removals of %q come again", refused, len(queue[0].resources), queue[0].removed)
			}
			queue = append(queue, d.nack(queue[0], "no")...)
		}
		d.none(d.after(time.Hour))
	})
}

func TestX01RefusedEndpointsThatAreWantedNoMoreAreForgiven(t *testing.T) {
	bothVariants(t, func(t *testing.T, delta bool) {
		d := endpointDrive(t, delta)
		d.set(service("web", 1, 2))
		r := d.one(d.due(), envoy.EndpointType)
		for _, repair := range d.nack(r, "no") {
			r = repair
			d.none(d.ack(r))
		}
		sub := d.state.subs[envoy.EndpointType]
		if sub.sync.State != fleet.Nacked {
			t.Fatalf("state is %s", sub.sync.State)
		}
		q := request{kind: envoy.EndpointType, nonce: sub.responses.lastNonce}
		if delta {
			q = request{kind: envoy.EndpointType, unsubscribe: []string{cluster("web")}}
		}
		d.none(d.ask(q))
		if sub.sync.State != fleet.Synced || sub.sync.LastError != "" {
			t.Errorf("state is %s: %s", sub.sync.State, sub.sync.LastError)
		}
	})
}

// A slow client refuses what it was told to remove in the meantime.
func TestX02RefusedContentThatIsGoneIsForgiven(t *testing.T) {
	bothVariants(t, func(t *testing.T, delta bool) {
		d := newDrive(t, delta, routerNode(t))
		d.set(service("web", 1))
		d.start(request{kind: envoy.ClusterType})
		d.set(service("bad", 2))
		bad := d.one(d.due(), envoy.ClusterType)
		d.set(gone("bad"))
		removal := d.one(d.after(time.Hour), envoy.ClusterType)
		again := d.nack(bad, cluster("bad")+": no")
		d.none(d.ack(removal))
		for _, r := range again {
			d.none(d.ack(r))
		}
		if sub := d.state.subs[envoy.ClusterType]; sub.sync.State != fleet.Synced || sub.sync.LastError != "" {
			t.Errorf("state is %s: %s", sub.sync.State, sub.sync.LastError)
		}
	})
}

func TestBX09ErrorTextsAreCutAndEscaped(t *testing.T) {
	for name, text := range map[string]string{
		"long": strings.Repeat("a", 4<<20), "terminal": "\x1b[31mred\x1b[0m\x07\u202e", "invalid": "\xff\xfe",
	} {
		got := printable(text)
		if len(got) > 1024 || strings.ContainsAny(got, "\x1b\x07\u202e") || !utf8.ValidString(got) || got == "" {
			t.Errorf("%s: %d bytes, %.60q", name, len(got), got)
		}
	}
	got := printable("Proto constraint validation failed (Secret: bad) goo.gle/debugproto \n private_key { inline: \"hunter2\" }")
	if strings.Contains(got, "hunter2") || !strings.Contains(got, "validation failed") {
		t.Errorf("got %q", got)
	}
}

func TestNamesInTextsAreWholeWords(t *testing.T) {
	name := "outbound|80||web.shop"
	for text, want := range map[string]bool{
		"cluster outbound|80||web.shop: no": true, "outbound|80||web.shop.": true, "(outbound|80||web.shop)": true,
		"outbound|80||web.shop.svc: no": false, "xoutbound|80||web.shop": false, "outbound|80||web.shopping": false, "": false,
		"outbound|80||web.shopping and outbound|80||web.shop": true,
	} {
		if got := mentions(text, name); got != want {
			t.Errorf("mentions(%q) = %t", text, got)
		}
	}
}
