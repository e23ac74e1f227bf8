package etcd

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/configtest"
)

// TestU46BurstsOfLeasedObjectsAreFewSteps: what changes after a quiet time is shown at once. While changes come every millisecond, there
// are ten steps in a second, and none of the changes is lost.
func TestU46BurstsOfLeasedObjectsAreFewSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b burst
		one := []*clientv3.Event{{}}
		for range 3 { // each after a quiet time
			began := time.Now()
			b.add(one)
			<-b.due()
			if n := len(b.take()); n != 1 || time.Since(began) != 0 {
				t.Errorf("%d events after %s", n, time.Since(began))
			}
			time.Sleep(leasedEvery) //nolint:forbidigo // the clock is that of the test
		}
		ticker := time.NewTicker(time.Millisecond)
		defer ticker.Stop()
		steps, shown, said := 0, 0, 0
		for said < 1000 {
			select {
			case <-ticker.C:
				b.add(one)
				said++
			case <-b.due():
				steps++
				shown += len(b.take())
			}
		}
		<-b.due()
		shown += len(b.take())
		if steps > 11 || shown != said {
			t.Errorf("%d events came in %d steps with %d events", said, steps, shown)
		}
	})
}

// led is a source whose watcher the test leads.
type led struct {
	*Config
	to chan config.Sink
}

func (l led) Run(ctx context.Context, to config.Sink) error {
	l.to <- to
	<-ctx.Done()
	return nil
}

func stored(t *testing.T) *Config {
	t.Helper()
	s, err := Open(t.Context(), Options{DataDir: filepath.Join(t.TempDir(), "etcd"), Patience: configtest.Patience})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s.Config(ConfigOptions{Patience: configtest.Patience})
}

func register(t *testing.T, c *Config, name string, value int) {
	t.Helper()
	if _, err := c.Register(context.Background(), *configtest.Object(name, value), time.Hour); err != nil {
		t.Error(err)
	}
}

func release(t *testing.T, c *Config, name string) {
	t.Helper()
	if err := c.Release(context.Background(), configtest.Key(name)); err != nil {
		t.Error(err)
	}
}

// pending is a watcher that showed the registration "moves". It was told that it ended and that "new" is registered, and has not
// shown that yet.
func pending(t *testing.T) (*Config, *watcher, *configtest.Recorder) {
	t.Helper()
	c := stored(t)
	source := led{c, make(chan config.Sink)}
	heard, _ := configtest.Listen(t, source)
	f := newWatcher(c, <-source.to)
	register(t, c, "moves", 1)
	p, leased, err := f.list(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := f.catchUp(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	f.leasedListed(leased)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	leases, err := c.read.watch(ctx, leasedRoot, clientv3.WithPrefix(), clientv3.WithRev(p.at+1))
	if err != nil {
		t.Fatal(err)
	}
	release(t, c, "moves")
	register(t, c, "new", 1)
	for len(f.moved.events) < 2 {
		answer, open := <-leases
		if err := broken(answer, open); err != nil {
			t.Fatal(err)
		}
		f.moved.add(answer.Events)
	}
	return c, f, heard
}

// TestU46CommitIsShownAfterWhatCameBefore: a registration ends, and its key is applied. There is no report that the
// configuration takes precedence over a registration.
func TestU46CommitIsShownAfterWhatCameBefore(t *testing.T) {
	c, f, heard := pending(t)
	revision := configtest.Must(t, c, configtest.Set(0, configtest.Object("moves", 2)))
	if err := f.headMoved(t.Context()); err != nil {
		t.Fatal(err)
	}
	seen := heard.WaitRevision(t, revision)
	for _, trouble := range seen.Troubles {
		for _, p := range trouble.Problems {
			t.Errorf("it says %+v", p)
		}
	}
	if got := shows(seen); got != "moves=2 new=1" || len(seen.Updates) != 3 || len(seen.Updates[1].Events) != 2 {
		t.Errorf("after %d updates it shows %s", len(seen.Updates), got)
	}
}

// TestU46BrokenWatchLosesNothingOfABurst: the watch breaks while something is not shown. What the store holds then is shown, and
// not changed by what was told before.
func TestU46BrokenWatchLosesNothingOfABurst(t *testing.T) {
	c, f, heard := pending(t)
	register(t, c, "moves", 3) // which the watch did not tell
	ctx, cancel := context.WithCancel(t.Context())
	var following sync.WaitGroup
	defer following.Wait()
	defer cancel()
	following.Go(func() { _ = f.follow(ctx) })
	for _, c := range []struct{ name, want string }{{"new", "moves=3 new=1"}, {"next", "moves=3 new=1 next=1"}} {
		if c.name == "next" {
			register(t, f.c, c.name, 1)
		}
		seen := heard.Wait(t, c.name, func(s configtest.Seen) bool { return s.Objects[configtest.Key(c.name)] != nil })
		if got := shows(seen); got != c.want {
			t.Errorf("it shows %s, want %s", got, c.want)
		}
	}
}

// shows are the objects in the order of their names, with their values.
func shows(s configtest.Seen) string {
	var all []string
	for k, o := range s.Objects {
		all = append(all, fmt.Sprintf("%s=%d", k.Name, configtest.Value[int](o)))
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// TestU46ManyRegistrationsAreFewUpdates: 300 workloads register at the same time, each tenth leaves again, and something is applied
// meanwhile. Everything is shown, in fewer updates than there are workloads.
func TestU46ManyRegistrationsAreFewUpdates(t *testing.T) {
	const many, workers = 300, 4
	c := stored(t)
	heard, _ := configtest.Listen(t, c)
	heard.WaitRevision(t, 0)
	var all sync.WaitGroup
	for worker := range workers {
		all.Go(func() {
			for i := worker; i < many; i += workers {
				name := fmt.Sprintf("vm-%03d", i)
				register(t, c, name, i)
				if i%10 == 0 {
					release(t, c, name)
				}
			}
		})
	}
	revision := configtest.Must(t, c, configtest.Set(0, configtest.Object("applied", 1)))
	all.Wait()
	register(t, c, "last", 1)
	want := []string{"applied=1", "last=1"}
	for i := range many {
		if i%10 != 0 {
			want = append(want, fmt.Sprintf("vm-%03d=%d", i, i))
		}
	}
	seen := heard.Wait(t, "the last", func(s configtest.Seen) bool {
		return s.Objects[configtest.Key("last")] != nil && s.Revision() >= revision
	})
	if got := shows(seen); got != strings.Join(want, " ") {
		t.Errorf("it shows %s", got)
	}
	if n := len(seen.Updates); n >= many {
		t.Errorf("%d workloads came in %d updates", many, n)
	}
	t.Logf("%d workloads came in %d updates", many, len(seen.Updates))
}
