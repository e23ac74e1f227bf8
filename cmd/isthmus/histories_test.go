package main

import (
	"fmt"
	"slices"
	"strconv"
	"time"
)

// recordedChange is a revision of the history as a hub tells it.
type recordedChange struct {
	Revision, Message string
	Changes           []struct{ Object struct{ Kind, Name string } }
}

// told is the whole history, the oldest first.
func (h *hubUnderTest) told() ([]recordedChange, error) {
	var all []recordedChange
	after := ""
	for {
		var answer struct {
			History struct {
				Nodes    []recordedChange
				PageInfo struct {
					HasNextPage bool
					EndCursor   string
				}
			}
		}
		err := h.query(fmt.Sprintf(`{history(first: 200%s) {nodes {revision message changes {object {kind name}}} pageInfo {hasNextPage endCursor}}}`, after), &answer)
		if err != nil {
			return nil, err
		}
		all = append(all, answer.History.Nodes...)
		if !answer.History.PageInfo.HasNextPage {
			slices.Reverse(all)
			return all, nil
		}
		after = fmt.Sprintf(", after: %q", answer.History.PageInfo.EndCursor)
	}
}

// tells is the whole history of a hub. On a busy machine the store may not answer in time.
func (w *writers) tells(h *hubUnderTest) (history []recordedChange) {
	w.t.Helper()
	h.await(w.t, "the history", func() (err error) { history, err = h.told(); return err })
	return history
}

// check holds what the writers saw against the history that the hubs tell: the
// revisions are the one order in which the changes took effect.
func (w *writers) check() {
	w.t.Helper()
	history, other := w.tells(w.hubs[0]), w.tells(w.hubs[1])
	// The oldest revisions may be dropped between the two looks.
	if kept := min(len(history), len(other)); fmt.Sprint(other[len(other)-kept:]) != fmt.Sprint(history[len(history)-kept:]) {
		w.t.Errorf("the hubs tell different histories of the newest %d revisions", kept)
	}
	at := map[string]int64{}          // revision of each change, by its name
	changes := map[string][]int64{}   // revisions that changed each object
	first, last := int64(0), int64(0) // older ones are not kept
	for _, r := range history {
		revision, err := strconv.ParseInt(r.Revision, 10, 64)
		if err != nil || last != 0 && revision != last+1 {
			w.t.Errorf("revision %s follows on %d", r.Revision, last)
		}
		last = revision
		if first == 0 {
			first = revision
		}
		if before, twice := at[r.Message]; twice && r.Message != "" {
			w.t.Errorf("%s was made twice, as revisions %d and %d", r.Message, before, revision)
		}
		at[r.Message] = revision
		for _, c := range r.Changes {
			changes[c.Object.Name] = append(changes[c.Object.Name], revision)
		}
	}
	for _, c := range w.done {
		w.checkOne(c, at[c.name], first, changes[c.object])
	}
	w.checkOrder(at)
	failed, _ := w.refusals(time.Time{})
	w.t.Logf("%d changes asked for, %d revisions, %d answers that the store failed", len(w.done), last, failed)
}

func (w *writers) checkOne(c written, made, first int64, changes []int64) {
	w.t.Helper()
	switch {
	case c.code == "" && c.revision < first:
		return
	case c.code == "" && made != c.revision:
		w.t.Errorf("%s was acknowledged as revision %d, the history has it at %d (0: nowhere)", c.name, c.revision, made)
	case c.code != "" && c.code != "UNAVAILABLE" && c.code != "NO_ANSWER" && made != 0:
		w.t.Errorf("%s was refused with %s and is revision %d", c.name, c.code, made)
	}
	if made == 0 {
		return
	}
	before := int64(0)
	for _, revision := range changes {
		if revision < made {
			before = revision
		}
	}
	if before != c.expected && before != 0 {
		w.t.Errorf("%s became revision %d on condition that %s is at %d, it was at %d", c.name, made, c.object, c.expected, before)
	}
}

// checkOrder wants that what was acknowledged before something else began comes
// before it.
func (w *writers) checkOrder(at map[string]int64) {
	w.t.Helper()
	type moment struct {
		when     time.Time
		revision int64
		ends     bool
	}
	var all []moment
	for _, c := range w.done {
		if made := at[c.name]; made != 0 {
			all = append(all, moment{c.began, made, false})
			if c.code == "" {
				all = append(all, moment{c.ended, made, true})
			}
		}
	}
	slices.SortFunc(all, func(a, b moment) int { return a.when.Compare(b.when) })
	acknowledged := int64(0)
	for _, m := range all {
		if m.ends {
			acknowledged = max(acknowledged, m.revision)
		} else if m.revision <= acknowledged {
			w.t.Errorf("revision %d was begun after revision %d was acknowledged", m.revision, acknowledged)
		}
	}
}
