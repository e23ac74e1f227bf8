package etcd

import (
	"encoding/binary"
	"slices"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/internal/btree"
)

// keptSteps is how many of its newest steps an object keeps, whatever their age.
const keptSteps = 10

// histories is what was done to each object up to a revision. Like the objects it is
// a function of the records alone, so that it is the same on every replica, and
// every checkpoint has it. It is never changed after it was made.
type histories struct {
	window  int64 // so many revisions keep all of their steps
	of      btree.Map[*objectHistory]
	deleted btree.Map[struct{}] // objects that are deleted, by the revision that did it and key
	// complete says that no step is missing that the rules keep: it was made from
	// the first record on, or from a checkpoint that has the histories.
	complete bool
}

// objectHistory is what was done to one object.
type objectHistory struct {
	steps     []step // the oldest first
	compacted bool   // there were older ones
}

type step struct {
	revision int64
	action   config.Action // empty: unknown
	note     *config.Note  // shared by all steps of a revision; nil: unknown
}

func noHistories(window int64) histories {
	return histories{window: window, complete: true}
}

// kept returns the past without the steps that are not kept as of the revision.
func (p *objectHistory) kept(revision, window int64) *objectHistory {
	stale := 0
	for stale < len(p.steps)-keptSteps && p.steps[stale].revision <= revision-window {
		stale++
	}
	if stale == 0 {
		return p
	}
	return &objectHistory{steps: p.steps[stale:], compacted: true}
}

// with returns the past after one more step.
func (p *objectHistory) with(s step, window int64) *objectHistory {
	if p == nil {
		return &objectHistory{steps: []step{s}}
	}
	kept := p.kept(s.revision, window)
	return &objectHistory{steps: slices.Concat(kept.steps, []step{s}), compacted: kept.compacted}
}

// after returns the histories after the record.
func (p histories) after(x *index) histories {
	note := brief(x.Note)
	of, deleted := p.of.Txn(), p.deleted.Txn()
	for i := range x.Entries {
		e := &x.Entries[i]
		if e.Action == config.Unchanged {
			continue
		}
		key := treeKey(e.Key)
		before, _ := of.Get(key)
		if before != nil {
			deleted.Delete(deletedKey(before.last(), key)) // if it was
		}
		of.Set(key, before.with(step{x.Revision, e.Action, note}, p.window))
		if e.Action == config.Deleted {
			deleted.Set(deletedKey(x.Revision, key), struct{}{})
		}
	}
	expire(&of, &deleted, x.Revision-p.window)
	p.of, p.deleted = of.Commit(), deleted.Commit()
	return p
}

// expire forgets objects that were deleted up to the revision.
func expire(of *btree.Txn[*objectHistory], deleted *btree.Txn[struct{}], revision int64) {
	var expired []string
	deleted.Walk(func(key string, _ struct{}) bool {
		at, _ := readDeletedKey(key)
		if at <= revision {
			expired = append(expired, key)
		}
		return at > revision
	})
	for _, key := range expired {
		_, object := readDeletedKey(key)
		of.Delete(object)
		deleted.Delete(key)
	}
}

func deletedKey(revision int64, key string) string {
	return string(binary.BigEndian.AppendUint64(nil, uint64(revision))) + key
}

func readDeletedKey(key string) (revision int64, object string) {
	return int64(binary.BigEndian.Uint64([]byte(key[:8]))), key[8:]
}

func (p *objectHistory) last() int64 { return p.steps[len(p.steps)-1].revision }

// brief is what steps need of a note.
func brief(n config.Note) *config.Note {
	return &config.Note{Author: n.Author, Time: n.Time, Message: n.Message, Manager: n.Manager}
}

// history is the past of an object as of the revision.
func (p histories) history(key federation.ObjectKey, revision int64) config.ObjectHistory {
	found, _ := p.of.Get(treeKey(key))
	if found == nil {
		return config.ObjectHistory{}
	}
	found = found.kept(revision, p.window)
	h := config.ObjectHistory{Steps: make([]config.Step, 0, len(found.steps)), Compacted: found.compacted}
	for _, s := range slices.Backward(found.steps) {
		var note config.Note
		if s.note != nil {
			note = *s.note
		}
		h.Steps = append(h.Steps, config.StepOf(s.revision, s.action, note))
	}
	return h
}
