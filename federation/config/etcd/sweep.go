package etcd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"isthmus.dev/isthmus/federation/config"
)

// shownUnknown is how many keys that are not ours are named one by one.
const shownUnknown = 20

// unreferenced is a staged transaction that nothing refers to, as it was first seen
// and since when, by this process's own clock.
type unreferenced struct {
	root  int64 // etcd's revision of its root; 0: it has none
	since time.Time
}

// sweep collects what is not needed any more and returns what it finds wrong.
func (f *watcher) sweep(ctx context.Context) ([]config.Problem, error) {
	ctx, cancel := context.WithTimeout(ctx, max(time.Minute, 2*f.c.o.Patience))
	defer cancel()
	problems, indexed, err := f.sweepStaged(ctx)
	if err != nil {
		return nil, err
	}
	problems = append(problems, f.duplicateUIDs()...)
	entries, err := f.c.read.checkChain(ctx)
	if err != nil {
		var broken *damage
		if !errors.As(err, &broken) {
			return nil, err
		}
		// What cannot be trusted is kept as it is.
		return append(problems, config.Problem{Code: codeHistory, Message: err.Error()}), nil
	}
	missing, err := f.missing(ctx, entries, indexed)
	if err != nil || f.shown.suspects.Len() > 0 {
		return append(problems, missing...), err
	}
	problems = append(problems, missing...)
	return problems, f.c.write.retire(ctx, f.shown.revision)
}

// sweepStaged removes transactions that stayed unknown for too long, and names
// keys that are not ours.
//
// It returns the transactions that have an index, too.
func (f *watcher) sweepStaged(ctx context.Context) ([]config.Problem, map[string]bool, error) {
	var problems []config.Problem
	unknown := 0
	present := map[string]int64{} // root of each transaction
	indexed := map[string]bool{}
	err := f.c.read.scan(ctx, configRoot, clientv3.GetPrefixRangeEnd(configRoot), func(kv *mvccpb.KeyValue) error {
		key := string(kv.Key)
		if !known(key) {
			unknown++
			if unknown <= shownUnknown {
				problems = append(problems, config.Problem{
					Code: codeUnknownKey, Object: clipped(key),
					Message: "isthmus writes no such key and ignores it; remove it",
				})
			}
			return nil
		}
		if id, err := transaction(key); err == nil {
			present[id] += 0
			if key == rootKey(id) {
				present[id] = kv.ModRevision
			}
			indexed[id] = indexed[id] || strings.HasPrefix(key, indexFolder(id))
		}
		return nil
	}, clientv3.WithKeysOnly())
	if err != nil {
		return nil, nil, err
	}
	if more := unknown - shownUnknown; more > 0 {
		problems = append(problems, config.Problem{Code: codeUnknownKey, Message: fmt.Sprintf("%d more keys are not of isthmus", more)})
	}
	return problems, indexed, f.collect(ctx, present)
}

func (f *watcher) collect(ctx context.Context, present map[string]int64) error {
	now := f.c.o.Now()
	for id := range f.seen {
		if _, still := present[id]; !still {
			delete(f.seen, id)
		}
	}
	for id, root := range present {
		s, before := f.seen[id]
		if !before || s.root != root {
			s = unreferenced{root, now}
			f.seen[id] = s
			if before {
				continue
			}
		}
		if s.since.IsZero() || now.Sub(s.since) < f.c.o.OrphanAge {
			continue
		}
		staged, err := f.c.write.isStaged(ctx, id)
		if err != nil {
			return err
		}
		if !staged {
			f.seen[id] = unreferenced{root: root} // known, and that for ever
			continue
		}
		removed, err := f.c.write.removeStaged(ctx, id, root)
		if err != nil {
			return err
		}
		if removed {
			f.c.o.Meter.Count(CountOrphans, 1)
			f.c.o.Logger.Info("a staged change that was never committed is removed", "tx", id)
		}
	}
	return nil
}

// isStaged reports whether the transaction is marked as not known. One
// whose root cannot be read is left to people.
func (w writer) isStaged(ctx context.Context, id string) (bool, error) {
	answer, err := w.read.get(ctx, rootKey(id))
	if err != nil {
		return false, err
	}
	if len(answer.Kvs) == 0 {
		return true, nil
	}
	var r txRoot
	if err := unseal(answer.Kvs[0].Value, &r); err != nil {
		return false, nil //nolint:nilerr // an unreadable root proves nothing
	}
	return r.Known == 0, nil
}

// checkChain looks whether each entry of the log follows on the one before, and
// returns them.
func (r records) checkChain(ctx context.Context) ([]logEntry, error) {
	var entries []logEntry
	err := r.scan(ctx, logPrefix, clientv3.GetPrefixRangeEnd(logPrefix), func(kv *mvccpb.KeyValue) error {
		if !known(string(kv.Key)) {
			return nil
		}
		e, err := readEntry(kv)
		if err != nil {
			return err
		}
		if n := len(entries); n > 0 && (e.Revision != entries[n-1].Revision+1 || e.Previous != entries[n-1].Hash) {
			return &damage{fmt.Sprintf("the record of revision %d", e.Revision), errors.New("the previous record does not match")}
		}
		entries = append(entries, e)
		return nil
	})
	return entries, err
}

// retire removes the records that are older than what is to be kept, and older
// than a checkpoint from which the rest can be read, the history of the objects
// included.
func (w writer) retire(ctx context.Context, newest int64) error {
	points, err := w.read.checkpoints(ctx, newest-w.o.Retain)
	for err == nil && len(points) > 0 && !points[len(points)-1].Pasts {
		points = points[:len(points)-1] // an earlier version made it
	}
	if err != nil || len(points) == 0 {
		return err
	}
	base := points[len(points)-1]
	if _, err := w.read.fromCheckpoint(ctx, base); err != nil {
		var broken *damage
		if errors.As(err, &broken) {
			w.o.Logger.Warn("a checkpoint is damaged: what is older is kept", "err", err)
			return nil
		}
		return err
	}
	for _, p := range points[:len(points)-1] {
		if err := w.remove(ctx, []clientv3.Op{
			clientv3.OpDelete(checkpointKey(p.Revision)),
			clientv3.OpDelete(txFolder(p.Tx), clientv3.WithPrefix()),
		}); err != nil {
			return err
		}
		w.o.Meter.Count(CountRetired, 1)
	}
	return w.retireLog(ctx, base.Revision)
}

func (w writer) remove(ctx context.Context, ops []clientv3.Op) error {
	ctx, cancel := context.WithTimeout(ctx, w.o.Patience)
	defer cancel()
	_, err := w.client.Txn(repeatably(ctx)).Then(ops...).Commit()
	return err
}

// retireLog removes the records up to the revision, the oldest first, so that
// the rest is a chain at any time.
func (w writer) retireLog(ctx context.Context, last int64) error {
	const perTxn = 30
	var ops []clientv3.Op
	records := 0
	flush := func() error {
		if records == 0 {
			return nil
		}
		err := w.remove(ctx, ops)
		if err == nil {
			w.o.Meter.Count(CountRetired, records)
		}
		ops, records = nil, 0
		return err
	}
	err := w.read.scan(ctx, logPrefix, logKey(last+1), func(kv *mvccpb.KeyValue) error {
		if !known(string(kv.Key)) {
			return nil
		}
		e, err := readEntry(kv)
		if err != nil {
			return err
		}
		ops = append(ops, clientv3.OpDelete(string(kv.Key)), clientv3.OpDelete(txFolder(e.Tx), clientv3.WithPrefix()))
		if strings.HasPrefix(e.Once, oncePrefix) {
			ops = append(ops, clientv3.OpDelete(e.Once))
		}
		records++
		if records < perTxn {
			return nil
		}
		return flush()
	})
	if err != nil {
		return err
	}
	return flush()
}
