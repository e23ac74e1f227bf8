package registries_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/registries"
	"isthmus.dev/isthmus/registries/registrytest"
)

// talking is a cluster whose registry hands its sink to the test.
func talking(id string, list federation.Edit, to *registries.Sink) registries.Cluster {
	return cluster(id, "", func(ctx context.Context, sink registries.Sink) error {
		*to = sink
		return registrytest.Says(list)(ctx, sink)
	})
}

// TestR60OneChangeWritesOneRecord: what a change writes to disk does not depend
// on how large the cluster is.
func TestR60OneChangeWritesOneRecord(t *testing.T) {
	written := func(services int) (pages int) {
		dir := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			var sink registries.Sink
			h := start(t, dir, talking("c1", registrytest.Full(1, services), &sink))
			defer h.stop()
			after(time.Second)
			file := filepath.Join(dir, "c1.Mock.db")
			before, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			sink.Update(set("s1", registrytest.Shard(1, 3)))
			after(time.Second)
			now, err := os.ReadFile(file)
			if err != nil || !bytes.Contains(now, []byte("10.1.1.3")) {
				t.Fatalf("a second after the change, the file lacks it (%v)", err)
			}
			pages = changedPages(before, now)
		})
		return pages
	}
	few, many := written(100), written(3000)
	t.Logf("pages written for one change: %d of 100 services, %d of 3,000", few, many)
	if many > 2*few+4 {
		t.Errorf("one change writes %d pages of a cluster of 3,000 services, %d of one of 100", many, few)
	}
}

func changedPages(before, now []byte) (n int) {
	size := os.Getpagesize()
	for at := 0; at < len(now); at += size {
		end := min(at+size, len(now))
		if end > len(before) || !bytes.Equal(before[at:end], now[at:end]) {
			n++
		}
	}
	return n
}

// TestR60SavedStateIsWhatWasPublishedAfterAnyHistory restores the file after
// random changes and complete lists.
func TestR60SavedStateIsWhatWasPublishedAfterAnyHistory(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			dir := t.TempDir()
			var want string
			synctest.Test(t, func(t *testing.T) {
				var sink registries.Sink
				h := start(t, dir, talking("c1", rich(1, 15), &sink))
				defer h.stop()
				r := rand.New(rand.NewPCG(seed, 60))
				for range 25 {
					sink.Update(anyEdit(r))
					after(time.Duration(r.IntN(1500)) * time.Millisecond)
				}
				want = contributionOf(t, h.Latest())
			})
			synctest.Test(t, func(t *testing.T) {
				h := start(t, dir, cluster("c1", "", silent))
				defer h.stop()
				after(11 * time.Second)
				if got := contributionOf(t, h.Latest()); got != want {
					t.Errorf("restored:\n%s\npublished before:\n%s", got, want)
				}
			})
		})
	}
}

// anyEdit keeps more than half of the services, so that no list is held.
func anyEdit(r *rand.Rand) federation.Edit {
	name := fmt.Sprintf("s%d", r.IntN(20))
	workload := federation.WorkloadKey{Namespace: "shop", Name: fmt.Sprintf("w%d", r.IntN(5))}
	switch r.IntN(6) {
	case 0:
		return rich(byte(r.IntN(3)), 12+r.IntN(8))
	case 1:
		return gone(name)
	case 2:
		return federation.Edit{Workloads: federation.Delta[federation.WorkloadKey,
			*federation.Workload]{Gone: []federation.WorkloadKey{workload}}}
	case 3:
		return federation.Edit{Workloads: federation.Delta[federation.WorkloadKey,
			*federation.Workload]{Set: map[federation.WorkloadKey]*federation.Workload{
			workload: {Labels: map[string]string{"v": fmt.Sprint(r.IntN(3))}},
		}}}
	default:
		return set(name, registrytest.Shard(byte(r.IntN(3)), 1+r.IntN(3)))
	}
}

// contributionOf is all that c1 says, as text.
func contributionOf(t *testing.T, s *federation.Snapshot) string {
	t.Helper()
	e := s.Contribution(federation.ShardKey{Cluster: "c1", Provider: federation.Mock})
	c, _ := s.Cluster("c1")
	lines := []string{c.Identity.UID}
	for k, v := range e.Services.Set {
		lines = append(lines, fmt.Sprintf("%v %s", k, asJSON(t, v)))
	}
	for k, v := range e.Workloads.Set {
		lines = append(lines, fmt.Sprintf("%v %s", k, asJSON(t, v)))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func asJSON(t *testing.T, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestFailedWriteIsTriedAgain: a state that could not be written is on disk once
// writing works again, without another change.
func TestFailedWriteIsTriedAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	if err := os.WriteFile(dir, nil, 0o600); err != nil { // a file where the folder belongs
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		h := start(t, dir, cluster("c1", "", registrytest.Says(registrytest.Full(1, 2))))
		defer h.stop()
		after(time.Second)
		if !strings.Contains(h.log.String(), "was not saved") {
			t.Errorf("the log has no warning: %s", h.log)
		}
		if err := os.Remove(dir); err != nil {
			t.Fatal(err)
		}
		after(6 * time.Second)
		if _, err := os.Stat(filepath.Join(dir, "c1.Mock.db")); err != nil {
			t.Error(err)
		}
	})
}
