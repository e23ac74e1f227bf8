package apply

import (
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
)

// previewed is what a plan comes to before it is committed.
type previewed struct {
	*config.PreviewedState
	made   []Change
	writes []config.Change      // the automatic VIPs that they make necessary included
	before *federation.Snapshot // the latest one at the time of the plan
}

// preview computes the state that follows. The snapshot that follows from it is made when it is
// published, or for a dry run: of a large change it would wait in memory for the commit (R63).
func (e *Engine) preview(on base, p plan) previewed {
	made := p.made()
	writes := commits(made)
	events := make([]config.Event, len(writes))
	for i, w := range writes {
		events[i] = config.Event{Old: &config.Object{Key: w.Key}, New: w.Object}
		if w.Object == nil {
			events[i].New = on.Behind(w.Key)
		}
	}
	next := on.State.Preview(events, on.Next())
	return previewed{next, made, append(writes, next.Missing...), e.Snapshots.Latest()}
}

// tried is the result of a dry run of the plan.
func (f previewed) tried(on base, p plan, now time.Time) Result {
	seen := f.computed(now)
	return Result{
		DryRun: true, Revision: on.Revision(), Changes: p.changes, Before: seen.Before, After: seen.After,
		Findings: append(p.findings, analyse(seen, f.made)...),
	}
}

// computed is what the edit would be published as.
func (f previewed) computed(now time.Time) federation.Receipt {
	after, changed := federation.Next(f.before, f.Edit.Timed(now))
	return federation.Receipt{Before: f.before, After: after, Changes: changed}
}

// outcome is what the commit of that revision was published as, or what it comes to if something
// else was published, or nothing yet.
func (f previewed) outcome(latest base, revision int64, now time.Time) federation.Receipt {
	if latest.Revision() >= revision && f.Edit.Receipt.After != nil {
		return *f.Edit.Receipt
	}
	return f.computed(now)
}
