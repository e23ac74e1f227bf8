// Package probe decides, from the reports of gateways that probe gateways of other
// networks, which gateways are reachable, from where, and since when. It knows no protocol.
package probe

import (
	"cmp"
	"time"

	"isthmus.dev/isthmus/federation"
)

// Rules are how sure a Judge must be. Zero fields have the default.
type Rules struct {
	// Recovery is how long a gateway must be well without interruption before it
	// is reachable again; default 5 s. It becomes unreachable at once.
	Recovery time.Duration
	// Pause is between two returns of a gateway; default 30 s.
	Pause time.Duration
	// Silence is the time after which a prober's last report expires; default
	// 2.5 s. A silent prober counts neither for nor against a gateway.
	Silence time.Duration
	// Grace is how long the hub ignores a prober that reports a gateway as dead and
	// has never reported it as well; default 3 s. Envoy does so before its first
	// attempt has ended.
	Grace time.Duration
	// Lapse is how long a gateway stays reachable without reports;
	// default 5 s. Then nothing is known of it, which is as good for who uses it, and
	// does not outvote those who know. What is unreachable stays so.
	Lapse time.Duration
}

func (r Rules) withDefaults() Rules {
	r.Recovery = cmp.Or(r.Recovery, 5*time.Second)
	r.Pause = cmp.Or(r.Pause, 30*time.Second)
	r.Silence = cmp.Or(r.Silence, 2500*time.Millisecond)
	r.Grace = cmp.Or(r.Grace, 3*time.Second)
	r.Lapse = cmp.Or(r.Lapse, 5*time.Second)
	return r
}

// Word is what a prober reports about one way.
type Word struct {
	Prober string // tells the probers of a network apart
	Way    federation.VerdictKey
	Well   bool
}

// Judge turns words into verdicts. It reads no clock and starts nothing; its
// times never run backwards. It is for one goroutine.
type Judge struct {
	rules Rules
	ways  map[federation.VerdictKey]*way
}

// NewJudge makes a judge who knows of nothing.
func NewJudge(r Rules) *Judge {
	return &Judge{rules: r.withDefaults(), ways: map[federation.VerdictKey]*way{}}
}

// way is what is known of one.
type way struct {
	words     map[string]*word // by prober
	verdict   federation.Verdict
	known     bool
	wellSince time.Time // zero: it is not well
	returned  time.Time // when it last became reachable after it was not; zero: never
	heard     time.Time // when the last report that counts came
}

type word struct {
	well, wasWell bool
	first, last   time.Time
}

// Adopt goes on from what was found before, by whomever, unless something is
// known of the way.
func (j *Judge) Adopt(key federation.VerdictKey, v federation.Verdict, at time.Time) {
	if w := j.way(key); !w.known {
		w.verdict, w.known, w.heard = v, true, at
	}
}

func (j *Judge) way(key federation.VerdictKey) *way {
	w := j.ways[key]
	if w == nil {
		w = &way{words: map[string]*word{}}
		j.ways[key] = w
	}
	return w
}

// Hear takes a word.
func (j *Judge) Hear(w Word, at time.Time) {
	to := j.way(w.Way)
	said := to.words[w.Prober]
	if said == nil {
		said = &word{first: at}
		to.words[w.Prober] = said
	}
	said.well, said.wasWell, said.last = w.Well, said.wasWell || w.Well, at
}

// Left drops what a prober said that is gone. Verdicts stay.
func (j *Judge) Left(prober string) {
	for _, w := range j.ways {
		delete(w.words, prober)
	}
}

// Keep forgets the ways that are not wanted any more.
func (j *Judge) Keep(wanted func(federation.VerdictKey) bool) {
	for key := range j.ways {
		if !wanted(key) {
			delete(j.ways, key)
		}
	}
}

// Verdicts are all that there are at that time, and when to ask again if nothing
// is heard; zero: then nothing changes.
func (j *Judge) Verdicts(at time.Time) (all map[federation.VerdictKey]federation.Verdict, again time.Time) {
	all = map[federation.VerdictKey]federation.Verdict{}
	for key, w := range j.ways {
		next := w.judge(j.rules, at)
		if w.known {
			all[key] = w.verdict
		}
		if !next.IsZero() && (again.IsZero() || next.Before(again)) {
			again = next
		}
	}
	return all, again
}

// condition is what the probers say together.
type condition int

const (
	silent condition = iota
	well
	unwell
)

// judge brings the verdict up to the time, and returns when it may change without a
// report.
func (w *way) judge(r Rules, at time.Time) (again time.Time) {
	now, again := w.condition(r, at)
	if now != well {
		w.wellSince = time.Time{}
	} else if w.wellSince.IsZero() {
		w.wellSince = at
	}
	if now != silent {
		w.heard = at
	}
	switch {
	case now == silent && w.known && w.verdict.Reachable:
		due := w.heard.Add(r.Lapse)
		if due.After(at) {
			return earlier(again, due)
		}
		w.known = false
	case now == unwell && (!w.known || w.verdict.Reachable):
		w.settle(false, at)
	case now == well && !w.known:
		w.settle(true, at)
	case now == well && !w.verdict.Reachable:
		due := w.wellSince.Add(r.Recovery)
		if pause := w.returned.Add(r.Pause); !w.returned.IsZero() && pause.After(due) {
			due = pause
		}
		if due.After(at) {
			return earlier(again, due)
		}
		w.returned = at
		w.settle(true, at)
	}
	return again
}

func (w *way) settle(reachable bool, at time.Time) {
	w.known, w.verdict.Reachable, w.verdict.Since = true, reachable, at.UTC().Truncate(time.Millisecond)
}

// condition is well as soon as one prober says so, and unwell when one says so
// and none says the other.
func (w *way) condition(r Rules, at time.Time) (now condition, again time.Time) {
	for _, said := range w.words {
		ends, counts := said.last.Add(r.Silence), said.first.Add(r.Grace)
		switch {
		case !at.Before(ends):
			continue // silent
		case said.well:
			now = well
		case !said.wasWell && at.Before(counts):
			again = earlier(again, counts)
			continue
		case now == silent:
			now = unwell
		}
		again = earlier(again, ends)
	}
	return now, again
}

func earlier(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}
