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

	at uint32 // its place in the queue
}

// workQueue is the names to build and compare, since what the client has under them may not be what it is
// to have.
type workQueue struct {
	pending map[string]trigger
	order   []string // as the names came; one that has left may still be in it
	urgent  bool     // something in pending may be urgent
	grown   bool     // since it was published last
}

func newWorkQueue() workQueue { return workQueue{pending: map[string]trigger{}} }

// enqueue adds a reason to handle the name; reasons add up, the first time stays.
func (a *workQueue) enqueue(name string, w trigger) {
	old, waits := a.pending[name]
	if waits {
		w = trigger{since: old.since, urgent: w.urgent || old.urgent, resend: w.resend || old.resend, tell: w.tell || old.tell}
	}
	w.at = a.place(name, old, waits)
	a.pending[name] = w
	a.urgent, a.grown = a.urgent || w.urgent, true
}

// answer is enqueue for a name that the client asks for: reasons from before no longer matter.
func (a *workQueue) answer(name string, w trigger) {
	old, waits := a.pending[name]
	w.at = a.place(name, old, waits)
	a.pending[name] = w
	a.urgent = true
}

// place is that of the name's old trigger, if it waits already, else one at the end.
func (a *workQueue) place(name string, old trigger, waits bool) uint32 {
	if waits {
		return old.at
	}
	a.order = append(a.order, name)
	return uint32(len(a.order) - 1)
}

// all yields what waits when it is called, in the order in which it came. Names often come
// sorted, as they are to be sent.
func (a *workQueue) all() iter.Seq2[string, trigger] {
	return func(yield func(string, trigger) bool) {
		for at, name := range a.order {
			if w, waits := a.pending[name]; waits && int(w.at) == at && !yield(name, w) {
				return
			}
		}
	}
}

// expect makes room for n names.
func (a *workQueue) expect(n int) {
	if len(a.pending) == 0 && n > fewNames {
		a.pending, a.order = make(map[string]trigger, n), make([]string, 0, n)
	}
}

// leave takes out what is in the batch, all of which waits.
func (a *workQueue) leave(b batch) {
	if len(b.changed)+len(b.removed) == len(a.pending) {
		clear(a.pending)
	} else {
		for _, r := range b.changed {
			delete(a.pending, r.name)
		}
		for _, name := range b.removed {
			delete(a.pending, name)
		}
	}
	a.shrink()
}

// shrink lets go of the memory of many names that were looked at together, and of
// the places of those that have left.
func (a *workQueue) shrink() {
	switch {
	case len(a.pending) == 0 && len(a.order) <= fewNames:
		a.order = a.order[:0]
	case len(a.pending) == 0:
		a.pending, a.order = map[string]trigger{}, nil
	case len(a.order) > 2*len(a.pending)+fewNames:
		stay := make([]string, 0, len(a.pending))
		for name, w := range a.all() {
			w.at = uint32(len(stay))
			stay = append(stay, name)
			a.pending[name] = w
		}
		a.order = stay
	}
}
