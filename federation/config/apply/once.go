package apply

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"maps"
	"slices"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/kind"
)

// findPatience is how long the store may take to look for an idempotency key.
const findPatience = 4 * time.Second

func (e *Engine) find(ctx context.Context, key string) (*config.Record, error) {
	ctx, cancel := context.WithTimeout(ctx, findPatience)
	defer cancel()
	return e.Log.Find(ctx, key)
}

// repeated is the result of the same request before, or nil. Another request
// with the same idempotency key is refused.
func (e *Engine) repeated(ctx context.Context, o Origin) (*Result, error) {
	if o.IdempotencyKey == "" {
		return nil, nil
	}
	record, err := e.find(ctx, o.IdempotencyKey)
	switch {
	case errors.Is(err, config.ErrUnavailable):
		r, err := refusedBy(err)
		return &r, err
	case err != nil:
		return nil, fmt.Errorf("looking for the idempotency key: %w", err)
	case record == nil:
		return nil, nil
	}
	return e.resultOf(ctx, o, record), nil
}

func (e *Engine) resultOf(ctx context.Context, o Origin, record *config.Record) *Result {
	if record.RequestDigest != "" && record.RequestDigest != o.digest {
		return &Result{Errors: []Error{{Code: KeyReused, Field: "idempotencyKey", Message: fmt.Sprintf(
			"another request with this key became revision %d: give each request a key of its own", record.Revision)}}}
	}
	r := &Result{Revision: record.Revision}
	for _, c := range record.Changes {
		if !kind.Internal(c.Key.Of()) {
			r.Changes = append(r.Changes, Change{Key: c.Key, Action: c.Action, Object: c.Object})
		}
	}
	e.awaitVisible(ctx, r)
	return r
}

// madeBefore is the result of the request, which another hub was faster with: its commit is
// in force as that revision.
func (e *Engine) madeBefore(ctx context.Context, o Origin, planned Result, revision int64) *Result {
	record, err := e.find(ctx, o.IdempotencyKey)
	if err != nil || record == nil {
		return e.published(ctx, planned, revision) // a commit with the key is in force: nothing better is known of it
	}
	return e.resultOf(ctx, o, record)
}

// digest is of everything that a request asks for.
type digest struct{ hash.Hash }

func newDigest(what string, o Origin) digest {
	d := digest{sha256.New()}
	return d.add(what, o.Author, o.Message, o.Ticket)
}

func (d digest) add(texts ...string) digest {
	for _, t := range texts {
		_, _ = fmt.Fprintf(d, "%d:%s", len(t), t) // a hash takes everything
	}
	return d
}

func (d digest) expected(whole *int64, each map[federation.ObjectKey]int64) digest {
	if whole != nil {
		d.add("at", fmt.Sprint(*whole))
	}
	for _, key := range slices.SortedFunc(maps.Keys(each), federation.ObjectKey.Compare) {
		d.objects(key).add(fmt.Sprint(each[key]))
	}
	return d
}

func (d digest) objects(keys ...federation.ObjectKey) digest {
	for _, k := range keys {
		d.add(k.Group, k.Kind, k.Namespace, k.Name)
	}
	return d
}

func (d digest) text() string { return hex.EncodeToString(d.Sum(nil)) }

func (r Request) digest() string {
	d := newDigest("apply", r.Origin).
		add(r.Manager, r.Set, fmt.Sprint(r.Force, r.Prune, r.CompareResourceVersion), r.Namespace).
		expected(r.ExpectedRevision, r.ExpectedRevisions)
	for _, f := range r.Manifests {
		d.add("file", f.Name)
		_, _ = fmt.Fprintf(d, "%d:", len(f.Data))
		_, _ = io.WriteString(d, f.Data)
	}
	return d.text()
}

func (d Deletion) digest() string {
	return newDigest("delete", d.Origin).expected(d.ExpectedRevision, nil).objects(d.Objects...).text()
}

func (r Rollback) digest() string {
	return newDigest("rollback", r.Origin).add(fmt.Sprint(r.To)).text()
}
