package xds

import "time"

// trigger says why a name is queued.
type trigger struct {
	since  time.Time
	urgent bool // answers a request: neither paced nor held
	resend bool // is sent even if the client has it
	tell   bool // its absence is sent even if the client never had it
}

// workQueue is the names to build and compare, since what the client has under them may not be what it is
// to have.
type workQueue struct {
	pending map[string]trigger
	urgent  bool // something in pending may be urgent
	grown   bool // since it was published last
}

// enqueue adds a reason to handle the name; reasons add up, the first time stays.
func (a *workQueue) enqueue(name string, w trigger) {
	if old, ok := a.pending[name]; ok {
		w = trigger{since: old.since, urgent: w.urgent || old.urgent, resend: w.resend || old.resend, tell: w.tell || old.tell}
	}
	a.pending[name] = w
	a.urgent, a.grown = a.urgent || w.urgent, true
}

// answer is enqueue for a name that the client asks for: reasons from before no longer matter.
func (a *workQueue) answer(name string, w trigger) {
	a.pending[name] = w
	a.urgent = true
}

// expect makes room for n names.
func (a *workQueue) expect(n int) {
	if len(a.pending) == 0 && n > fewNames {
		a.pending = make(map[string]trigger, n)
	}
}

// shrink lets go of the memory of many names that were looked at together.
func (a *workQueue) shrink() {
	if len(a.pending) == 0 {
		a.pending = map[string]trigger{}
	}
}
