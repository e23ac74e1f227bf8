package transport

import (
	"strconv"
	"testing"
	"time"

	"isthmus.dev/isthmus/deploy/testbed"
)

// TestR03TurnCostsTheSameHoweverManyCallersWait: a change is an event of every subscriber.
func TestR03TurnCostsTheSameHoweverManyCallersWait(t *testing.T) {
	const most, fewer = 32_000, 32
	for try := range 3 {
		many, few := costOfTurns(t, most), time.Duration(0)
		for range fewer {
			few += costOfTurns(t, most/fewer)
		}
		if many < 8*few {
			return
		}
		t.Logf("try %d: %d turns take %v, %d times %d take %v", try, most, many, fewer, most/fewer, few)
	}
	t.Error("a turn costs more where more callers wait")
}

// costOfTurns is the processor time in which so many callers get their turns.
func costOfTurns(t *testing.T, callers int) time.Duration {
	places := newTurns(0)
	given := make([]chan struct{}, callers)
	for i := range given {
		given[i] = places.queue(strconv.Itoa(i))
	}
	began := testbed.UsedCPU(t)
	for _, turn := range given {
		places.end()
		<-turn
	}
	return testbed.UsedCPU(t) - began
}
