package fleet_test

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"isthmus.dev/isthmus/federation/fleet"
)

const cds = "type.googleapis.com/envoy.config.cluster.v3.Cluster"

func TestReportsAreInTheNextLatest(t *testing.T) {
	f := fleet.New()
	before := f.Latest()
	s := f.Connect(fleet.Proxy{NodeID: "sidecar~10.0.0.1~a.x~x.local", Protocol: fleet.Delta})
	<-before.Superseded()
	s.Report(cds, fleet.Sync{State: fleet.Pending, VersionSent: "v1"})
	now := f.Latest()
	if f.Latest() != now {
		t.Error("a second Latest without a report made a new value")
	}
	if got := now.ByID("sidecar~10.0.0.1~a.x~x.local"); len(got) != 1 || got[0].Sync[cds].VersionSent != "v1" {
		t.Fatalf("ByID = %+v", got)
	}
	s.Report(cds, fleet.Sync{State: fleet.Synced, VersionSent: "v1", VersionAcked: "v1"})
	<-now.Superseded()
	if state := now.ByID("sidecar~10.0.0.1~a.x~x.local")[0].Sync[cds].State; state != fleet.Pending {
		t.Errorf("an old value changed to %s", state)
	}
	if c := f.Latest().ChangesSince(now.Version()); len(c.Changed) != 1 || c.Changed[0].Sync[cds].State != fleet.Synced {
		t.Errorf("changes = %+v", c)
	}
}

func TestX40StreamsOfOneNodeAreIndependent(t *testing.T) {
	f := fleet.New()
	first := f.Connect(fleet.Proxy{NodeID: "n"})
	second := f.Connect(fleet.Proxy{NodeID: "n"})
	if n := len(f.Latest().ByID("n")); n != 2 {
		t.Fatalf("%d streams, want 2", n)
	}
	at := f.Latest().Version()
	first.Close()
	first.Report(cds, fleet.Sync{State: fleet.Synced})
	left := f.Latest().ByID("n")
	if len(left) != 1 || left[0].StreamID != second.ID() {
		t.Errorf("left = %+v, want stream %s", left, second.ID())
	}
	if c := f.Latest().ChangesSince(at); len(c.Gone) != 1 || c.Gone[0].StreamID != first.ID() {
		t.Errorf("changes = %+v", c)
	}
}

func TestPagesCoverEveryProxyOnce(t *testing.T) {
	f := fleet.New()
	for i := range 25 {
		f.Connect(fleet.Proxy{NodeID: fmt.Sprintf("n%02d", 24-i/2)})
	}
	v := f.Latest()
	all := slices.Collect(v.Proxies())
	var paged []*fleet.Proxy
	for after := (fleet.Key{}); ; {
		n := 0
		for p := range v.ProxiesAfter(after) {
			paged, after = append(paged, p), p.Key()
			n++
			if n == 4 {
				break
			}
		}
		if n < 4 {
			break
		}
	}
	if len(all) != 25 || !slices.Equal(all, paged) {
		t.Errorf("all %d, paged %d", len(all), len(paged))
	}
	if !slices.IsSortedFunc(all, func(a, b *fleet.Proxy) int { return slices.Compare([]byte(a.NodeID), []byte(b.NodeID)) }) {
		t.Error("not in the order of node IDs")
	}
}

func TestPropertyChangesSinceRebuildsTheFleet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := fleet.New()
		open := map[string]*fleet.Stream{}
		mirror, cursor := map[fleet.Key]*fleet.Proxy{}, uint64(0)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			ids := slices.Sorted(maps.Keys(open))
			switch action := rapid.IntRange(0, 4).Draw(t, "action"); {
			case action == 0 || len(ids) == 0:
				s := f.Connect(fleet.Proxy{NodeID: rapid.SampledFrom([]string{"a", "b", "ab"}).Draw(t, "node")})
				open[s.ID()] = s
			case action == 1:
				id := rapid.SampledFrom(ids).Draw(t, "stream")
				open[id].Close()
				delete(open, id)
			case action == 2:
				open[rapid.SampledFrom(ids).Draw(t, "stream")].Report(cds, fleet.Sync{VersionSent: rapid.StringN(1, 3, -1).Draw(t, "v")})
			case action == 3:
				told := &fleet.Delivery{Waits: rapid.Bool().Draw(t, "waits")}
				open[rapid.SampledFrom(ids).Draw(t, "stream")].Deliver(uint64(rapid.IntRange(1, 9).Draw(t, "snapshot")), map[string]*fleet.Delivery{cds: told})
			default:
				cursor = follow(f.Latest(), mirror, cursor)
			}
		}
		v := f.Latest()
		follow(v, mirror, cursor)
		if v.Count() != len(mirror) || v.Count() != len(open) {
			t.Fatalf("fleet %d, mirror %d, open %d", v.Count(), len(mirror), len(open))
		}
		for p := range v.Proxies() {
			if mirror[p.Key()] != p {
				t.Fatalf("mirror of %v is behind", p.Key())
			}
		}
	})
}

func follow(v *fleet.Value, mirror map[fleet.Key]*fleet.Proxy, cursor uint64) uint64 {
	c := v.ChangesSince(cursor)
	if c.All {
		clear(mirror)
		for p := range v.Proxies() {
			mirror[p.Key()] = p
		}
	}
	for _, p := range c.Changed {
		mirror[p.Key()] = p
	}
	for _, key := range c.Gone {
		delete(mirror, key)
	}
	return v.Version()
}

func BenchmarkReport(b *testing.B) {
	f := fleet.New()
	var streams []*fleet.Stream
	for i := range 1000 {
		streams = append(streams, f.Connect(fleet.Proxy{NodeID: fmt.Sprint(i)}))
	}
	f.Latest()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		streams[i%1000].Report(cds, fleet.Sync{State: fleet.Synced})
	}
}

// TestR97ABuildMakesAnotherValue: readers are woken, and the value differs in nothing else.
func TestR97ABuildMakesAnotherValue(t *testing.T) {
	f := fleet.New()
	f.Connect(fleet.Proxy{NodeID: "a"}).Deliver(1, map[string]*fleet.Delivery{cds: {Waits: true}})
	before := f.Latest()
	f.Built()
	<-before.Superseded()
	now := f.Latest()
	if now == before || now.Version() <= before.Version() {
		t.Error("the value is the one before")
	}
	if c := now.ChangesSince(before.Version()); c.All || len(c.Changed)+len(c.Gone) > 0 {
		t.Errorf("streams changed: %+v", c)
	}
	if was, is := before.Rollout(1), now.Rollout(1); len(is) != 1 || !reflect.DeepEqual(is, was) {
		t.Errorf("the rollout became %v, and was %v", is, was)
	}
}
