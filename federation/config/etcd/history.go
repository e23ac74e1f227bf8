package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"

	clientv3 "go.etcd.io/etcd/client/v3"

	"isthmus.dev/isthmus/federation/config"
)

// Records is part of config.Log. A record that does not follow on the one below
// it is an error: the history was altered.
func (c *Config) Records(ctx context.Context, before int64, limit int) ([]config.Record, error) {
	if limit <= 0 {
		return nil, nil
	}
	ctx, cancel, err := c.health.reading(ctx)
	if err != nil {
		return nil, fault("reading the history", err)
	}
	defer cancel()
	end := clientv3.GetPrefixRangeEnd(logPrefix)
	if before > 0 {
		end = logKey(before)
	}
	answer, err := c.client.Get(ctx, logPrefix, clientv3.WithRange(end), clientv3.WithLimit(int64(limit)),
		clientv3.WithSort(clientv3.SortByKey, clientv3.SortDescend))
	if err != nil {
		return nil, fault("reading the history", err)
	}
	records := make([]config.Record, 0, len(answer.Kvs))
	previous := "" // the hash of this record in the one above
	for _, kv := range answer.Kvs {
		if !known(string(kv.Key)) {
			continue
		}
		e, err := readEntry(kv)
		if err != nil {
			return nil, err
		}
		if len(records) > 0 && e.Hash != previous {
			return nil, &damage{fmt.Sprintf("the record of revision %d", e.Revision), errHash}
		}
		previous = e.Previous
		r, err := c.read.record(ctx, e)
		if gone(err) {
			break // collected meanwhile, and so is what is below it
		}
		if err != nil {
			return nil, fault("reading the history", err)
		}
		records = append(records, *r)
	}
	return records, nil
}

func (r records) record(ctx context.Context, e logEntry) (*config.Record, error) {
	name := fmt.Sprintf("the record of revision %d", e.Revision)
	x, outcomes, err := r.contents(ctx, name, e.Tx, e.Hash)
	if err != nil {
		return nil, err
	}
	if x.Revision != e.Revision || x.Previous != e.Previous {
		return nil, &damage{name, errHash}
	}
	found := &config.Record{Revision: x.Revision, Note: x.Note, Changes: make([]config.RecordedChange, len(outcomes))}
	for i, o := range outcomes {
		found.Changes[i] = config.RecordedChange{Key: o.Key, Action: o.Action, Object: o.object}
	}
	return found, nil
}

// At is part of config.Log.
func (c *Config) At(ctx context.Context, revision int64) ([]config.Object, error) {
	ctx, cancel, err := c.health.reading(ctx)
	if err != nil {
		return nil, fault("reading the history", err)
	}
	defer cancel()
	p, err := c.read.findHead(ctx)
	if err != nil {
		return nil, fault("reading the history", err)
	}
	if revision < 0 || revision > p.Revision {
		return nil, config.ErrUnknownRevision
	}
	s := c.states.newest.Load()
	if s == nil || s.revision != revision || revision == p.Revision && s.hash != p.Hash {
		s, err = c.states.loadAgain(ctx, revision)
		if err != nil {
			if errors.Is(err, config.ErrUnknownRevision) {
				return nil, config.ErrUnknownRevision
			}
			return nil, fault("reading the history", err)
		}
	}
	objects := make([]config.Object, 0, s.objects.Len())
	s.objects.Walk(func(_ string, o *config.Object) bool {
		objects = append(objects, *o)
		return false
	})
	return slices.Clip(objects), nil
}

// Find is part of config.Log.
func (c *Config) Find(ctx context.Context, idempotencyKey string) (*config.Record, error) {
	ctx, cancel := c.o.within(ctx)
	defer cancel()
	if idempotencyKey == "" {
		return nil, nil
	}
	if r := c.store.refusalOfEnded(); r != nil { // the change that asks is refused as one without a key
		return nil, fmt.Errorf("%w: %w", config.ErrUnavailable, r)
	}
	answer, err := c.client.Txn(ctx).Then(append(headOps(), clientv3.OpGet(onceKey(idempotencyKey)))...).Commit()
	if err != nil {
		return nil, fault("looking for the commit", err)
	}
	revision, err := madeAs(answer, idempotencyKey)
	if err != nil || revision == 0 {
		return nil, err
	}
	entries, err := c.read.entries(ctx, revision, revision)
	if err != nil {
		return nil, fault("looking for the commit", err)
	}
	r, err := c.read.record(ctx, entries[0])
	return r, fault("looking for the commit", err)
}
