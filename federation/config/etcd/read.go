package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"isthmus.dev/isthmus/federation/config"
)

// records reads what is in etcd, and remembers nothing of it.
type records struct {
	client *clientv3.Client
	epoch  string // of the store that was opened
	o      *ConfigOptions
}

// scan calls visit with every key from begin to before end, a page at a time,
// all as of one moment. Options say more, such as that only keys are wanted.
func (r records) scan(ctx context.Context, begin, end string, visit func(*mvccpb.KeyValue) error, o ...clientv3.OpOption) error {
	page, at := int64(pageOfParts), int64(0)
	for {
		options := append(slices.Clone(o), clientv3.WithRange(end), clientv3.WithLimit(page), clientv3.WithRev(at),
			clientv3.WithSort(clientv3.SortByKey, clientv3.SortAscend))
		answer, err := r.get(ctx, begin, options...)
		if err != nil {
			return err
		}
		if at == 0 {
			at = answer.Header.Revision
		}
		size := 0
		for _, kv := range answer.Kvs {
			size += len(kv.Value)
			if err := visit(kv); err != nil {
				return err
			}
		}
		if !answer.More || len(answer.Kvs) == 0 {
			return nil
		}
		begin = string(answer.Kvs[len(answer.Kvs)-1].Key) + "\x00"
		page = pageOfParts
		if size/len(answer.Kvs) < 4096 {
			page = pageOfKeys
		}
	}
}

// get is one read, which may take as long as a small write.
func (r records) get(ctx context.Context, key string, o ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, r.o.Patience)
	defer cancel()
	return r.client.Get(ctx, key, o...)
}

// folder returns what lies below a prefix.
func (r records) folder(ctx context.Context, prefix string) ([]*mvccpb.KeyValue, error) {
	var kvs []*mvccpb.KeyValue
	err := r.scan(ctx, prefix, clientv3.GetPrefixRangeEnd(prefix), func(kv *mvccpb.KeyValue) error {
		kvs = append(kvs, kv)
		return nil
	})
	return kvs, err
}

// entries returns the log's entries of these revisions, the ends included, or
// ErrUnknownRevision when the first is not there.
func (r records) entries(ctx context.Context, first, last int64) ([]logEntry, error) {
	if first > last {
		return nil, nil
	}
	var found []logEntry
	err := r.scan(ctx, logKey(first), logKey(last+1), func(kv *mvccpb.KeyValue) error {
		if !known(string(kv.Key)) {
			return nil
		}
		e, err := readEntry(kv)
		found = append(found, e)
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(found) == 0 || found[0].Revision != first {
		return nil, config.ErrUnknownRevision
	}
	for i, e := range found {
		if e.Revision != first+int64(i) {
			return nil, &damage{fmt.Sprintf("the record of revision %d", first+int64(i)), errMissing}
		}
	}
	if n := first + int64(len(found)); n <= last {
		return nil, &damage{fmt.Sprintf("the record of revision %d", n), errMissing}
	}
	return found, nil
}

func readEntry(kv *mvccpb.KeyValue) (logEntry, error) {
	var e logEntry
	if err := unseal(kv.Value, &e); err != nil {
		return e, &damage{"key " + string(kv.Key), err}
	}
	if string(kv.Key) != logKey(e.Revision) {
		return e, &damage{"key " + string(kv.Key), errHash}
	}
	return e, nil
}

// checkpoints returns those up to the revision, the oldest first. A damaged
// entry is excluded.
func (r records) checkpoints(ctx context.Context, revision int64) ([]checkpoint, error) {
	var found []checkpoint
	err := r.scan(ctx, checkpointsRoot, checkpointKey(revision+1), func(kv *mvccpb.KeyValue) error {
		var p checkpoint
		if !known(string(kv.Key)) {
			return nil
		}
		if err := unseal(kv.Value, &p); err != nil || string(kv.Key) != checkpointKey(p.Revision) {
			r.o.Logger.Warn("a checkpoint's entry is damaged and not used", "key", string(kv.Key), "err", err)
			return nil
		}
		found = append(found, p)
		return nil
	})
	return found, err
}

// contents reads a transaction whose index has the hash.
func (r records) contents(ctx context.Context, name, id, hash string) (*index, []outcome, error) {
	x, err := r.index(ctx, name, id, hash)
	if err != nil {
		return nil, nil, err
	}
	outcomes, err := r.outcomes(ctx, id, x)
	return x, outcomes, err
}

// index reads the index of a transaction.
func (r records) index(ctx context.Context, name, id, hash string) (*index, error) {
	kvs, err := r.folder(ctx, indexFolder(id))
	if err != nil {
		return nil, err
	}
	if len(kvs) == 0 {
		return nil, &damage{name, errMissing}
	}
	parts := make([][]byte, len(kvs))
	for i, kv := range kvs {
		parts[i] = kv.Value
	}
	x, err := readIndex(parts, hash)
	if err != nil {
		return nil, &damage{name, err}
	}
	return x, nil
}

// outcomes reads the objects of an index, a part at a time.
func (r records) outcomes(ctx context.Context, id string, x *index) ([]outcome, error) {
	outcomes := make([]outcome, len(x.Entries))
	parts := map[string][]int{}
	for i := range x.Entries {
		e := &x.Entries[i]
		outcomes[i].entry = e
		if e.Digest != "" {
			outcomes[i].bad = fmt.Errorf("%w: %w", errDamaged, errMissing)
			key := partKey(valueFolder(id), e.Part)
			parts[key] = append(parts[key], i)
		}
	}
	if len(parts) == 0 {
		return outcomes, nil
	}
	prefix := valueFolder(id)
	err := r.scan(ctx, prefix, clientv3.GetPrefixRangeEnd(prefix), func(kv *mvccpb.KeyValue) error {
		here := parts[string(kv.Key)]
		if len(here) == 0 {
			return nil
		}
		data, err := values(kv.Value)
		for _, i := range here {
			if o := &outcomes[i]; err != nil {
				o.bad = err
			} else {
				o.object, o.bad = o.entry.object(data)
			}
		}
		return nil
	})
	return outcomes, err
}

// gone reports whether something was collected between two reads.
func gone(err error) bool {
	return errors.Is(err, errMissing) || errors.Is(err, config.ErrUnknownRevision)
}
