package transport

import (
	"context"
	"net/http"
	"strconv"
	"sync/atomic"
)

// Headers about the revision of the configuration.
const (
	// HeaderRevision is of an answer: the revision that the answer shows.
	HeaderRevision = "Isthmus-Revision"
	// HeaderMinRevision is of a request: the answer must show that revision or
	// a later one.
	HeaderMinRevision = "Isthmus-Min-Revision"
)

type revisionsKey struct{}

// revisions are what a request and its answer say of the configuration.
type revisions struct {
	least    string
	answered atomic.Int64 // 0: the answer does not depend on it
}

func withRevisions(ctx context.Context, header http.Header) (context.Context, *revisions) {
	r := &revisions{least: header.Get(HeaderMinRevision)}
	return context.WithValue(ctx, revisionsKey{}, r), r
}

func (r *revisions) set(header http.Header) {
	if r == nil {
		return
	}
	if n := r.answered.Load(); n > 0 {
		header.Set(HeaderRevision, strconv.FormatInt(n, 10))
	}
}

// MinRevision is what the request's header asks for, or "".
func MinRevision(ctx context.Context) string {
	if r, ok := ctx.Value(revisionsKey{}).(*revisions); ok {
		return r.least
	}
	return ""
}

// AnswersAs says which revision the answer to the request shows.
func AnswersAs(ctx context.Context, revision int64) {
	if r, ok := ctx.Value(revisionsKey{}).(*revisions); ok {
		r.answered.Store(revision)
	}
}
