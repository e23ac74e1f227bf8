package crd_test

import (
	"os"
	"path/filepath"
	"testing"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/configtest"
	"isthmus.dev/isthmus/federation/config/crd"
)

// stale shows the cluster as a registry does that restored its state: it is away.
func (r *rig) stale(id federation.ClusterID, uid string) {
	r.operator.Update(federation.Edit{Clusters: federation.Delta[federation.ClusterID, federation.ClusterSpec]{
		Set: map[federation.ClusterID]federation.ClusterSpec{id: {Provider: federation.Kubernetes}},
	}})
	r.snapshots.Open(federation.ShardKey{Provider: federation.Kubernetes, Cluster: id}).Update(federation.Edit{
		Identity: &federation.ClusterIdentity{UID: uid}, Status: &federation.RegistryStatus{Phase: federation.Stale, Message: "it does not answer"},
	})
}

// TestG67RestartWhileTheServerIsAway: a hub that starts while the API server of a cluster is
// stopped has the objects that it read last, with their age, and reads what changed once the
// server answers. Those of another cluster, and damaged files, are not used.
func TestG67RestartWhileTheServerIsAway(t *testing.T) {
	t.Parallel()
	server, dir := testbed.StartKube(t, testbed.KubeOptions{}), t.TempDir()
	install(t, server, definition(t, "istio", "virtualservices.networking.istio.io"))
	server.Apply(namespace("shop"), route("shop", "a", "v1"), route("shop", "b", "v1"))
	kept := func(o *crd.Options) { o.Dir = dir }
	first := newRig(t, kept)
	first.read(all("c1", "shop"))
	first.attach("c1", server.Admin, 0)
	recorder, stop := configtest.Listen(t, first.source)
	recorder.Wait(t, "both", func(s configtest.Seen) bool { return len(s.Objects) == 2 })
	server.Apply(route("shop", "a", "v2"))
	recorder.Wait(t, "the change", func(s configtest.Seen) bool { return says(s.Objects[routeKey("shop", "a")], "v2") })
	c, _ := first.snapshots.Latest().Cluster("c1")
	first.cancel()
	stop()
	server.Kill()

	second := newRig(t, kept)
	second.read(all("c1", "shop"))
	second.stale("c1", c.Identity.UID)
	restored, stopSecond := configtest.Listen(t, second.source)
	seen := restored.Wait(t, "what was read last", func(s configtest.Seen) bool {
		return len(s.Objects) == 2 && problem(s, "UNREACHABLE", "before the hub started")
	})
	if !seen.Updates[0].Full || len(seen.Updates[0].Events) != 2 || !says(seen.Objects[routeKey("shop", "a")], "v2") {
		t.Errorf("the first update is %+v", seen.Updates[0])
	}
	server.Restart()
	server.Delete(route("shop", "b", ""))
	second.follow("c1", server.Admin)
	restored.Wait(t, "what there is", func(s configtest.Seen) bool {
		return len(s.Objects) == 1 && !problem(s, "UNREACHABLE", "before the hub started")
	})
	second.cancel()
	stopSecond()

	other := newRig(t, kept)
	other.read(all("c1", "shop"))
	other.stale("c1", "another")
	of, stopOther := configtest.Listen(t, other.source)
	of.Wait(t, "nothing of another cluster", func(s configtest.Seen) bool { return len(s.Updates) == 1 && len(s.Objects) == 0 })
	other.cancel()
	stopOther()

	files, err := filepath.Glob(filepath.Join(dir, "*.db"))
	if err != nil || len(files) != 1 {
		t.Fatalf("the files are %v, %v", files, err)
	}
	if info, err := os.Stat(files[0]); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file is %v, %v", info, err)
	}
	if err := os.Truncate(files[0], 5000); err != nil {
		t.Fatal(err)
	}
	damaged := newRig(t, kept)
	damaged.read(all("c1", "shop"))
	damaged.stale("c1", c.Identity.UID)
	from, _ := configtest.Listen(t, damaged.source)
	from.Wait(t, "nothing of a damaged file", func(s configtest.Seen) bool { return len(s.Updates) == 1 && len(s.Objects) == 0 })
}
