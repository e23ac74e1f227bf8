package xds

import (
	"iter"
	"time"
)

// trigger says why a name is queued.
type trigger struct {
	since  time.Time
	urgent bool // answers a request: neither paced nor held
	resend bool // is sent even if the client has it
	tell   bool // its absence is sent even if the client never had it
}

// waiting is a name in the queue, and why.
type waiting struct {
	name string
	trigger
	left bool // it waits no more
}

// workQueue is the names to build and compare, since what the client has under them may not be what it is
// to have.
type workQueue struct {
	places map[string]uint32 // in order, of those that wait
	order  []waiting         // as the names came
	urgent bool              // something that waits may be urgent
	grown  bool              // since it was published last
}

func newWorkQueue() workQueue { return workQueue{places: map[string]uint32{}} }

// size is the number of names that wait.
func (a *workQueue) size() int { return len(a.places) }

// enqueue adds a reason to handle the name; reasons add up, the first time stays.
func (a *workQueue) enqueue(name string, w trigger) {
	if at, waits := a.places[name]; waits {
		old := &a.order[at].trigger
		w = trigger{since: old.since, urgent: w.urgent || old.urgent, resend: w.resend || old.resend, tell: w.tell || old.tell}
		*old = w
	} else {
		a.add(name, w)
	}
	a.urgent, a.grown = a.urgent || w.urgent, true
}

// answer is enqueue for a name that the client asks for: reasons from before no longer matter.
func (a *workQueue) answer(name string, w trigger) {
	a.urgent = true
	if at, waits := a.places[name]; waits {
		a.order[at].trigger = w
		return
	}
	a.add(name, w)
}

func (a *workQueue) add(name string, w trigger) {
	a.places[name] = uint32(len(a.order))
	a.order = append(a.order, waiting{name: name, trigger: w})
}

// all yields what waits when it is called, in the order in which it came. Names often come
// sorted, as they are to be sent. Names may leave meanwhile, but the queue must not shrink.
func (a *workQueue) all() iter.Seq2[string, trigger] {
	return func(yield func(string, trigger) bool) {
		for at, n := 0, len(a.order); at < n; at++ {
			if w := a.order[at]; !w.left && !yield(w.name, w.trigger) {
				return
			}
		}
	}
}

// expect makes room for n names.
func (a *workQueue) expect(n int) {
	if a.size() == 0 && n > fewNames {
		a.places, a.order = make(map[string]uint32, n), make([]waiting, 0, n)
	}
}

// remove takes out the name, if it waits. Its room stays until the queue shrinks.
func (a *workQueue) remove(name string) {
	if at, waits := a.places[name]; waits {
		a.order[at] = waiting{left: true}
		delete(a.places, name)
	}
}

// leave takes out what is in the batch, all of which waits.
func (a *workQueue) leave(b batch) {
	if len(b.changed)+len(b.removed) == a.size() {
		clear(a.places)
	} else {
		for _, r := range b.changed {
			a.remove(r.name)
		}
		for _, name := range b.removed {
			a.remove(name)
		}
	}
	a.shrink()
}

// shrink lets go of the memory of many names that were looked at together, and of
// the places of those that have left.
func (a *workQueue) shrink() {
	switch {
	case a.size() == 0 && len(a.order) <= fewNames:
		clear(a.order)
		a.order = a.order[:0]
	case a.size() == 0:
		a.places, a.order = map[string]uint32{}, nil
	case len(a.order) > 2*a.size()+fewNames:
		stay := make([]waiting, 0, a.size())
		for name, w := range a.all() {
			a.places[name] = uint32(len(stay))
			stay = append(stay, waiting{name: name, trigger: w})
		}
		a.order = stay
	}
}
