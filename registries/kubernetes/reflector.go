package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/util/flowcontrol"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/retry"
)

const (
	listTimeout  = time.Minute // of one page
	longestPause = 30 * time.Second
	atOnce       = time.Second // a watch that ends sooner is trouble
)

// reflector says what the server holds of one kind: a complete list, then every
// change. A watch that breaks goes on at its version; only a version that the
// server does not keep any more (410) or another epoch needs a new list; and now
// and then one finds events that never came (F46). Lists
// are read from a quorum in pages, each object cut down as its page arrives; a
// list that breaks off is dropped whole (F43). Streamed lists (WatchList) are
// not used: with paging the memory is bounded on servers of every age.
type reflector struct {
	resource
	gate   *gate
	budget *budget
	tries  flowcontrol.RateLimiter // of all reflectors of the cluster
	page   int64
	renew  time.Duration                     // of a watch, at the latest
	check  bool                              // list again when a watch is renewed
	say    func(context.Context, event) bool // false when the context ended

	log *slog.Logger

	lacking bool   // it was logged that the account may not list them
	version string // to go on from; "" needs a list
	epoch   uint64
	pauses  retry.Backoff
}

// run follows the server until the context ends.
func (r *reflector) run(ctx context.Context) {
	for {
		s, err := r.gate.enter(ctx)
		if err != nil || r.tries.Wait(ctx) != nil {
			return
		}
		err = r.attempt(ctx, s)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			continue
		}
		r.say(ctx, followed{kind: r.kind, err: err})
		r.gate.ask()
		if !errors.Is(err, errAsked) && !r.pauses.Wait(ctx) {
			return
		}
	}
}

// attempt lists if need be, and watches until the watch or the session ends.
// nil means that the watch may go on at once.
func (r *reflector) attempt(ctx context.Context, s session) error {
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
		return errAsked
	default:
		return err
	}
}

func (r *reflector) follow(ctx context.Context, s session) error {
	if r.version == "" {
		items, version, err := r.listAll(ctx)
		if err != nil {
			r.budget.unlist(r.kind)
			r.budget.show()
			if r.optional && apierrors.IsForbidden(err) {
				return r.without(ctx)
			}
			return accessError{verb: "list", resource: r.name, err: err}
		}
		if err := r.gate.prove(ctx, s); err != nil {
			r.budget.unlist(r.kind)
			return err
		}
		if !r.say(ctx, listed{kind: r.kind, items: items, epoch: r.epoch}) {
			r.budget.unlist(r.kind)
			return ctx.Err()
		}
		r.version = version
	}
	life := r.renew*6/10 + rand.N(r.renew*3/10)
	w, err := r.watch(ctx, r.watchOptions(life))
	switch {
	case expired(err):
		r.version = ""
		return nil
	case err != nil:
		return accessError{verb: "watch", resource: r.name, err: err}
	}
	defer func() {
		w.Stop()
		for range w.ResultChan() { // until its goroutine is gone
		}
	}()
	if err := r.gate.prove(ctx, s); err != nil {
		return err
	}
	r.say(ctx, followed{kind: r.kind})
	began := time.Now()
	err = r.consume(ctx, w)
	if r.check && err == nil && time.Since(began) >= life-time.Second {
		r.version = ""
	}
	return err
}

// without goes on as if there were nothing of the kind, until it is time to list
// again.
func (r *reflector) without(ctx context.Context) error {
	if !r.lacking {
		r.lacking = true
		r.log.Info("reading the cluster without objects that the account may not list", slog.String("kind", r.name))
	}
	if r.say(ctx, listed{kind: r.kind, epoch: r.epoch}) && r.say(ctx, followed{kind: r.kind}) {
		retry.Sleep(ctx, r.renew)
	}
	return ctx.Err()
}

func (r *reflector) watchOptions(life time.Duration) metav1.ListOptions {
	seconds := int64(life.Seconds())
	return metav1.ListOptions{ResourceVersion: r.version, AllowWatchBookmarks: true, TimeoutSeconds: &seconds, FieldSelector: r.fields}
}

// consume passes events on until the watch ends. An end after a while is usual.
func (r *reflector) consume(ctx context.Context, w watch.Interface) error {
	began := time.Now()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case e, ok := <-w.ResultChan():
			if !ok {
				return r.ended(began, ownError("the server ends the watch at once"))
			}
			err := r.event(ctx, e)
			switch {
			case expired(err):
				r.version = ""
				return nil
			case limited(err):
				r.version = "" // what was not taken is missing: only a list can heal that
				return accessError{verb: "watch", resource: r.name, err: err}
			case err != nil:
				return r.ended(began, err)
			}
		}
	}
}

func (r *reflector) ended(began time.Time, why error) error {
	if time.Since(began) < atOnce {
		return accessError{verb: "watch", resource: r.name, err: why}
	}
	r.pauses.Reset()
	return nil
}

func (r *reflector) event(ctx context.Context, e watch.Event) error {
	if e.Type == watch.Error {
		return apierrors.FromObject(e.Object)
	}
	about, err := meta.Accessor(e.Object)
	if err != nil {
		return fmt.Errorf("reading a watch event: %w", err)
	}
	k := key{Namespace: about.GetNamespace(), Name: about.GetName()}
	switch e.Type {
	case watch.Added, watch.Modified:
		o := r.read(e.Object)
		if o == nil {
			return ownError(fmt.Sprintf("the watch sent an object of type %T", e.Object))
		}
		if err := r.budget.queue(o, r.kind); err != nil {
			return err
		}
		if !r.say(ctx, changed{kind: r.kind, set: o}) {
			r.budget.unqueue(o, r.kind)
			return ctx.Err()
		}
	case watch.Deleted:
		if !r.say(ctx, changed{kind: r.kind, gone: k}) {
			return ctx.Err()
		}
	case watch.Bookmark:
	default:
		return ownError("the watch sent an event of type " + federation.Quote(string(e.Type)))
	}
	r.version = about.GetResourceVersion()
	return nil
}

// listAll returns the complete list and its version. Where the version of the
// first page expires underway, one request reads the list whole.
func (r *reflector) listAll(ctx context.Context) ([]object, string, error) {
	var items []object
	r.budget.unlist(r.kind)
	options, count := metav1.ListOptions{Limit: r.page, FieldSelector: r.fields}, pages{limit: r.budget.limits.Pages}
	for {
		page, next, version, err := r.listPage(ctx, options)
		if expired(err) && options.Continue != "" {
			r.budget.unlist(r.kind)
			items, options.Continue, options.Limit = nil, "", 0
			continue
		}
		if err != nil {
			return nil, "", err
		}
		items = append(items, page...)
		r.budget.show()
		if next == "" {
			return items, version, nil
		}
		if err := count.next(next); err != nil {
			return nil, "", err
		}
		options.Continue = next
	}
}

func (r *reflector) listPage(ctx context.Context, options metav1.ListOptions) (items []object, next, version string, err error) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	list, err := r.list(ctx, options)
	if err != nil {
		return nil, "", "", err
	}
	about, err := meta.ListAccessor(list)
	if err != nil {
		return nil, "", "", fmt.Errorf("reading a list: %w", err)
	}
	if about.GetResourceVersion() == "" {
		return nil, "", "", ownError("the server sent a list without a version")
	}
	err = meta.EachListItem(list, func(in runtime.Object) error {
		o := r.read(in)
		if o == nil {
			return ownError(fmt.Sprintf("the list holds an object of type %T", in))
		}
		items = append(items, o)
		return r.budget.list(o, r.kind)
	})
	return items, about.GetContinue(), about.GetResourceVersion(), err
}
