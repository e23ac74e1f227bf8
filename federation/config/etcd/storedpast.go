package etcd

import (
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
)

// storedPast is the past of an object in a checkpoint. The notes of its steps are
// in the checkpoint once for each revision.
type storedPast struct {
	Steps     []storedStep
	Compacted bool `json:",omitempty"`
}

type storedStep struct {
	Revision int64         `json:"r"`
	Action   config.Action `json:"a,omitempty"`
}

// addPasts adds what was done to the objects of a checkpoint, and to those that are
// deleted.
func (d *draft) addPasts(s *state) {
	d.Pasts, d.Notes = true, map[int64]*config.Note{}
	for i := range d.Entries {
		if p, found := s.pasts.of.Get(treeKey(d.Entries[i].Key)); found {
			d.Entries[i].Past = d.stored(p.kept(s.revision, s.pasts.window))
		}
	}
	s.pasts.deleted.Walk(func(key string, _ struct{}) bool {
		_, object := readDeletedKey(key)
		if p, found := s.pasts.of.Get(object); found {
			of, _ := federation.ParseObjectKey(object) // which treeKey wrote
			d.add(entry{Key: of, Action: config.Deleted, Revision: p.last(), Past: d.stored(p.kept(s.revision, s.pasts.window))}, nil)
		}
		return false
	})
}

func (d *draft) stored(p *objectHistory) *storedPast {
	stored := &storedPast{Compacted: p.compacted, Steps: make([]storedStep, len(p.steps))}
	for i, s := range p.steps {
		stored.Steps[i] = storedStep{s.revision, s.action}
		if s.note != nil {
			d.Notes[s.revision] = s.note
		}
	}
	return stored
}

// readPasts reads the histories of a checkpoint; one of an earlier version has none.
func (x *index) readPasts(window int64) histories {
	p := noHistories(window)
	p.complete = x.Pasts
	of, deleted := p.of.Txn(), p.deleted.Txn()
	for i := range x.Entries {
		e := &x.Entries[i]
		if e.Past == nil || len(e.Past.Steps) == 0 {
			continue
		}
		key := treeKey(e.Key)
		found := &objectHistory{steps: make([]step, len(e.Past.Steps)), compacted: e.Past.Compacted}
		for j, s := range e.Past.Steps {
			found.steps[j] = step{s.Revision, s.Action, x.Notes[s.Revision]}
		}
		of.Set(key, found)
		if e.Action == config.Deleted {
			deleted.Set(deletedKey(found.last(), key), struct{}{})
		}
	}
	p.of, p.deleted = of.Commit(), deleted.Commit()
	return p
}

// completed is what can be told where no checkpoint has the histories: what the records
// that are left say, and of an object of which they say nothing, the revision
// since which it is so.
func (p histories) completed(s *state) histories {
	of := p.of.Txn()
	p.of.Walk(func(key string, found *objectHistory) bool {
		if found.steps[0].action != config.Created && !found.compacted {
			of.Set(key, &objectHistory{steps: found.steps, compacted: true})
		}
		return false
	})
	s.objects.Walk(func(key string, o *config.Object) bool {
		if _, found := p.of.Get(key); !found {
			of.Set(key, &objectHistory{steps: []step{{revision: o.Revision}}, compacted: true})
		}
		return false
	})
	p.of, p.complete = of.Commit(), true
	return p
}
