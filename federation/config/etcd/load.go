package etcd

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/semaphore"

	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/internal/wake"
)

const (
	pageOfKeys  = 500
	pageOfParts = 8 // of up to 1 MiB each
)

// place is the head as the store returned it at one moment.
type place struct {
	head
	mod int64 // etcd's revision of the head key; 0: nothing was ever committed
	at  int64 // etcd's revision of the answer
}

// headOps read what readPlace reads.
func headOps() []clientv3.Op { return []clientv3.Op{clientv3.OpGet(headKey), clientv3.OpGet(epochKey)} }

// readPlace reads the answers to headOps.
func (r records) readPlace(answer *clientv3.TxnResponse) (place, error) {
	p := place{at: answer.Header.Revision}
	heads, epochs := answer.Responses[0].GetResponseRange().Kvs, answer.Responses[1].GetResponseRange().Kvs
	if len(epochs) != 1 || string(epochs[0].Value) != r.epoch {
		return p, fmt.Errorf("%w: its epoch changed; restart isthmus to use it", errOtherStore)
	}
	if len(heads) == 0 {
		return p, nil
	}
	p.mod = heads[0].ModRevision
	if err := unseal(heads[0].Value, &p.head); err != nil {
		return p, &damage{"key " + headKey, err}
	}
	if p.Epoch != r.epoch {
		return p, &damage{"key " + headKey, errOtherStore}
	}
	return p, nil
}

func (r records) findHead(ctx context.Context) (place, error) {
	answer, err := r.client.Txn(ctx).Then(headOps()...).Commit()
	if err != nil {
		return place{}, err
	}
	return r.readPlace(answer)
}

// cache is the newest state that was read, and how the next one is read.
type cache struct {
	o      *ConfigOptions
	read   records
	turn   *semaphore.Weighted        // of what moves newest
	newest atomic.Pointer[state]      // nil: nothing read yet
	mark   *atomic.Pointer[mark]      // of the checkpoint that newest began with
	made   wake.Signal                // something was committed here that the watcher may not know of
	making atomic.Pointer[transition] // the commit that is being made here; nil: none
}

// advance moves the newest state to the place and returns it; it is a newer one
// when the place is old. On an error it stays where it was, or on the way.
func (c *cache) advance(ctx context.Context, to place) (*state, error) {
	if err := c.turn.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	defer c.turn.Release(1)
	from := c.newest.Load()
	if from != nil && from.mod > to.mod {
		// The place was read before from was, or the store was put back.
		var err error
		to, err = c.read.findHead(ctx)
		if err != nil {
			return nil, err
		}
	}
	if from != nil && from.revision == to.Revision && from.hash == to.Hash {
		return from, nil
	}
	if from == nil || from.revision >= to.Revision {
		return c.reload(ctx, from, to)
	}
	entries, err := c.read.entries(ctx, from.revision+1, to.Revision)
	if gone(err) {
		return c.reload(ctx, from, to)
	}
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		next, err := c.follow(ctx, from, e)
		if gone(err) {
			return c.reload(ctx, from, to)
		}
		if err != nil {
			return nil, err
		}
		if next.revision == to.Revision {
			next.mod = to.mod
		}
		c.moveTo(from, next)
		from = next
	}
	if from.hash != to.Hash {
		return nil, &damage{"key " + headKey, errHash}
	}
	return from, nil
}

func (c *cache) moveTo(from, next *state) {
	if n := next.suspects.Len(); n > 0 {
		c.o.Meter.Count(CountQuarantined, max(0, n-from.suspects.Len()))
	}
	if made := c.making.Load(); made != nil && made.to.revision <= next.revision {
		c.making.CompareAndSwap(made, nil)
	}
	c.newest.Store(next)
	from.next.Store(next)
}

// reload reads the state again, and keeps what is equal to old's.
func (c *cache) reload(ctx context.Context, old *state, to place) (*state, error) {
	s, err := c.loadAgain(ctx, to.Revision)
	if err != nil {
		return nil, err
	}
	if s.hash != to.Hash {
		return nil, &damage{"key " + headKey, errHash}
	}
	stored := s.pasts.complete
	if !stored {
		s.pasts, err = c.read.recall(ctx, s)
		if err != nil {
			return nil, err
		}
	}
	s.reusing(old)
	s.whole, s.changed, s.mod = true, nil, to.mod
	c.mark.Store(&mark{revision: s.base, pasts: stored})
	if old == nil {
		old = emptyState()
	}
	c.moveTo(old, s)
	return s, nil
}

// loadAgain is load, repeated when a value was collected while it was read.
func (c *cache) loadAgain(ctx context.Context, revision int64) (*state, error) {
	s, err := c.load(ctx, revision)
	for range 2 {
		if !gone(err) {
			break
		}
		s, err = c.load(ctx, revision)
	}
	return s, err
}

// load reads the state as of a revision: the newest good checkpoint, and the
// records after it.
func (c *cache) load(ctx context.Context, revision int64) (*state, error) {
	checkpoints, err := c.read.checkpoints(ctx, revision)
	if err != nil {
		return nil, err
	}
	var bad *damage
	for i := len(checkpoints) - 1; i >= -1; i-- {
		s := emptyState()
		s.pasts = noHistories(c.read.window())
		if i >= 0 {
			s, err = c.read.fromCheckpoint(ctx, checkpoints[i])
			if err != nil {
				if !errors.As(err, &bad) {
					return nil, err
				}
				c.o.Logger.Warn("a checkpoint is damaged and an older one is used", "err", err)
				continue
			}
		}
		entries, err := c.read.entries(ctx, s.revision+1, revision)
		if err != nil {
			if errors.Is(err, config.ErrUnknownRevision) && bad != nil {
				return nil, bad
			}
			return nil, err
		}
		for _, e := range entries {
			s, err = c.follow(ctx, s, e)
			if err != nil {
				return nil, err
			}
		}
		return s, nil
	}
	return nil, config.ErrUnknownRevision
}

// follow reads the record that follows on s.
func (c *cache) follow(ctx context.Context, s *state, e logEntry) (*state, error) {
	if made := c.making.Load(); made != nil && made.from == s && made.to.hash == e.Hash {
		return made.to, nil
	}
	name := fmt.Sprintf("the record of revision %d", e.Revision)
	x, outcomes, err := c.read.contents(ctx, name, e.Tx, e.Hash)
	if err != nil {
		return nil, err
	}
	if x.Revision != e.Revision || x.Previous != s.hash || e.Revision != s.revision+1 {
		return nil, &damage{name, errors.New("the previous record does not match")}
	}
	misdated(outcomes, func(revision int64) bool { return revision == x.Revision })
	return s.after(x, e.Hash, outcomes), nil
}

func (r records) fromCheckpoint(ctx context.Context, p checkpoint) (*state, error) {
	name := fmt.Sprintf("the checkpoint of revision %d", p.Revision)
	x, outcomes, err := r.contents(ctx, name, p.Tx, p.Hash)
	if err != nil {
		return nil, err
	}
	if x.Revision != p.Revision || x.Previous != p.Record {
		return nil, &damage{name, errHash}
	}
	misdated(outcomes, func(revision int64) bool { return 0 < revision && revision <= x.Revision })
	s := emptyState().with(x, p.Record, outcomes)
	s.pasts = x.readPasts(r.window())
	s.base, s.weight, s.whole = p.Revision, 0, true
	return s, nil
}
