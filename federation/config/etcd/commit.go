package etcd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"isthmus.dev/isthmus/federation/config"
)

// Commit is part of config.Log.
func (c *Config) Commit(ctx context.Context, commit config.Commit) (int64, error) {
	if err := commit.Refusal(); err != nil {
		return 0, err
	}
	if r := c.store.refusalOfEnded(); r != nil {
		return 0, r
	}
	if commit.Time.IsZero() {
		commit.Time = c.o.Now()
	}
	// A large commit may take longer: a second for every MiB.
	size := 0
	for _, change := range commit.Changes {
		if change.Object != nil {
			size += len(change.Object.Manifest)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, c.o.Patience+time.Duration(size>>20)*time.Second)
	defer cancel()
	revision, err := c.commit(ctx, commit)
	var moved *config.Moved
	var repeated *config.Repeated
	switch {
	case errors.As(err, &moved):
		c.o.Meter.Count(CountConflicts, 1)
		return 0, err
	case errors.As(err, &repeated):
		return 0, err
	case err != nil:
		return 0, fault("committing", err)
	}
	return revision, nil
}

func (c *Config) commit(ctx context.Context, commit config.Commit) (int64, error) {
	p, err := c.begin(ctx, commit)
	if err != nil {
		return 0, err
	}
	if err := c.store.onDisk(); err != nil {
		return 0, err
	}
	s, err := c.states.advance(ctx, p)
	if err != nil {
		return 0, err
	}
	if s.revision != commit.Base {
		return 0, &config.Moved{Base: commit.Base, Now: s.revision}
	}
	d, outcomes := drafted(s, commit)
	t, err := c.write.stage(ctx, d)
	if err != nil {
		if errors.Is(err, rpctypes.ErrNoSpace) {
			c.write.discard(ctx, t)
		}
		return 0, err
	}
	if err := c.step.reach("staged"); err != nil {
		return 0, err
	}
	next := s.after(&d.index, t.hash, outcomes)
	d.Entries, d.parts = nil, nil // the watcher publishes while the head moves
	made := &transition{from: s, to: next}
	c.states.making.Store(made)
	now, earlier, err := c.moveHead(ctx, t, d, p)
	if err != nil || !now.taken {
		c.states.making.CompareAndSwap(made, nil)
	}
	if err != nil {
		if errors.Is(err, rpctypes.ErrNoSpace) {
			c.write.discard(ctx, t)
		}
		return 0, err
	}
	if !now.taken {
		c.write.discard(ctx, t)
		if earlier != 0 {
			return 0, &config.Repeated{Revision: earlier}
		}
		if now.mod == p.mod {
			return 0, fmt.Errorf("%w: %w", config.ErrUnavailable, errCollected)
		}
		return 0, &config.Moved{Base: commit.Base, Now: now.Revision}
	}
	c.o.Meter.Count(CountCommits, 1)
	c.states.append(s, next, now.mod)
	return d.Revision, nil
}

// transition is a commit of this process: the state that it was computed from, and the one
// that follows. Who follows the store takes it from here once the store has it, and
// does not read all of it again.
type transition struct{ from, to *state }

// begin reads from where the commit starts.
func (c *Config) begin(ctx context.Context, commit config.Commit) (place, error) {
	answer, err := c.client.Txn(ctx).Then(append(headOps(), clientv3.OpGet(onceKey(commit.IdempotencyKey)))...).Commit()
	if err != nil {
		return place{}, err
	}
	p, err := c.read.readPlace(answer)
	if err != nil {
		return p, err
	}
	earlier, err := madeAs(answer, commit.IdempotencyKey)
	switch {
	case err != nil:
		return p, err
	case earlier != 0:
		return p, &config.Repeated{Revision: earlier}
	case p.Revision != commit.Base:
		return p, &config.Moved{Base: commit.Base, Now: p.Revision}
	}
	return p, nil
}

// madeAs reads the third answer: the revision of a commit with that key.
func madeAs(answer *clientv3.TxnResponse, key string) (int64, error) {
	kvs := answer.Responses[2].GetResponseRange().Kvs
	if key == "" || len(kvs) == 0 {
		return 0, nil
	}
	var revision int64
	if err := unseal(kvs[0].Value, &revision); err != nil {
		return 0, &damage{"key " + string(kvs[0].Key), err}
	}
	return revision, nil
}

// drafted is the record of the commit upon s.
func drafted(s *state, commit config.Commit) (*draft, []outcome) {
	d := &draft{index: index{indexHead: indexHead{Revision: s.revision + 1, Previous: s.hash, Note: commit.Note}}, secrets: commit.Secrets}
	d.Entries = make([]entry, 0, len(commit.Changes))
	outcomes := make([]outcome, len(commit.Changes))
	for i, change := range commit.Changes {
		old, o := s.get(change.Key), change.Object
		_, suspect := s.suspects.Get(treeKey(change.Key))
		e := entry{Key: change.Key, Revision: d.Revision}
		var manifest []byte
		switch {
		case o == nil && old == nil && !suspect:
			e.Action = config.Unchanged
		case o == nil:
			e.Action = config.Deleted
		case old != nil && !suspect && old.APIVersion == o.APIVersion && bytes.Equal(old.Manifest, o.Manifest):
			e.Action, e.APIVersion, e.Revision = config.Unchanged, o.APIVersion, old.Revision
		default:
			e.Action, e.APIVersion, manifest = config.Created, o.APIVersion, o.Manifest
			if old != nil {
				e.Action = config.Updated
			}
			outcomes[i].object = &config.Object{Key: sharedKey(o.Key), APIVersion: shared(o.APIVersion), Revision: d.Revision, Manifest: o.Manifest}
		}
		d.add(e, manifest)
		outcomes[i].entry = &d.Entries[i]
	}
	return d, outcomes
}

// verdict is what came of moving the head: whether it moved, and where it is.
type verdict struct {
	place
	taken bool
}

// moveHead makes the record known. When that cannot be any more it returns where
// the head is now, and the revision as which the commit was made before.
func (c *Config) moveHead(ctx context.Context, t staged, d *draft, p place) (verdict, int64, error) {
	h := head{Revision: d.Revision, Tx: t.id, Hash: t.hash, Epoch: c.store.epoch, Time: d.Note.Time}
	e := logEntry{Revision: d.Revision, Tx: t.id, Hash: t.hash, Previous: d.Previous}
	ifs := []clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(headKey), "=", p.mod)}
	once := onceKey(d.Note.IdempotencyKey)
	if d.Note.IdempotencyKey != "" {
		e.Once = once
		ifs = append(ifs, clientv3.Compare(clientv3.CreateRevision(once), "=", 0))
	}
	puts, err := sealedPuts(map[string]any{headKey: h, logKey(d.Revision): e, e.Once: d.Revision})
	if err != nil {
		return verdict{}, 0, err
	}
	beside, err := secretOps(d.secrets)
	if err != nil {
		return verdict{}, 0, err
	}
	puts = append(puts, beside...)
	answer, err := c.write.publish(ctx, t, publication{
		revision: d.Revision, ifs: ifs, puts: puts,
		orElse: append(headOps(), clientv3.OpGet(once), clientv3.OpGet(logKey(d.Revision))),
	})
	if errors.Is(err, rpctypes.ErrNoSpace) && c.read.isRecordOf(ctx, d.Revision, t.id) {
		return verdict{place{mod: p.mod}, true}, 0, nil // etcd says so of the write that filled it, too
	}
	if err != nil {
		return verdict{}, 0, fmt.Errorf("%w; whether the commit is in force is not known", err)
	}
	if answer.Succeeded {
		return verdict{place{mod: answer.Header.Revision}, true}, 0, nil
	}
	if at := loggedAt(answer, t.id); at != 0 {
		return verdict{place{mod: at}, true}, 0, nil // by an earlier try, whose answer was lost
	}
	now, err := c.read.readPlace(answer)
	if err != nil {
		return verdict{}, 0, err
	}
	earlier, err := madeAs(answer, d.Note.IdempotencyKey)
	return verdict{place: now}, earlier, err
}

// loggedAt reads the fourth answer: etcd's revision of the log's entry, if that
// is of the transaction; else 0.
func loggedAt(answer *clientv3.TxnResponse, id string) int64 {
	for _, kv := range answer.Responses[3].GetResponseRange().Kvs {
		if e, err := readEntry(kv); err == nil && e.Tx == id {
			return kv.ModRevision
		}
	}
	return 0
}

// isRecordOf reports whether the transaction is the record of that revision.
func (r records) isRecordOf(ctx context.Context, revision int64, id string) bool {
	entries, err := r.entries(ctx, revision, revision)
	return err == nil && entries[0].Tx == id
}

// sealedPuts are the puts of documents; one without a key is excluded.
func sealedPuts(documents map[string]any) ([]clientv3.Op, error) {
	var puts []clientv3.Op
	for key, document := range documents {
		if key == "" {
			continue
		}
		value, err := sealed(document)
		if err != nil {
			return nil, err
		}
		puts = append(puts, clientv3.OpPut(key, value))
	}
	return puts, nil
}

// append makes next the newest state, if from still is, and tells the watcher. Mod
// is etcd's revision of the head.
func (c *cache) append(from, next *state, mod int64) {
	defer func() {
		c.made.Notify()
	}()
	if !c.turn.TryAcquire(1) {
		return // a reader has it already
	}
	defer c.turn.Release(1)
	if c.newest.Load() == from {
		next.mod = mod
		c.moveTo(from, next)
	}
}
