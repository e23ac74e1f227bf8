package etcd

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
)

// window is how many revisions keep every step of every object. The log keeps
// about as many records.
func (r records) window() int64 { return r.o.Retain + r.o.CheckpointRecords }

// History is part of config.Log. It is answered from the newest state: nothing is
// read, unless nothing was read before.
func (c *Config) History(ctx context.Context, key federation.ObjectKey) (config.ObjectHistory, error) {
	s := c.states.newest.Load()
	if s == nil {
		var err error
		s, err = c.firstRead(ctx)
		if err != nil {
			return config.ObjectHistory{}, fault("reading the history", err)
		}
	}
	return s.pasts.history(key, s.revision), nil
}

func (c *Config) firstRead(ctx context.Context) (*state, error) {
	ctx, cancel, err := c.health.reading(ctx)
	if err != nil {
		return nil, err
	}
	defer cancel()
	p, err := c.read.findHead(ctx)
	if err != nil {
		return nil, err
	}
	return c.states.advance(ctx, p)
}

// recall reads what was done to the objects of s: upon the newest checkpoint that
// has it, which those of an earlier version do not, from all records that are
// left. The objects of a record that cannot be read have a gap.
func (r records) recall(ctx context.Context, s *state) (histories, error) {
	known, from, err := r.recallCheckpoint(ctx, s.revision)
	if err != nil {
		return known, err
	}
	err = r.scan(ctx, logKey(from+1), logKey(s.revision+1), func(kv *mvccpb.KeyValue) error {
		e, err := readEntry(kv)
		if err != nil {
			return gap(err)
		}
		x, err := r.index(ctx, fmt.Sprintf("the record of revision %d", e.Revision), e.Tx, e.Hash)
		if err != nil {
			return gap(err)
		}
		known = known.after(x)
		return nil
	})
	return known.completed(s), err
}

// recallCheckpoint returns the histories of the newest good checkpoint that has them,
// and its revision.
func (r records) recallCheckpoint(ctx context.Context, revision int64) (histories, int64, error) {
	points, err := r.checkpoints(ctx, revision)
	for i := len(points) - 1; i >= 0 && err == nil; i-- {
		if !points[i].Pasts {
			continue
		}
		base, bad := r.fromCheckpoint(ctx, points[i])
		if bad == nil {
			return base.pasts, points[i].Revision, nil
		}
		err = gap(bad)
	}
	return noHistories(r.window()), 0, err
}

// gap returns an error only if it is not about what is stored.
func gap(err error) error {
	var damaged *damage
	if errors.As(err, &damaged) {
		return nil
	}
	return err
}
