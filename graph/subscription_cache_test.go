package graph_test

import (
	"fmt"
	"testing"
	"time"

	"isthmus.dev/isthmus/federation"
)

// large sets a service of that many endpoints, which differ from turn to turn.
func large(endpoints, turn int) federation.Edit {
	s := shard("10.1.0.1/32")
	for i := range endpoints {
		s.Endpoints = append(s.Endpoints, endpoint("n1", fmt.Sprintf("10.%d.%d.%d", turn%200, i/250, i%250+1)))
	}
	return federation.Edit{Source: first, Services: federation.Delta[federation.ServiceKey,
		*federation.Shard]{Set: map[federation.ServiceKey]*federation.Shard{key("large", "shop"): s}}}
}

// TestR43CursorsHoldBoundedMemory: what is kept for subscribers that come back is
// bounded by bytes and by age, not by a count of snapshots alone.
func TestR43CursorsHoldBoundedMemory(t *testing.T) {
	resynced := func(s subscriber, cursor string) bool {
		again := s.changes(cursor, nil)
		defer again.stop()
		return !again.silent() && again.read().Resync
	}
	follow := func(l live, s subscriber, endpoints, turns int) (cursors []string) {
		changes := s.changes("", nil)
		defer changes.stop()
		state, _ := changes.whole()
		cursors = append(cursors, *state.Cursor)
		for turn := range turns {
			l.publish(large(endpoints, turn+1))
			cursors = append(cursors, *changes.read().Cursor)
		}
		return cursors
	}
	for name, c := range map[string]struct {
		endpoints, turns int
		resync           bool
	}{"small changes": {1, 300, false}, "large changes": {1000, 60, true}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, []federation.Edit{clusters("c1"), large(c.endpoints, 0)}, func(t *testing.T, l live, s subscriber) {
				cursors := follow(l, s, c.endpoints, c.turns)
				if got := resynced(s, cursors[0]); got != c.resync {
					t.Errorf("the oldest of %d cursors starts again: %v, want %v", len(cursors), got, c.resync)
				}
				if resynced(s, cursors[len(cursors)-2]) {
					t.Error("a recent cursor starts again")
				}
				<-time.NewTimer(6 * time.Minute).C
				if !resynced(s, cursors[len(cursors)-2]) {
					t.Error("a cursor that nobody used for 6 minutes is still kept")
				}
			})
		})
	}
}
