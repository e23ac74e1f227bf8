package etcd_test

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/configtest"
	"isthmus.dev/isthmus/federation/config/etcd"
)

func code(c string) func(configtest.Seen) bool {
	return func(s configtest.Seen) bool { return s.Codes() == c }
}

func TestF13LostQuorumFailsWritesInTimeAndHealsByItself(t *testing.T) {
	members := cluster(t, 3)
	s := reach(t, members[0].endpoint(), members[1].endpoint(), members[2].endpoint())
	o := eager()
	o.Patience = 2 * time.Second
	c := s.Config(o)
	base := configtest.Must(t, s.Config(patient()), configtest.Set(0, configtest.Object("a", 1)))
	recorder, _ := configtest.Listen(t, c)
	recorder.WaitRevision(t, base)
	members[1].Kill()
	members[2].Kill()
	clock, began := testbed.StartClock(t), time.Now()
	_, err := c.Commit(t.Context(), configtest.Set(base, configtest.Object("a", 2)))
	if took := clock.Since(began); !errors.Is(err, config.ErrUnavailable) || took > 5*time.Second {
		t.Errorf("after %v a commit gives %v", took, err)
	}
	seen := recorder.Wait(t, "trouble", func(s configtest.Seen) bool { return strings.HasPrefix(s.Codes(), "UNREACHABLE") })
	if len(seen.Objects) != 1 || !strings.Contains(seen.Problems[0].Message, "since 20") {
		t.Errorf("%d objects, %v", len(seen.Objects), seen.Problems)
	}
	members[1].Restart()
	recorder.Wait(t, "the end of trouble but for the member that is still stopped", code("MEMBER_DOWN"))
	waitUntil(t, "a commit to be taken", func() bool {
		base, err := c.Records(t.Context(), 0, 1)
		if err != nil {
			return false
		}
		_, err = c.Commit(t.Context(), configtest.Set(base[0].Revision, configtest.Object("a", 3)))
		return err == nil
	})
	recorder.Wait(t, "it", func(s configtest.Seen) bool { return configtest.Value[int](s.Objects[configtest.Key("a")]) == 3 })
}

func TestF17CompactionDuringACutGivesWhatDiffers(t *testing.T) {
	members := cluster(t, 1)
	k := linkTo(t, members[0])
	near, far := reach(t, members[0].endpoint()), reach(t, k.endpoint())
	writer := near.Config(patient())
	base := configtest.Must(t, writer, configtest.Set(0, configtest.Object("stays", 1), configtest.Object("goes", 1),
		configtest.Object("turns", 1)))
	for _, name := range []string{"leased-stays", "leased-goes"} {
		if _, err := writer.Register(t.Context(), *configtest.Object(name, 1), time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	o := eager()
	o.Patience = time.Second
	recorder, _ := configtest.Listen(t, far.Config(o))
	before := recorder.Wait(t, "all", func(s configtest.Seen) bool { return len(s.Objects) == 5 })
	k.set(true, false)
	recorder.Wait(t, "trouble", code("UNREACHABLE"))
	base = configtest.Must(t, writer, configtest.Gone(base, "goes"))
	base = configtest.Must(t, writer, configtest.Set(base, configtest.Object("turns", 2), configtest.Object("comes", 1)))
	if err := writer.Release(t.Context(), configtest.Key("leased-goes")); err != nil {
		t.Fatal(err)
	}
	now, err := near.Client().Get(t.Context(), "/isthmus", clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := near.Client().Compact(t.Context(), now.Header.Revision, clientv3.WithCompactPhysical()); err != nil {
		t.Fatal(err)
	}
	if seen := recorder.Now(); len(seen.Objects) != 5 {
		t.Error("the cut took something away")
	}
	k.set(false, false)
	recorder.WaitRevision(t, base)
	seen := recorder.Wait(t, "what differs", func(s configtest.Seen) bool { return len(s.Objects) == 4 && s.Codes() == "" })
	for _, name := range []string{"stays", "leased-stays"} {
		if seen.Objects[configtest.Key(name)] != before.Objects[configtest.Key(name)] {
			t.Errorf("%s did not change and was given again", name)
		}
	}
}

func TestF19CommitOfManyValuesIsOneUpdate(t *testing.T) {
	s := opened(t, etcd.Options{})
	reader := s.Config(patient())
	recorder, _ := configtest.Listen(t, reader)
	recorder.WaitRevision(t, 0)
	objects := make([]*config.Object, 3000)
	for i := range objects {
		objects[i] = configtest.Object(fmt.Sprint("o-", i), strings.Repeat("x", 4<<10))
	}
	writer := s.Config(etcd.ConfigOptions{Patience: time.Minute}) // another replica
	revision := configtest.Must(t, writer, configtest.Set(0, objects...))
	seen := recorder.WaitRevision(t, revision)
	if len(seen.Updates) != 2 || len(seen.Updates[1].Events) != len(objects) {
		t.Errorf("12 MiB came as %d updates", len(seen.Updates)-1)
	}
}

func TestF20FullStoreRefusesWritesAndRecoversByItself(t *testing.T) {
	t.Parallel()
	s := opened(t, etcd.Options{Quota: 8 << 20})
	o := calm()
	o.Retain, o.CheckpointRecords = 2, 2
	c := s.Config(o)
	recorder, _ := configtest.Listen(t, c)
	large := strings.Repeat("x", 450<<10)
	base, full := int64(0), 0
	for base < 40 || full == 0 { // etcd counts what it has written to the file, a batch at a time
		revision, err := c.Commit(t.Context(), configtest.Set(base, configtest.Object("large", fmt.Sprint(base, large))))
		var refused *config.Refused
		switch {
		case err == nil:
			base = revision
		case errors.As(err, &refused) && refused.Limit == "storage full":
			full++
			if objects, err := c.At(t.Context(), base); err != nil || len(objects) != 1 {
				t.Fatalf("a full store gives %d objects, %v", len(objects), err)
			}
		default:
			t.Fatal(err)
		}
	}
	if seen := recorder.WaitRevision(t, base); len(seen.Objects) != 1 {
		t.Errorf("there are %d objects", len(seen.Objects))
	}
}

// fillUp commits objects until the store says that it is full, and returns its revision and why the
// last commit was refused. The last ones are small: what a refused one leaves, until it is
// removed, makes no difference to what is full.
func fillUp(t *testing.T, c *etcd.Config, recorder *configtest.Recorder) (base int64, err error) {
	t.Helper()
	size := 900 << 10
	for err == nil || recorder.Now().Codes() != "STORAGE_FULL" { // else room was made
		_, err = c.Commit(t.Context(), configtest.Set(base, configtest.Object(fmt.Sprint("o-", base), strings.Repeat(fmt.Sprint(base%10), size))))
		switch {
		case err == nil:
			base++
		case limit(err) != "storage full":
			t.Fatal(err)
		case size > 64<<10:
			size, err = 64<<10, nil
		}
	}
	return base, err
}

func TestF20StoreFullOfObjectsSaysSoUntilItHasRoom(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "etcd")
	s, err := etcd.Open(t.Context(), etcd.Options{DataDir: dir, Quota: 8 << 20, Patience: configtest.Patience})
	if err != nil {
		t.Fatal(err)
	}
	c := s.Config(calm())
	recorder, stop := configtest.Listen(t, c)
	base, err := fillUp(t, c, recorder)
	alarmed := code("STORAGE_FULL")
	seen := recorder.Wait(t, "the alarm, and what was taken before it",
		func(s configtest.Seen) bool { return alarmed(s) && len(s.Objects) == int(base) })
	if limit(err) != "storage full" || len(seen.Objects) != int(base) {
		t.Errorf("at %d objects of %d the error is %v", len(seen.Objects), base, err)
	}
	stop()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	// etcd counts what it has written a batch at a time: a fast machine gets far beyond the quota.
	c = opened(t, etcd.Options{DataDir: dir, Quota: (base + 16) << 22}).Config(calm())
	recorder, _ = configtest.Listen(t, c)
	recorder.WaitRevision(t, base)
	waitUntil(t, "writes to be taken", func() bool {
		_, err := c.Commit(t.Context(), configtest.Set(base, configtest.Object("more", 1)))
		return err == nil
	})
}

// TestF20LeasesOutliveAFullStore: what is registered stays while the quota is used up. It
// can be renewed and released, and what is not renewed goes; only what is new is refused.
func TestF20LeasesOutliveAFullStore(t *testing.T) {
	t.Parallel()
	c := opened(t, etcd.Options{Quota: 8 << 20}).Config(calm())
	recorder, _ := configtest.Listen(t, c)
	recorder.WaitRevision(t, 0)
	for name, ttl := range map[string]time.Duration{"kept": time.Hour, "released": time.Hour, "gone": time.Second} {
		if _, err := c.Register(t.Context(), *configtest.Object(name, 1), ttl); err != nil {
			t.Fatal(err)
		}
	}
	alarmed := code("STORAGE_FULL")
	fillUp(t, c, recorder)
	if _, err := c.Renew(t.Context(), configtest.Key("kept")); err != nil {
		t.Errorf("renewing: %v", err)
	}
	if err := c.Release(t.Context(), configtest.Key("released")); err != nil {
		t.Errorf("releasing: %v", err)
	}
	if _, err := c.Register(t.Context(), *configtest.Object("new", 1), time.Hour); limit(err) != "storage full" {
		t.Errorf("registering: %v", err)
	}
	seen := recorder.Wait(t, "what was released and what was not renewed to go", func(s configtest.Seen) bool {
		return s.Objects[configtest.Key("gone")] == nil && s.Objects[configtest.Key("released")] == nil
	})
	if seen.Objects[configtest.Key("kept")] == nil || !alarmed(seen) {
		t.Errorf("there are %d objects, the trouble is %s", len(seen.Objects), seen.Codes())
	}
}

func limit(err error) string {
	var r *config.Refused
	if errors.As(err, &r) {
		return r.Limit
	}
	return ""
}

func TestF27SilentStoreFailsInTimeWithoutAPileUp(t *testing.T) {
	members := cluster(t, 1)
	k := linkTo(t, members[0])
	s := reach(t, k.endpoint())
	base := configtest.Must(t, s.Config(eager()), configtest.Set(0, configtest.Object("a", 1)))
	o := eager()
	o.Patience = 300 * time.Millisecond
	c := s.Config(o)
	recorder, _ := configtest.Listen(t, c)
	recorder.WaitRevision(t, base)
	k.set(false, true)
	clock, before := testbed.StartClock(t), runtime.NumGoroutine()
	var group sync.WaitGroup
	for range 50 {
		group.Go(func() {
			began := time.Now()
			_, err := c.Commit(t.Context(), configtest.Set(base, configtest.Object("b", 1)))
			if took := clock.Since(began); !errors.Is(err, config.ErrUnavailable) || took > 5*time.Second {
				t.Errorf("after %v a commit gives %v", took, err)
			}
			if _, err := c.At(t.Context(), base); !errors.Is(err, config.ErrUnavailable) {
				t.Errorf("a read of the history gives %v", err)
			}
		})
	}
	group.Wait()
	recorder.Wait(t, "trouble", code("UNREACHABLE"))
	waitUntil(t, "their goroutines to end", func() bool { return runtime.NumGoroutine() < before+20 })
	k.set(false, false)
	recorder.Wait(t, "the end of trouble", code(""))
}

func TestF25RestoredBackupIsTakenOver(t *testing.T) {
	s := opened(t, etcd.Options{})
	c := s.Config(eager())
	base := configtest.Must(t, c, configtest.Set(0, configtest.Object("a", 1)))
	old := get(t, s, "/isthmus/v1/config/head")
	base = configtest.Must(t, c, configtest.Set(base, configtest.Object("a", 2), configtest.Object("b", 2)))
	recorder, _ := configtest.Listen(t, c)
	recorder.WaitRevision(t, base)
	put(t, s, "/isthmus/v1/config/head", string(old))
	recorder.Wait(t, "the older state", func(s configtest.Seen) bool { return s.Revision() == 1 && len(s.Objects) == 1 })
	if v := recorder.Now().Objects[configtest.Key("a")]; !bytes.Contains(v.Manifest, []byte(`"value":1`)) {
		t.Errorf("it gives %s", v.Manifest)
	}
}
