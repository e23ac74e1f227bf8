package config_test

import (
	"log/slog"
	"maps"
	"testing"
	"testing/synctest"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
)

// counted has numbers of changes by kind and event.
type counted map[string]int

func (c counted) Changed(kind federation.Kind, event string) { c[kind.Name+" "+event]++ }

// TestU101ChangesAreCounted: each change of what is in force counts once, in lists, too; the same again and what another
// source hides are none.
func TestU101ChangesAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := counted{}
		etcd, file := &fakeSource{kinds: networks}, &fakeSource{kinds: networks}
		mesh := federation.NewAggregate(nil)
		a := config.NewAggregate(config.Options{Hub: "hub", Meter: got},
			mesh.Open(federation.ShardKey{Cluster: "hub", Provider: federation.External}), slog.New(slog.DiscardHandler),
			config.Named{Name: "ETCD", Source: etcd}, config.Named{Name: "FILE", Source: file})
		stop := start(t, a)
		defer stop()
		wants := func(when string, adds, updates, deletes int) {
			t.Helper()
			synctest.Wait()
			want := counted{"Network add": adds, "Network update": updates, "Network delete": deletes}
			maps.DeleteFunc(want, func(_ string, n int) bool { return n == 0 })
			if !maps.Equal(got, want) {
				t.Errorf("%s: counted %v, want %v", when, got, want)
			}
		}
		etcd.give(1, true, net(t, "a", "10.1.0.0/16"), net(t, "b", "10.2.0.0/16"))
		wants("a list", 2, 0, 0)
		file.give(1, true, net(t, "a", "10.3.0.0/16"))
		wants("an object that is hidden", 2, 0, 0)
		etcd.give(2, false, net(t, "b", "10.4.0.0/16"))
		wants("a change", 2, 1, 0)
		etcd.give(3, true, net(t, "b", "10.4.0.0/16"), net(t, "c", "10.5.0.0/16"))
		wants("a list without the object that hides another", 3, 2, 0)
		file.give(4, true)
		wants("an empty list", 3, 2, 1)
	})
}
