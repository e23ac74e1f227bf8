package testbed

import (
	"sync"
	"syscall"
	"testing"
	"time"
)

// A Clock measures how long something took while the machine was running. A busy
// machine, or one that shares its processors, stops every process now and then for
// seconds; that time says nothing about the program under test.
type Clock struct {
	mu    sync.Mutex
	stops []stop
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
	c, ended, stopped := &Clock{}, make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(beat)
		defer tick.Stop()
		for last := time.Now(); ; {
			select {
			case <-tick.C:
			case <-ended:
				return
			}
			now := time.Now()
			c.note(now, now.Sub(last))
			last = now
		}
	}()
	t.Cleanup(func() {
		close(ended)
		<-stopped
	})
	return c
}

func (c *Clock) note(now time.Time, since time.Duration) {
	if since <= lateBeat {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stops = append(c.stops, stop{now, since - beat})
}

// Since is the time since then without the stops of the machine.
func (c *Clock) Since(began time.Time) time.Duration {
	return time.Since(began) - c.stopped(began)
}

// stopped is how long the machine stood still since then.
func (c *Clock) stopped(began time.Time) (all time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.stops {
		if s.end.After(began) {
			all += min(s.took, s.end.Sub(began))
		}
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
