package e2e

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"isthmus.dev/isthmus/deploy/bridge"
)

// traffic is requests for the service of all networks, until stop; startTraffic sends
// one after the other for each site.
type traffic struct {
	cancel context.CancelFunc
	ended  sync.WaitGroup

	mu         sync.Mutex
	answers    map[string]int // by cluster
	failed     int
	lastFailed time.Time // when the latest request that failed was sent
	first      error
}

func startTraffic(from ...*bridge.Site) *traffic {
	ctx, cancel := context.WithCancel(context.Background())
	l := &traffic{cancel: cancel, answers: map[string]int{}}
	for _, s := range from {
		l.ended.Go(func() {
			for ctx.Err() == nil {
				l.ask(s)
			}
		})
	}
	return l
}

// startSteadyTraffic sends a request every 25 ms, whatever becomes of those before.
func startSteadyTraffic(from *bridge.Site) *traffic {
	ctx, cancel := context.WithCancel(context.Background())
	l := &traffic{cancel: cancel, answers: map[string]int{}}
	l.ended.Go(func() {
		tick := time.NewTicker(25 * time.Millisecond)
		defer tick.Stop()
		for ctx.Err() == nil {
			l.ended.Go(func() { l.ask(from) })
			<-tick.C
		}
	})
	return l
}

func (l *traffic) ask(from *bridge.Site) {
	sent := time.Now()
	answer, err := from.Ask(bridge.Host, "/")
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		l.answers[answer.Cluster]++
		return
	}
	l.failed++
	if l.first == nil {
		l.first = err
	}
	if sent.After(l.lastFailed) {
		l.lastFailed = sent
	}
}

// total is how many requests have ended.
func (l *traffic) total() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.failed
	for _, answers := range l.answers {
		n += answers
	}
	return n
}

func (l *traffic) stop() {
	l.cancel()
	l.ended.Wait()
}

func (l *traffic) wantNoFailure(t *testing.T) {
	t.Helper()
	if l.failed > 0 || l.total() == 0 {
		t.Errorf("%d of %d requests failed: %v", l.failed, l.total(), l.first)
	}
}

func (l *traffic) String() string {
	return fmt.Sprintf("%d requests, %d failed, answers %v", l.total(), l.failed, l.answers)
}

// looks are what a sidecar has for a service, every 20 ms.
type looks struct {
	cancel context.CancelFunc
	ended  sync.WaitGroup

	mu    sync.Mutex
	count int
	seen  map[string]int  // looks in which an address was there
	now   map[string]bool // those of the latest look
	moves map[string]int  // how often an address came or went
}

func startLooks(p *bridge.Pod, host string) *looks {
	ctx, cancel := context.WithCancel(context.Background())
	l := &looks{cancel: cancel, seen: map[string]int{}, moves: map[string]int{}}
	l.ended.Go(func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for ctx.Err() == nil {
			if found, err := p.Endpoints(host); err == nil {
				l.note(found)
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
	})
	return l
}

func (l *looks) note(found map[string]int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := map[string]bool{}
	for address := range found {
		now[address] = true
		l.seen[address]++
		if l.count > 0 && !l.now[address] {
			l.moves[address]++
		}
	}
	for address := range l.now {
		if !now[address] {
			l.moves[address]++
		}
	}
	l.count, l.now = l.count+1, now
}

func (l *looks) has(address string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.now[address]
}

// absent is in how many looks an address was missing.
func (l *looks) absent(address string) int { return l.count - l.seen[address] }

func (l *looks) stop() {
	l.cancel()
	l.ended.Wait()
}

// wait returns when the time is over.
func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

func endpointsOf(t *testing.T, p *bridge.Pod, host string) map[string]int {
	t.Helper()
	found, err := p.Endpoints(host)
	if err != nil || len(found) == 0 {
		t.Fatalf("%s has %v for %s, %v", p.Name, found, host, err)
	}
	return found
}

func inPhase(w *bridge.Topology, cluster, want string) error {
	phase, err := w.Hub.Phase(cluster)
	if err == nil && phase != want {
		err = fmt.Errorf("%s is %s", cluster, phase)
	}
	return err
}
