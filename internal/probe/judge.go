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
	// ReportTTL is the time after which a prober's last report expires; default
	// 2.5 s. A silent prober counts neither for nor against a gateway.
	ReportTTL time.Duration
	// Grace is how long the hub ignores a prober that reports a gateway as dead and
	// has never reported it as well; default 3 s. Envoy does so before its first
	// attempt has ended.
	Grace time.Duration
	// ReachableTTL is how long a gateway stays reachable without reports;
	// default 5 s. Then nothing is known of it, which is as good for who uses it, and
	// does not outvote those who know. What is unreachable stays so.
	ReachableTTL time.Duration
}

func (r Rules) withDefaults() Rules {
	r.Recovery = cmp.Or(r.Recovery, 5*time.Second)
	r.Pause = cmp.Or(r.Pause, 30*time.Second)
	r.ReportTTL = cmp.Or(r.ReportTTL, 2500*time.Millisecond)
	r.Grace = cmp.Or(r.Grace, 3*time.Second)
	r.ReachableTTL = cmp.Or(r.ReachableTTL, 5*time.Second)
	return r
}

// Report is what a prober reports about one path.
type Report struct {
	Prober    string // tells the probers of a network apart
	Path      federation.VerdictKey
	Reachable bool
}

// Judge turns reports into verdicts. It reads no clock and starts nothing; its
// times never run backwards. It is for one goroutine.
type Judge struct {
	rules Rules
	paths map[federation.VerdictKey]*path
}

// NewJudge makes a judge who knows of nothing.
func NewJudge(r Rules) *Judge {
	return &Judge{rules: r.withDefaults(), paths: map[federation.VerdictKey]*path{}}
}

// path is what is known of one.
type path struct {
	reports        map[string]*proberState // by prober
	verdict        federation.Verdict
	known          bool
	reachableSince time.Time // zero: it is not well
	returned       time.Time // when it last became reachable after it was not; zero: never
	heard          time.Time // when the last report that counts came
}

type proberState struct {
	reachable, wasReachable bool
	first, last             time.Time
}

// Adopt goes on from what was found before, by whomever, unless something is
// known of the path.
func (j *Judge) Adopt(key federation.VerdictKey, v federation.Verdict, at time.Time) {
	if w := j.path(key); !w.known {
		w.verdict, w.known, w.heard = v, true, at
	}
}

func (j *Judge) path(key federation.VerdictKey) *path {
	w := j.paths[key]
	if w == nil {
		w = &path{reports: map[string]*proberState{}}
		j.paths[key] = w
	}
	return w
}

// Add records a report.
func (j *Judge) Add(w Report, at time.Time) {
	to := j.path(w.Path)
	said := to.reports[w.Prober]
	if said == nil {
		said = &proberState{first: at}
		to.reports[w.Prober] = said
	}
	said.reachable, said.wasReachable, said.last = w.Reachable, said.wasReachable || w.Reachable, at
}

// Left drops what a prober said that is gone. Verdicts stay.
func (j *Judge) Left(prober string) {
	for _, w := range j.paths {
		delete(w.reports, prober)
	}
}

// Keep forgets the paths that are not wanted any more.
func (j *Judge) Keep(wanted func(federation.VerdictKey) bool) {
	for key := range j.paths {
		if !wanted(key) {
			delete(j.paths, key)
		}
	}
}

// Verdicts are all that there are at that time, and when to ask again if no
// report comes; zero: then nothing changes.
func (j *Judge) Verdicts(at time.Time) (all map[federation.VerdictKey]federation.Verdict, again time.Time) {
	all = map[federation.VerdictKey]federation.Verdict{}
	for key, w := range j.paths {
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
	noReports condition = iota
	reachable
	unreachable
)

// judge brings the verdict up to the time, and returns when it may change without a
// report.
func (w *path) judge(r Rules, at time.Time) (again time.Time) {
	now, again := w.condition(r, at)
	if now != reachable {
		w.reachableSince = time.Time{}
	} else if w.reachableSince.IsZero() {
		w.reachableSince = at
	}
	if now != noReports {
		w.heard = at
	}
	switch {
	case now == noReports && w.known && w.verdict.Reachable:
		due := w.heard.Add(r.ReachableTTL)
		if due.After(at) {
			return earlier(again, due)
		}
		w.known = false
	case now == unreachable && (!w.known || w.verdict.Reachable):
		w.setVerdict(false, at)
	case now == reachable && !w.known:
		w.setVerdict(true, at)
	case now == reachable && !w.verdict.Reachable:
		due := w.reachableSince.Add(r.Recovery)
		if pause := w.returned.Add(r.Pause); !w.returned.IsZero() && pause.After(due) {
			due = pause
		}
		if due.After(at) {
			return earlier(again, due)
		}
		w.returned = at
		w.setVerdict(true, at)
	}
	return again
}

func (w *path) setVerdict(reachable bool, at time.Time) {
	w.known, w.verdict.Reachable, w.verdict.Since = true, reachable, at.UTC().Truncate(time.Millisecond)
}

// condition is well as soon as one prober says so, and unwell when one says so
// and none disagrees.
func (w *path) condition(r Rules, at time.Time) (now condition, again time.Time) {
	for _, said := range w.reports {
		ends, counts := said.last.Add(r.ReportTTL), said.first.Add(r.Grace)
		switch {
		case !at.Before(ends):
			continue // silent
		case said.reachable:
			now = reachable
		case !said.wasReachable && at.Before(counts):
			again = earlier(again, counts)
			continue
		case now == noReports:
			now = unreachable
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
