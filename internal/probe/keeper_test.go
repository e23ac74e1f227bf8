package probe

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"isthmus.dev/isthmus/federation"
)

// healthStore is a store with leases, which may fail.
type healthStore struct {
	mu     sync.Mutex
	kept   map[HealthKey]Health
	ttl    map[HealthKey]time.Duration
	ends   map[HealthKey]time.Time
	fails  bool
	writes int
}

func newHealthStore() *healthStore {
	return &healthStore{kept: map[HealthKey]Health{}, ttl: map[HealthKey]time.Duration{}, ends: map[HealthKey]time.Time{}}
}

var errDown = errors.New("the store is down")

func (s *healthStore) Put(_ context.Context, h Health, ttl time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fails {
		return errDown
	}
	s.writes++
	s.kept[h.HealthKey], s.ttl[h.HealthKey], s.ends[h.HealthKey] = h, ttl, time.Now().Add(ttl)
	return nil
}

func (s *healthStore) Renew(_ context.Context, key HealthKey) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fails {
		return errDown
	}
	if _, there := s.kept[key]; !there || time.Now().After(s.ends[key]) {
		return ErrNoHealth
	}
	s.ends[key] = time.Now().Add(s.ttl[key])
	return nil
}

func (s *healthStore) Remove(_ context.Context, key HealthKey) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fails {
		return errDown
	}
	delete(s.kept, key)
	return nil
}

func (s *healthStore) fail(now bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fails = now
}

// String shows the records that there are now.
func (s *healthStore) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for key, h := range s.kept {
		if time.Now().Before(s.ends[key]) {
			for g := range h.Since {
				all = append(all, fmt.Sprintf("%s %s %t", key.Observer, g.Addr(), key.Reachable))
			}
		}
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

type fixed struct{ s *federation.Snapshot }

func (f fixed) Latest() *federation.Snapshot { return f.s }

// twoGateways is a snapshot in which n2 has two gateways.
func twoGateways(verdicts ...federation.Verdict) fixed {
	o := &federation.Object{
		Key: federation.ObjectKey{Group: federation.MeshGroup, Kind: federation.NetworkKind.Name, Name: "n2"}, Digest: "1",
		Spec: &federation.NetworkObject{
			Gateways: []federation.NetworkGateway{{Address: "192.0.2.1"}, {Address: "192.0.2.2"}},
		},
	}
	e := federation.Edit{}
	e.Objects.Set = map[federation.ObjectKey]*federation.Object{o.Key: o}
	e.Verdicts.Set = map[federation.VerdictKey]federation.Verdict{}
	for i, v := range verdicts {
		e.Verdicts.Set[wayTo(i+1)] = v
	}
	s, _ := federation.Next(federation.Empty(), e)
	return fixed{s}
}

func wayTo(gateway int) federation.VerdictKey {
	return federation.VerdictKey{Observer: "n1", Gateway: netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, byte(gateway)}), 15443)}
}

// say has a prober report on both gateways for that time.
func say(k *Keeper, long time.Duration, first, second bool) {
	for range long / beat {
		k.Report([]Report{{Prober: "p", Path: wayTo(1), Reachable: first}, {Prober: "p", Path: wayTo(2), Reachable: second}})
		synctest.Wait()
		time.Sleep(beat) //nolint:forbidigo // the bubble's time
	}
	synctest.Wait()
}

// keeping runs a keeper within a bubble of synctest.
func keeping(t *testing.T, at fixed, s *healthStore, then func(k *Keeper)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		k := New(Options{Snapshots: at, Store: s})
		ended := make(chan error)
		go func() { ended <- k.Run(ctx) }()
		then(k)
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	goleak.VerifyNone(t)
}

func TestKeeperWritesWhatChanges(t *testing.T) {
	s := newHealthStore()
	keeping(t, twoGateways(), s, func(k *Keeper) {
		want := func(what string) {
			t.Helper()
			if got := s.String(); got != what {
				t.Errorf("the store has %q, want %q", got, what)
			}
		}
		say(k, 10*time.Second, true, true)
		want("n1 192.0.2.1 true, n1 192.0.2.2 true")
		if s.writes != 1 {
			t.Errorf("there were %d writes while nothing changed", s.writes)
		}
		say(k, beat, false, true)
		want("n1 192.0.2.1 false, n1 192.0.2.2 true")
		say(k, 2*time.Minute, false, true) // longer than what is written lasts
		want("n1 192.0.2.1 false, n1 192.0.2.2 true")
		say(k, 6*time.Second, true, true)
		want("n1 192.0.2.1 true, n1 192.0.2.2 true")
		say(k, beat, false, true)
		k.Left("p")
		time.Sleep(10 * time.Second) //nolint:forbidigo // silent: what is reachable is not known any more
		synctest.Wait()
		want("n1 192.0.2.1 false")
		time.Sleep(3 * time.Hour) //nolint:forbidigo // the bubble's time
		synctest.Wait()
		want("n1 192.0.2.1 false")
	})
}

// TestKeeperOverAnOutageOfTheStore: what was written stays, and what was found
// meanwhile is written after it.
func TestKeeperOverAnOutageOfTheStore(t *testing.T) {
	s := newHealthStore()
	keeping(t, twoGateways(), s, func(k *Keeper) {
		say(k, 2*time.Second, false, true)
		say(k, 2*time.Second, false, true)
		s.fail(true)
		say(k, 10*time.Minute, false, false)
		if got, want := s.String(), "n1 192.0.2.1 false"; got != want {
			t.Errorf("during the outage the store has %q, want %q", got, want)
		}
		s.fail(false)
		say(k, longestPause*5/4+beat, false, false)
		if got, want := s.String(), "n1 192.0.2.1 false, n1 192.0.2.2 false"; got != want {
			t.Errorf("after the outage the store has %q, want %q", got, want)
		}
	})
}

// TestKeeperGoesOnFromWhatIsInForce: a hub that is started again neither forgets
// a dead gateway nor leaves anything from before in the store.
func TestKeeperGoesOnFromWhatIsInForce(t *testing.T) {
	s := newHealthStore()
	s.kept[HealthKey{"n1", false}] = Health{HealthKey{"n1", false}, map[netip.AddrPort]time.Time{
		wayTo(1).Gateway:                       start,
		netip.MustParseAddrPort("192.0.2.9:1"): start,
	}}
	s.ends[HealthKey{"n1", false}] = start.AddDate(100, 0, 0)
	keeping(t, twoGateways(federation.Verdict{Since: start}), s, func(k *Keeper) {
		k.Report([]Report{{Prober: "p", Path: wayTo(2), Reachable: true}})
		synctest.Wait()
		if got, want := s.String(), "n1 192.0.2.1 false, n1 192.0.2.2 true"; got != want {
			t.Errorf("the store has %q, want %q", got, want)
		}
		say(k, 6*time.Second, true, true)
		if got, want := s.String(), "n1 192.0.2.1 true, n1 192.0.2.2 true"; got != want {
			t.Errorf("the store has %q, want %q", got, want)
		}
	})
}
