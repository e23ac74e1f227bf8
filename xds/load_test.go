package xds

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"isthmus.dev/isthmus/deploy/testbed"
)

// load asks the same question again and again, about 400 times a second, and
// keeps what failed.
type load struct {
	clock *testbed.Clock
	stop  func()

	mu     sync.Mutex
	count  int
	failed []string
	last   string // who answered
	run    int    // how often in a row
}

const (
	askers   = 4
	askEvery = 10 * time.Millisecond
	tooSlow  = 4 * time.Second // of a machine that has nothing else to do
)

func startLoad(t *testing.T, from *testbed.Namespace, url string) *load {
	l := &load{clock: testbed.StartClock(t)}
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	for range askers {
		done.Go(func() {
			transport := &http.Transport{DialContext: from.DialContext}
			defer transport.CloseIdleConnections()
			tick := time.NewTicker(askEvery)
			defer tick.Stop()
			for {
				select {
				case <-tick.C:
					l.ask(ctx, &http.Client{Transport: transport, Timeout: patience}, url)
				case <-ctx.Done():
					return
				}
			}
		})
	}
	l.stop = func() { cancel(); done.Wait() }
	t.Cleanup(l.stop)
	return l
}

func (l *load) ask(ctx context.Context, client *http.Client, url string) {
	start := time.Now()
	request, err := http.NewRequestWithContext(context.WithoutCancel(ctx), http.MethodGet, url, nil)
	if err != nil {
		l.note("", err.Error())
		return
	}
	response, err := client.Do(request)
	if err != nil {
		l.note("", err.Error())
		return
	}
	defer response.Body.Close()
	var answer struct{ Name string }
	err = json.NewDecoder(response.Body).Decode(&answer)
	took := l.clock.Since(start)
	if err != nil || response.StatusCode != http.StatusOK || took > tooSlow {
		l.note(answer.Name, fmt.Sprintf("status %d after %s: %v", response.StatusCode, took, err))
		return
	}
	l.note(answer.Name, "")
}

func (l *load) note(name, failure string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count++
	if failure != "" && len(l.failed) < 5 {
		l.failed = append(l.failed, failure)
	}
	l.run++
	if name != l.last {
		l.last, l.run = name, 1
	}
}

// answeredBy fails unless the last answers all came from there.
func (l *load) answeredBy(name string) func() error {
	return func() error {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.last != name || l.run < 3*askers {
			return fmt.Errorf("the last %d answers are from %q, want %q; failed: %q", l.run, l.last, name, l.failed)
		}
		return nil
	}
}

// none demands that no request failed.
func (l *load) none(t *testing.T) {
	t.Helper()
	l.stop()
	if len(l.failed) > 0 || l.count == 0 {
		t.Errorf("of %d requests these failed, and maybe more: %q", l.count, l.failed)
	}
}
