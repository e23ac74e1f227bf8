package listwatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime/debug"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"

	"isthmus.dev/isthmus/internal/retry"
)

const (
	listTimeout  = time.Minute // of one page
	firstPause   = time.Second // after trouble
	longestPause = 30 * time.Second
	atOnce       = time.Second     // a watch that ends sooner is trouble
	secondLook   = 2 * time.Second // until a doubtful list is read again
)

// reflector says what the server has of one resource: a complete list, then every
// change. A watch that breaks goes on at its version; only a version that the
// server does not keep any more (410) or another epoch needs a new list; and now
// and then one finds events that never came (F46). Lists
// are read from a quorum in pages, each object cut down as its page arrives; a
// list that breaks off is dropped whole (F43). Streamed lists (WatchList) are
// not used: with paging the memory is bounded on servers of every age.
type reflector[T any] struct {
	Resource[T]
	cluster *Cluster
	share   *Share
	to      Sink[T]

	lacking bool   // it was logged that the account may not list them
	version string // to go on from; "" needs a list
	epoch   uint64
	pauses  retry.Backoff
}

// Follow keeps the sink up to date with the cluster's objects of the resource, until the
// context ends. It passes on only what it read from the proven cluster. On trouble Follow
// tries again, and what the sink has stays. What the sink keeps counts in the share.
func Follow[T any](ctx context.Context, c *Cluster, r Resource[T], share *Share, to Sink[T]) {
	f := &reflector[T]{
		Resource: r.withDefaults(), cluster: c, share: share, to: to,
		pauses: retry.Backoff{First: firstPause, Longest: longestPause},
	}
	f.run(ctx)
}

func (r *reflector[T]) run(ctx context.Context) {
	for {
		s, err := r.cluster.enter(ctx, func(why error) { r.to.Following(ctx, UnprovenError{why}) })
		if err != nil || r.Tries != nil && r.Tries.Wait(ctx) != nil {
			return
		}
		err = r.attempt(ctx, s)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			continue
		}
		r.to.Following(ctx, err)
		r.cluster.ask()
		if !errors.Is(err, ErrRelist) && !r.pauses.Wait(ctx) {
			return
		}
	}
}

// attempt lists if need be, and watches until the watch or the permit ends.
// nil means that the watch may go on at once.
func (r *reflector[T]) attempt(ctx context.Context, s permit) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-s.lost:
			cancel()
		case <-ctx.Done():
		}
	}()
	if s.epoch != r.epoch {
		r.version, r.epoch = "", s.epoch
	}
	err := r.follow(ctx, s)
	select {
	case <-s.lost:
		r.pauses.Reset()
		return ErrRelist
	default:
		return err
	}
}

func (r *reflector[T]) follow(ctx context.Context, s permit) error {
	if r.version == "" {
		if err := r.relist(ctx, s); err != nil {
			r.share.unlist()
			r.share.of.Show()
			if r.Optional && apierrors.IsForbidden(err) {
				return r.without(ctx)
			}
			return err
		}
	}
	life := r.Renew*6/10 + rand.N(r.Renew*3/10)
	w, err := r.Watch(ctx, r.watchOptions(life))
	switch {
	case expired(err):
		r.version = ""
		return nil
	case err != nil:
		return AccessError{Verb: "watch", Resource: r.Name, Err: err}
	}
	defer func() {
		w.Stop()
		for range w.ResultChan() { // until its goroutine is gone
		}
	}()
	if err := r.cluster.prove(ctx, s); err != nil {
		return err
	}
	r.to.Following(ctx, nil)
	began := time.Now()
	err = r.consume(ctx, w)
	if r.Reconcile && err == nil && time.Since(began) >= life-time.Second {
		r.version = ""
	}
	return err
}

// relist passes on a complete list of the proven cluster.
func (r *reflector[T]) relist(ctx context.Context, s permit) error {
	items, version, err := r.listAll(ctx)
	if err == nil && r.Doubtful != nil && r.Doubtful(items) && retry.Sleep(ctx, secondLook) {
		items, version, err = r.listAll(ctx)
	}
	if err != nil {
		return AccessError{Verb: "list", Resource: r.Name, Err: err}
	}
	if err := r.cluster.prove(ctx, s); err != nil {
		return err
	}
	if !r.to.Listed(ctx, items, r.epoch) {
		return ctx.Err()
	}
	r.version = version
	return nil
}

// without goes on as if there were no such objects, until it is time to list again.
func (r *reflector[T]) without(ctx context.Context) error {
	if !r.lacking {
		r.lacking = true
		r.cluster.log.Info("reading the cluster without objects that the account may not list", slog.String("kind", r.Name))
	}
	if r.to.Listed(ctx, nil, r.epoch) {
		r.to.Following(ctx, nil)
		retry.Sleep(ctx, r.Renew)
	}
	return ctx.Err()
}

// read cuts an object down. A panic is one of the object, and ends nothing else.
func (r *reflector[T]) read(in runtime.Object) (out T, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			out, err = r.fault(in, cause, debug.Stack())
		}
	}()
	out, ok := r.Read(in)
	if !ok {
		return out, ownError(fmt.Sprintf("the server sent an object of type %T", in))
	}
	return out, nil
}

func (r *reflector[T]) fault(in runtime.Object, cause any, stack []byte) (out T, err error) {
	k := Key{}
	if about, err := meta.Accessor(in); err == nil {
		k = Key{Namespace: about.GetNamespace(), Name: about.GetName()}
	}
	if r.Fault != nil {
		return r.Fault(k, cause, stack), nil
	}
	r.cluster.log.Error("the hub panicked over an object of a cluster", slog.String("kind", r.Name), slog.String("object", k.String()),
		slog.Any("panic", cause), slog.String("stack", string(stack)))
	return out, faultError{k}
}
