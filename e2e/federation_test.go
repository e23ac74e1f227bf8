package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"isthmus.dev/isthmus/deploy/testbed"
)

// TestRequestsReachEveryClusterAndFollowEveryChange is the main job of the hub,
// on real input, once for each xDS variant.
func TestRequestsReachEveryClusterAndFollowEveryChange(t *testing.T) {
	w := newFixture(t)
	w.awaitEndpoints(patience, "c1", "c2", "dc1")
	clients := []*client{w.startClient("delta", "10.77.0.11", "DELTA_GRPC"), w.startClient("sotw", "10.77.0.12", "GRPC")}
	for _, c := range clients {
		c.awaitAnswerers(t, patience, "c1", "c2", "dc1")
	}
	t.Run("TCP through the VIP", func(t *testing.T) { testTCP(t, clients[0]) })
	t.Run("removed endpoint gets nothing after a second", func(t *testing.T) { testRemoval(t, w, clients) })
	t.Run("Consul instance comes and goes", func(t *testing.T) { testConsul(t, w, clients) })
	t.Run("proxies are shown in sync", func(t *testing.T) { testProxies(t, w) })
	t.Run("killed API server loses nothing", func(t *testing.T) { testKilledAPIServer(t, w, clients) })
	t.Run("restarted hub serves the dead cluster", func(t *testing.T) { testRestartedHub(t, w, clients) })
}

func testTCP(t *testing.T, c *client) {
	connection, err := c.DialContext(t.Context(), "tcp", "10.96.0.10:9000")
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	if err := connection.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(connection, "hello")
	line := make([]byte, 64)
	n, err := connection.Read(line)
	if name, _, _ := strings.Cut(string(line[:n]), " "); err != nil || name != "c1" && name != "c2" {
		t.Fatalf("the VIP answered %q, %v; want c1 or c2, the clusters that declare port 9000", line[:n], err)
	}
}

func testRemoval(t *testing.T, w *fixture, clients []*client) {
	var late []string
	clock := testbed.StartClock(t)
	for try := 0; try < 3 && (try == 0 || len(late) > 0); try++ { // the machine may be busy for a moment
		late = nil
		w.c2.Delete(slice(pods["c2"]))
		awaitPassed(t, clock, time.Second)
		for _, c := range clients {
			if counts := c.answerers(t, 60); counts["c2"] != 0 || counts["c1"] == 0 || counts["dc1"] == 0 {
				late = append(late, fmt.Sprintf("%s: requests went to %v", c, counts))
			}
		}
		w.c2.Apply(slice(pods["c2"]))
		for _, c := range clients {
			c.awaitAnswerers(t, patience, "c1", "c2", "dc1")
		}
	}
	if len(late) > 0 {
		t.Errorf("a second after c2's endpoint was removed: %q", late)
	}
}

// awaitPassed returns when the time has passed on the clock, or five times as much on a
// machine that is busy throughout.
func awaitPassed(t *testing.T, clock *testbed.Clock, d time.Duration) {
	t.Helper()
	began := time.Now()
	testbed.WaitFor(t, 5*d+patience, "the time to pass", func() error {
		if since := clock.Since(began); since < d && time.Since(began) < 5*d {
			return fmt.Errorf("%v have passed", since)
		}
		return nil
	})
}

func testConsul(t *testing.T, w *fixture, clients []*client) {
	w.dc1.Put("/v1/catalog/deregister", map[string]any{"Node": "vm-1", "ServiceID": "web-1"})
	for _, c := range clients {
		c.awaitAnswerers(t, patience, "c1", "c2")
	}
	w.registerConsul()
	for _, c := range clients {
		c.awaitAnswerers(t, patience, "c1", "c2", "dc1")
	}
}

func testProxies(t *testing.T, w *fixture) {
	testbed.WaitFor(t, patience, "all types of both proxies in sync", func() error {
		var a struct {
			Proxies struct {
				Nodes []struct {
					NodeID, ClusterID, Type string
					Sync                    []struct{ TypeURL, State, LastError string }
				}
			}
		}
		if err := w.hub.query(`{ proxies { nodes { nodeID clusterID type sync { typeUrl state lastError } } } }`, &a); err != nil {
			return err
		}
		if len(a.Proxies.Nodes) != 2 {
			return fmt.Errorf("%d proxies are shown, want 2", len(a.Proxies.Nodes))
		}
		for _, p := range a.Proxies.Nodes {
			for _, s := range p.Sync {
				if s.State != "SYNCED" {
					return fmt.Errorf("%s: %s is %s %s", p.NodeID, s.TypeURL, s.State, s.LastError)
				}
			}
		}
		return nil
	})
}

// load keeps requests going until it is stopped; it counts answers and keeps
// the failures.
type load struct {
	stop     chan struct{}
	done     sync.WaitGroup
	answered atomic.Int64
	mu       sync.Mutex
	failures []error
}

func startLoad(t *testing.T, clients []*client) *load {
	var asks []func() error
	for _, c := range clients {
		asks = append(asks, func() error { _, err := c.ask(t); return err })
	}
	return keepAsking(20*time.Millisecond, asks...)
}

// keepAsking calls each in turn, with a pause between its calls.
func keepAsking(pause time.Duration, asks ...func() error) *load {
	l := &load{stop: make(chan struct{})}
	for _, ask := range asks {
		l.done.Go(func() {
			every := time.NewTicker(pause)
			defer every.Stop()
			for {
				select {
				case <-l.stop:
					return
				case <-every.C:
				}
				if err := ask(); err != nil {
					l.mu.Lock()
					l.failures = append(l.failures, err)
					l.mu.Unlock()
					continue
				}
				l.answered.Add(1)
			}
		})
	}
	return l
}

// enough is how many requests a load has at least.
const enough = 50

// finish lets requests go on until there are enough, however soon the rest of the
// test was over.
func (l *load) finish(t *testing.T) {
	t.Helper()
	testbed.WaitFor(t, patience, "requests to end", func() error {
		l.mu.Lock()
		defer l.mu.Unlock()
		if n := int(l.answered.Load()) + len(l.failures); n < enough {
			return fmt.Errorf("there are %d", n)
		}
		return nil
	})
	close(l.stop)
	l.done.Wait()
	t.Logf("%d requests answered, %d failed", l.answered.Load(), len(l.failures))
	if len(l.failures) > 0 {
		t.Errorf("%d of %d requests failed, first: %v", len(l.failures), int(l.answered.Load())+len(l.failures),
			slices.Collect(slices.Values(l.failures))[:min(1, len(l.failures))])
	}
}

func testKilledAPIServer(t *testing.T, w *fixture, clients []*client) {
	requests := startLoad(t, clients)
	clock := testbed.StartClock(t)
	w.c1.Kill()
	killed := time.Now()
	testbed.WaitFor(t, patience, "status STALE", func() error { return w.hub.inPhase("c1", "STALE") })
	if took := clock.Since(killed); took > 15*time.Second {
		t.Errorf("STALE after %v", took)
	}
	w.awaitEndpoints(patience, "c1", "c2", "dc1")
	requests.finish(t)
}

// testRestartedHub leaves c1 dead: what it offered comes from disk.
func testRestartedHub(t *testing.T, w *fixture, clients []*client) {
	requests := startLoad(t, clients)
	w.hub.Kill()
	w.hub.Restart()
	w.awaitEndpoints(patience, "c1", "c2", "dc1")
	for _, c := range clients {
		if counts := c.answerers(t, 30); len(counts) != 3 {
			t.Errorf("%s: after the restart only %v answer", c, slices.Sorted(maps.Keys(counts)))
		}
	}
	requests.finish(t)
	w.c1.Restart()
	testbed.WaitFor(t, patience, "c1 is READY again", func() error { return w.hub.inPhase("c1", "READY") })
	testProxies(t, w)
}
