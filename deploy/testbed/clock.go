package testbed

import (
	"sync"
	"syscall"
	"testing"
	"time"
)

// A Clock measures how long something took while the machine was free to do it. A machine
// that shares its processors stops every process now and then for seconds, and on a busy one
// programs wait for a processor; that time says nothing about the program under test.
type Clock struct {
	busy func() time.Duration // see busySoFar

	mu       sync.Mutex
	last     time.Time     // beat
	lastBusy time.Duration // at that beat
	stops    []stop
}

type stop struct {
	end  time.Time
	took time.Duration
}

const (
	beat = 20 * time.Millisecond
	// A beat that comes that late was held up by a stop.
	lateBeat = 10 * beat
)

// StartClock starts a clock for the rest of the test.
func StartClock(t testing.TB) *Clock {
	t.Helper()
	return startClock(t, busySoFar)
}

func startClock(t testing.TB, busy func() time.Duration) *Clock {
	t.Helper()
	c, ended, stopped := &Clock{busy: busy, last: time.Now(), lastBusy: busy()}, make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(beat)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				c.beat()
			case <-ended:
				return
			}
		}
	}()
	t.Cleanup(func() {
		close(ended)
		<-stopped
	})
	return c
}

// beat notes the stop that just ended, if there was one. Where programs waited for a processor
// since the last beat, that is a stop as long as they did.
func (c *Clock) beat() {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, busy := time.Now(), c.busy()
	since := now.Sub(c.last)
	lost := busy - c.lastBusy
	if since > lateBeat {
		lost = max(lost, since-beat)
	}
	if lost > 0 {
		c.stops = append(c.stops, stop{now, min(lost, since)})
	}
	c.last, c.lastBusy = now, busy
}

// Since is the time since then without the stops of the machine and the waits for it.
func (c *Clock) Since(began time.Time) time.Duration { return c.Between(began, time.Now()) }

// Between is the time from one moment to another without them.
func (c *Clock) Between(began, ended time.Time) time.Duration {
	return ended.Sub(began) - c.stopped(began, ended)
}

// stopped is how long the machine stood still between two moments.
func (c *Clock) stopped(began, ended time.Time) (all time.Duration) {
	c.beat() // After a stop, the test may run before the next beat.
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.stops {
		from, to := s.end.Add(-s.took), s.end
		if from.Before(began) {
			from = began
		}
		if to.After(ended) {
			to = ended
		}
		all += max(to.Sub(from), 0)
	}
	return all
}

// UsedCPU is what the process has computed so far: a busy machine adds nothing to it.
func UsedCPU(t testing.TB) time.Duration {
	t.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
