package xds

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestPropertyAQueueKeepsTheOrder: whatever comes and leaves, each name that waits is yielded once, in
// the order in which it came, and those that have left take little room.
func TestPropertyAQueueKeepsTheOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := newWorkQueue()
		var want []string
		name := rapid.StringMatching("[a-z]")
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			n := name.Draw(t, "name")
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0:
				q.answer(n, trigger{tell: true})
			case 1:
				q.enqueue(n, trigger{resend: true})
			case 2:
				q.leave(batch{removed: onlyWaiting(q, n)})
			case 3: // as drop does
				q.remove(n)
				q.shrink()
			}
			if _, waits := q.places[n]; !waits {
				want = slices.DeleteFunc(want, func(other string) bool { return other == n })
				if most := 2*len(want) + fewNames; len(q.order) > most {
					t.Fatalf("the queue has room for %d names, want at most %d", len(q.order), most)
				}
				continue
			}
			if !slices.Contains(want, n) {
				want = append(want, n)
			}
		}
		var got []string
		for n := range q.all() {
			got = append(got, n)
		}
		if !slices.Equal(got, want) || q.size() != len(want) {
			t.Errorf("waiting: %q, want %q", got, want)
		}
	})
}

// TestAnUrgentNameMakesTheQueueUrgentAgain: a name that waited urgently, and was held back meanwhile, is
// urgent with a later reason, too.
func TestAnUrgentNameMakesTheQueueUrgentAgain(t *testing.T) {
	q := newWorkQueue()
	q.enqueue("a", trigger{urgent: true})
	q.urgent = false // as gather does
	q.enqueue("a", trigger{})
	if !q.urgent {
		t.Error("the queue is not urgent, and what waits urgently is")
	}
}

// onlyWaiting is the name if it waits.
func onlyWaiting(q workQueue, name string) []string {
	if _, waits := q.places[name]; waits {
		return []string{name}
	}
	return nil
}
