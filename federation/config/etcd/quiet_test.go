package etcd

import (
	"testing"
	"time"
)

// TestR41BoundOfTheFirstReadFitsTheDistance: the read that finds out that the store is
// silent waits for 250 ms if the store is near, longer if answers take long, and never
// longer than a first try.
func TestR41BoundOfTheFirstReadFitsTheDistance(t *testing.T) {
	for roundTrip, want := range map[time.Duration]time.Duration{
		0:                      250 * time.Millisecond, // nobody was asked yet
		2 * time.Millisecond:   250 * time.Millisecond,
		100 * time.Millisecond: 600 * time.Millisecond,
		2 * time.Second:        tryFor,
	} {
		if got := looks * checkPause(roundTrip); got != want {
			t.Errorf("with a round trip of %s the bound is %s, want %s", roundTrip, got, want)
		}
	}
}
