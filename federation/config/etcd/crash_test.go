package etcd_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/configtest"
	"isthmus.dev/isthmus/federation/config/etcd"
)

var errCrash = errors.New("stopped by the test")

func TestCrashAtEachStepLeavesNothingByHalf(t *testing.T) {
	for _, c := range []struct {
		name, step string
		nth        int
		inForce    bool
		staged     int
	}{
		{"before anything is staged", "stage", 1, false, 0},
		{"partly staged", "stage", 2, false, 1},
		{"staged", "staged", 1, false, 1},
		{"before the head moves", "publish", 1, false, 1},
		{"before it is acknowledged", "published", 1, true, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := opened(t, etcd.Options{})
			crashing := s.Config(patient())
			base := configtest.Must(t, crashing, counters(0, 1))
			commit := counters(base, 2)
			commit.IdempotencyKey = "again"
			crashing.StopAt(c.step, c.nth, errCrash)
			if _, err := crashing.Commit(t.Context(), commit); !errors.Is(err, errCrash) {
				t.Fatalf("the error is %v", err)
			}
			if n := staged(t, s); n != c.staged {
				t.Errorf("%d transactions are staged, want %d", n, c.staged)
			}
			want := base
			if c.inForce {
				want++
			}
			counted := &counts{}
			o := eager()
			o.OrphanAge = 20 * time.Millisecond
			o.Meter = counted
			anew := s.Config(o)
			recorder, stop := configtest.Listen(t, anew)
			seen := recorder.WaitRevision(t, want)
			if seen.Revision() != want || counterOf(seen.Objects[configtest.Key("counter-3")]) != want {
				t.Fatalf("the store is at %d with %d", seen.Revision(), counterOf(seen.Objects[configtest.Key("counter-3")]))
			}
			waitUntil(t, "the orphan to be collected", func() bool { return counted.get(etcd.CountOrphans) == c.staged && staged(t, s) == 0 })
			stop() // its collector gives a commit only a moment
			// The same again is one commit, whatever came of the first.
			revision, err := anew.Commit(t.Context(), commit)
			var repeated *config.Repeated
			if errors.As(err, &repeated) && c.inForce {
				revision, err = repeated.Revision, nil
			}
			if err != nil || revision != base+1 {
				t.Errorf("repeated: %d, %v", revision, err)
			}
			if found, err := anew.Find(t.Context(), "again"); err != nil || found == nil || found.Revision != base+1 {
				t.Errorf("found %+v, %v", found, err)
			}
		})
	}
}

func TestCollectorNeverTakesWhatACommitRefersTo(t *testing.T) {
	t.Parallel()
	s := opened(t, etcd.Options{})
	o := eager()
	o.OrphanAge = 1 // as if every commit took too long
	counted := &counts{}
	o.Meter = counted
	var looking sync.Mutex // the collector asks for the time before it looks
	o.Now = func() time.Time {
		looking.Lock()
		defer looking.Unlock()
		return time.Now()
	}
	collecting := s.Config(o)
	configtest.Listen(t, collecting)
	slow := s.Config(etcd.ConfigOptions{Patience: time.Minute})
	// It is collected between staging and commit: the commit must not be taken.
	slow.Steps(func(name string) {
		if name == "publish" {
			waitUntil(t, "the collector", func() bool { return counted.get(etcd.CountOrphans) == 1 })
		}
	})
	if _, err := slow.Commit(t.Context(), counters(0, 1)); err == nil {
		t.Fatal("a commit refers to values that are gone")
	}
	slow.Steps(func(string) {})
	revision, last := int64(0), int64(min(max(*crashes, 8), 20))
	for revision < last {
		got, err := slow.Commit(context.Background(), counters(revision, revision+1))
		if err != nil {
			if objects, err := slow.At(t.Context(), revision); err != nil || revision > 0 && len(objects) != counterCount {
				t.Fatalf("at %d there are %d objects, %v", revision, len(objects), err)
			}
			looking.Lock() // a slow machine may never be quicker than the collector
			got = configtest.Must(t, slow, counters(revision, revision+1))
			looking.Unlock()
		}
		revision = got
	}
	records, err := slow.Records(t.Context(), 0, 100)
	if err != nil || len(records) != int(last) {
		t.Errorf("%d records, %v", len(records), err)
	}
}

func TestOldHistoryIsRetiredAndTheRestStays(t *testing.T) {
	s := opened(t, etcd.Options{})
	o := eager()
	o.Retain, o.CheckpointRecords = 10, 4
	counted := &counts{}
	o.Meter = counted
	c := s.Config(o)
	recorder, _ := configtest.Listen(t, c)
	first := configtest.Set(0, configtest.Object("first", 0), configtest.Object("counter", 0))
	first.IdempotencyKey = "first"
	base := configtest.Must(t, c, first)
	for base < 40 {
		base = configtest.Must(t, c, configtest.Set(base, configtest.Object("counter", base)))
		recorder.WaitRevision(t, base)
	}
	waitUntil(t, "old records to go", func() bool { return len(keys(t, s, "/isthmus/v1/config/log/")) < 16 })
	records, err := c.Records(t.Context(), 0, 100)
	if err != nil || len(records) < 10 || records[0].Revision != base {
		t.Fatalf("%d records are left, %v", len(records), err)
	}
	for _, r := range records {
		objects, err := c.At(t.Context(), r.Revision)
		if r.Revision <= base-o.Retain && errors.Is(err, config.ErrUnknownRevision) {
			continue // it was retired after the records were read
		}
		if err != nil || len(objects) != 2 {
			t.Errorf("at %d: %d objects, %v", r.Revision, len(objects), err)
		}
	}
	if _, err := c.At(t.Context(), 3); err == nil {
		t.Error("revision 3 is there although it was retired")
	}
	if n := len(keys(t, s, "/isthmus/v1/config/once/")); n != 0 {
		t.Errorf("%d idempotency keys of retired records are left", n)
	}
	anew := s.Config(patient())
	again, _ := configtest.Listen(t, anew)
	if seen := again.WaitRevision(t, base); len(seen.Objects) != 2 || seen.Objects[configtest.Key("first")].Revision != 1 {
		t.Errorf("from a checkpoint come %v", seen.Objects)
	}
	waitUntil(t, "checkpoints, retired records and nothing that is staged", func() bool {
		return counted.get(etcd.CountRetired) > 0 && counted.get(etcd.CountCheckpoints) > 0 && staged(t, s) == 0
	})
}
