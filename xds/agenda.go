package xds

import "time"

// want says why a name is looked at.
type want struct {
	since  time.Time
	urgent bool // answers a request: neither paced nor held
	resend bool // is sent even if the client has it
	tell   bool // its absence is sent even if the client never had it
}

// agenda is the names to look at, since what the client has under them may not be what it is
// to have.
type agenda struct {
	pending map[string]want
	urgent  bool // something in pending may be urgent
	grown   bool // since it was published last
}

// look adds a reason to look at the name; reasons add up, the first time stays.
func (a *agenda) look(name string, w want) {
	if old, ok := a.pending[name]; ok {
		w = want{since: old.since, urgent: w.urgent || old.urgent, resend: w.resend || old.resend, tell: w.tell || old.tell}
	}
	a.pending[name] = w
	a.urgent, a.grown = a.urgent || w.urgent, true
}

// answer is look for a name that the client asks for: reasons from before no longer matter.
func (a *agenda) answer(name string, w want) {
	a.pending[name] = w
	a.urgent = true
}

// expect makes room for n names.
func (a *agenda) expect(n int) {
	if len(a.pending) == 0 && n > fewNames {
		a.pending = make(map[string]want, n)
	}
}

// shrink lets go of the memory of many names that were looked at together.
func (a *agenda) shrink() {
	if len(a.pending) == 0 {
		a.pending = map[string]want{}
	}
}
