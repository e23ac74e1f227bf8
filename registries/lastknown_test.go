package registries_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/registries"
	"isthmus.dev/isthmus/registries/registrytest"
)

// rich is a list with a bit of everything that has to survive on disk.
func rich(n byte, services int) federation.Edit {
	e := registrytest.Full(n, services)
	s := registrytest.Shard(n, 3)
	s.Endpoints[0].Labels = map[string]string{"app": "web"}
	s.Endpoints[1].Address = federation.UnixAddress("/run/web.sock")
	s.Endpoints[2].Address = federation.HostAddress("web.example")
	s.Created = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s.ServiceAccounts = []string{"web"}
	e.Services.Set[registrytest.Key("rich")] = s
	e.Workloads.Set = map[federation.WorkloadKey]*federation.Workload{{
		Namespace: "shop",
		Name:      "web-1",
	}: {Labels: map[string]string{"app": "web"}}}
	return e
}

// savedBy runs a hub with the list until it is on disk and returns its folder
// and file.
func savedBy(t *testing.T, list federation.Edit) (dir, file string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "state")
	synctest.Test(t, func(t *testing.T) {
		h := start(t, dir, cluster("c1", "", registrytest.Says(list)))
		after(time.Second)
		h.stop()
	})
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("the folder holds %v, %v", files, err)
	}
	return dir, files[0]
}

func TestP06DeadClusterIsServedAsItWas(t *testing.T) {
	dir, _ := savedBy(t, rich(1, 25))
	synctest.Test(t, func(t *testing.T) {
		var known federation.ClusterIdentity
		back := make(chan struct{})
		c := cluster("c1", "", func(ctx context.Context, to registries.Sink) error {
			to.Status(federation.RegistryStatus{Phase: federation.Syncing, Message: "connection refused"})
			<-back
			return registrytest.Says(registrytest.Full(1, 20))(ctx, to)
		})
		open := c.Open
		c.Open = func(id federation.ClusterIdentity) (registries.Registry, error) { known = id; return open(id) }
		h := start(t, dir, c)
		defer h.stop()
		if known.UID != "uid-1" {
			t.Errorf("the registry gets the cluster %+v, want uid-1", known)
		}
		after(9900 * time.Millisecond)
		h.wantServices(t, 0)
		if h.isReady() {
			t.Error("the start did not wait 10 s")
		}
		after(200 * time.Millisecond)
		s := h.wantPhase(t, "c1", federation.Stale)
		if !h.isReady() || s.LastKnownGood.IsZero() || !strings.Contains(s.Message, "connection refused") {
			t.Errorf("ready %v with status %+v", h.isReady(), s)
		}
		h.wantServices(t, 26)
		want := federation.NewAggregate(nil)
		want.Open(federation.ShardKey{Cluster: "c1", Provider: federation.Mock}).Update(rich(1, 25))
		svc, _ := h.Latest().Service(registrytest.Key("rich"))
		is, _ := want.Latest().Service(registrytest.Key("rich"))
		if len(svc.Endpoints[0].Endpoints) != 3 || !svc.Endpoints[0].Endpoints[0].Equal(&is.Endpoints[0].Endpoints[0]) ||
			!svc.Created.Equal(is.Created) {
			t.Errorf("restored: %+v\nsaved: %+v", svc.Endpoints, is.Endpoints)
		}
		if w, ok := h.Latest().Workload(federation.ShardKey{Cluster: "c1", Provider: federation.Mock}, federation.WorkloadKey{
			Namespace: "shop",
			Name:      "web-1",
		}); !ok || w.Labels["app"] != "web" {
			t.Errorf("the workload came back as %+v", w)
		}
		close(back)
		synctest.Wait()
		if s := h.wantPhase(t, "c1", federation.Ready); !s.LastKnownGood.IsZero() || s.Message != "" {
			t.Errorf("status is %+v after the cluster came back", s)
		}
		h.wantServices(t, 20)
	})
}

func TestClusterThatSyncsInTimeNeverShowsItsSavedState(t *testing.T) {
	dir, _ := savedBy(t, rich(1, 25))
	synctest.Test(t, func(t *testing.T) {
		h := start(t, dir, cluster("c1", "", func(ctx context.Context, to registries.Sink) error {
			pass(9 * time.Second)
			return registrytest.Says(registrytest.Full(1, 22))(ctx, to)
		}))
		defer h.stop()
		after(time.Minute)
		h.wantServices(t, 22)
		for _, s := range h.history.Since(0) {
			if _, ok := s.Service(registrytest.Key("rich")); ok {
				t.Errorf("version %d shows the saved state", s.Version())
			}
		}
	})
}

func TestF44EmptyFirstListAfterARestartIsHeld(t *testing.T) {
	dir, _ := savedBy(t, registrytest.Full(1, 25))
	synctest.Test(t, func(t *testing.T) {
		h := start(t, dir, cluster("c1", "", registrytest.Says(registrytest.Full(1, 0)), registrytest.Says(registrytest.Full(1, 25))))
		defer h.stop()
		h.wantPhase(t, "c1", federation.Held)
		if h.isReady() {
			t.Error("the start does not wait for the second list")
		}
		after(5 * time.Second)
		h.wantPhase(t, "c1", federation.Ready)
		h.wantServices(t, 25)
	})
}

func TestSeed22OneOfThreeFails(t *testing.T) {
	dir, _ := savedBy(t, set2(registrytest.Full(1, 0), "of-the-failing"))
	synctest.Test(t, func(t *testing.T) {
		h := start(t, dir,
			cluster("c1", "", fails("403: may not list services")),
			cluster("c2", "", registrytest.Says(set2(registrytest.Full(2, 0), "two"))),
			cluster("c3", "", registrytest.Says(set2(registrytest.Full(3, 0), "three"))))
		defer h.stop()
		for _, name := range []string{"of-the-failing", "two", "three"} {
			if _, ok := h.Latest().Service(registrytest.Key(name)); !ok {
				t.Errorf("service %s is not listed", name)
			}
		}
		s := h.wantPhase(t, "c1", federation.Failed)
		if !strings.Contains(s.Message, "403: may not list services") || s.LastKnownGood.IsZero() {
			t.Errorf("the failing cluster's status is %+v", s)
		}
		if !h.isReady() {
			t.Error("the failing cluster delays the start")
		}
	})
}

func TestSavedStateFollowsWithinASecondAndGoesWithItsCluster(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		var sink registries.Sink
		h := start(t, dir, cluster("c1", "", func(ctx context.Context, to registries.Sink) error {
			sink = to
			return registrytest.Says(registrytest.Full(1, 1))(ctx, to)
		}))
		defer h.stop()
		after(time.Second)
		sink.Update(set("new-one", registrytest.Shard(1, 1)))
		after(time.Second)
		file := filepath.Join(dir, "c1.Mock.db")
		data, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(data, []byte("new-one")) {
			t.Errorf("a second after the change the file is %.200s (%v)", data, err)
		}
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("the file's mode is %v, want 0600 (%v)", info.Mode(), err)
		}
		sink.Update(gone("new-one"))
		h.Detach("c1")
		after(2 * time.Second)
		if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
			t.Errorf("%v is left after the detach", left)
		}
	})
}

func TestRefusedSavedStates(t *testing.T) {
	for name, spoil := range map[string]func([]byte) []byte{
		"empty":   func([]byte) []byte { return nil },
		"cut":     func(b []byte) []byte { return b[:3*os.Getpagesize()+100] },
		"half":    func(b []byte) []byte { return b[:len(b)/2] },
		"flipped": func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("10.1.1.2"), []byte("10.1.1.3")) },
		"renamed": func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("s1.shop"), []byte("s9.shop")) },
		"foreign": func([]byte) []byte { return []byte("#!/bin/sh\nexit 1\n") },
		"newer": func(b []byte) []byte {
			return bytes.ReplaceAll(b, []byte(`"format":2`), []byte(`"format":3`))
		},
		"no pages":   func(b []byte) []byte { clear(b[2*os.Getpagesize():]); return b },
		"wild pages": func(b []byte) []byte { scribble(b[2*os.Getpagesize():]); return b },
		"no file":    func(b []byte) []byte { clear(b); return b },
	} {
		t.Run(name, func(t *testing.T) {
			dir, file := savedBy(t, registrytest.Full(1, 3))
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, spoil(data), 0o600); err != nil {
				t.Fatal(err)
			}
			synctest.Test(t, func(t *testing.T) { wantUnused(t, dir, "c1") })
		})
	}
	t.Run("of another cluster", func(t *testing.T) {
		dir, file := savedBy(t, registrytest.Full(1, 3))
		if err := os.Rename(file, filepath.Join(dir, "c2.Mock.db")); err != nil {
			t.Fatal(err)
		}
		synctest.Test(t, func(t *testing.T) { wantUnused(t, dir, "c2") })
	})
	t.Run("a folder", func(t *testing.T) {
		dir := t.TempDir()
		if err := os.Mkdir(filepath.Join(dir, "c1.Mock.db"), 0o700); err != nil {
			t.Fatal(err)
		}
		synctest.Test(t, func(t *testing.T) { wantUnused(t, dir, "c1") })
	})
}

func scribble(b []byte) {
	for i := range b {
		b[i] = byte(i*7 + i/251)
	}
}

func wantUnused(t *testing.T, dir, id string) {
	h := start(t, dir, cluster(id, "", silent))
	defer h.stop()
	after(11 * time.Second)
	h.wantServices(t, 0)
	if !h.isReady() {
		t.Error("the start still waits")
	}
	if !strings.Contains(h.log.String(), "level=WARN") || !strings.Contains(h.log.String(), "cluster="+id) {
		t.Errorf("there is no warning: %s", h.log)
	}
}
