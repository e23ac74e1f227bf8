package etcd

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/internal/retry"
)

// mark is the newest checkpoint that this process knows of.
type mark struct {
	revision, weight int64
	pasts            bool
}

// checkpointer makes checkpoints.
type checkpointer struct {
	client *clientv3.Client
	o      *ConfigOptions
	write  writer
	mark   *atomic.Pointer[mark] // nil: nothing read yet
	asked  chan checkpointRequest
}

// due reports whether a checkpoint is worth its bytes. While a stored value is not
// usable none is made: the value stays where it can be repaired.
func (p *checkpointer) due(s *state) bool {
	const small = 4 << 20
	m := p.mark.Load()
	if m == nil || s.suspects.Len() > 0 || s.revision <= m.revision {
		return false
	}
	return !m.pasts || s.revision-m.revision >= p.o.CheckpointRecords || s.weight-m.weight > max(small, 2*s.live)
}

// checkpointRequest is a checkpoint that the watcher asks for.
type checkpointRequest struct {
	state *state
	gap   bool // a record before it is missing: it is needed whatever it costs
}

// request asks for a checkpoint without waiting for it. While one is asked
// for already it does nothing: the watcher asks again.
func (p *checkpointer) request(w checkpointRequest) {
	select {
	case p.asked <- w:
	default:
	}
}

func (p *checkpointer) needed(w checkpointRequest) bool {
	m := p.mark.Load()
	return w.gap && m != nil && m.revision < w.state.revision || p.due(w.state)
}

// run makes the checkpoints that are asked for until the context ends. It runs beside the
// watcher, which a slow store would hold up. After a failure it waits, longer each time,
// and allows the next checkpoint as much time more as it waited.
func (p *checkpointer) run(ctx context.Context) {
	pauses := retry.Backoff{First: p.o.Sweep, Longest: max(p.o.Sweep, longestPause)}
	var pause time.Duration
	var notBefore time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case w := <-p.asked:
			if p.o.Now().Before(notBefore) || !p.needed(w) {
				continue
			}
			err := p.make(ctx, w.state, pause)
			if ctx.Err() != nil {
				return
			}
			if err == nil {
				pauses.Reset()
				pause = 0
				continue
			}
			pause = pauses.Next()
			notBefore = p.o.Now().Add(pause)
			p.o.Logger.Warn("a checkpoint of the configuration could not be made", "revision", w.state.revision, "err", err, "retryIn", pause)
		}
	}
}

// longestPause is the longest one after a checkpoint that failed.
const longestPause = time.Hour

// make writes every object of the state and makes that known, unless another replica
// was quicker. It takes longer than usual by extra at most.
func (p *checkpointer) make(ctx context.Context, s *state, extra time.Duration) error {
	limit := 2*p.o.Patience + time.Duration(s.live>>20)*time.Second + extra
	limited, cancel := context.WithTimeout(ctx, min(limit, p.o.OrphanAge/2)) // before it counts as an orphan
	defer cancel()
	if err := p.save(limited, s); err != nil {
		return err
	}
	p.mark.Store(&mark{revision: s.revision, weight: s.weight, pasts: true})
	return nil
}

func (p *checkpointer) save(ctx context.Context, s *state) error {
	switch r := p.write.store.refusal(checkpointReserve(s)); {
	case r != nil && r.Limit == limitFull:
		return fmt.Errorf("the disk of %s has no room for it beside the %d MiB that changes need: free %d MiB in all",
			p.write.store.dir, diskReserve>>20, checkpointReserve(s)>>20)
	case r != nil:
		return r
	}
	known, err := p.client.Get(ctx, checkpointKey(s.revision), clientv3.WithCountOnly())
	if err != nil || known.Count > 0 {
		return err
	}
	d := &draft{index: index{indexHead: indexHead{Revision: s.revision, Previous: s.hash}}}
	s.objects.Walk(func(_ string, o *config.Object) bool {
		d.add(entry{Key: o.Key, Action: config.Created, APIVersion: o.APIVersion, Revision: o.Revision}, o.Manifest)
		return false
	})
	d.addPasts(s)
	t, err := p.write.stage(ctx, d)
	if err == nil {
		var made bool
		made, err = p.publish(ctx, t, s)
		if made {
			p.o.Meter.Count(CountCheckpoints, 1)
			return nil
		}
	}
	p.write.discard(ctx, t) // unless it became known after all
	return err
}

// checkpointReserve is how much of the disk must be free for a checkpoint: what it writes, into the log of writes and
// into the database, must leave the room that changes need. A checkpoint can wait, changes cannot.
func checkpointReserve(s *state) uint64 { return diskReserve + 2*uint64(s.live) }

func (p *checkpointer) publish(ctx context.Context, t staged, s *state) (bool, error) {
	value, err := sealed(checkpoint{Revision: s.revision, Tx: t.id, Hash: t.hash, Record: s.hash, Pasts: true})
	if err != nil {
		return false, err
	}
	key := checkpointKey(s.revision)
	answer, err := p.write.publish(ctx, t, publication{
		revision: s.revision,
		// The record that it summarizes is still the one of that revision.
		ifs: []clientv3.Cmp{
			clientv3.Compare(clientv3.CreateRevision(key), "=", 0),
			clientv3.Compare(clientv3.CreateRevision(logKey(s.revision)), ">", 0),
		},
		puts: []clientv3.Op{clientv3.OpPut(key, value)},
	})
	if err != nil {
		return false, fmt.Errorf("making a checkpoint: %w", err)
	}
	return answer.Succeeded, nil
}
