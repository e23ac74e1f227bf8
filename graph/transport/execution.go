package transport

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
)

// slot takes one of the places for operations in flight, of all and of the caller, until release is called, which may
// happen more than once.
func (h *Handler) slot(caller string) (release func(), fault *refusal) {
	leave, fault := h.callers.begin(caller, h.options.Limits.InFlightPerCaller)
	if fault != nil {
		return nil, fault
	}
	select {
	case h.inFlight <- struct{}{}:
		return sync.OnceFunc(func() { <-h.inFlight; leave() }), nil
	default:
		leave()
		return nil, refuse(http.StatusServiceUnavailable, Unavailable, "the hub answers as many operations as it may; try again")
	}
}

// once executes a query or a mutation within the limit of time. executed is
// false where the context ended before there was an answer. What a query found by
// then is not shown: lists may lack items. What a mutation did counts.
func (h *Handler) once(ctx context.Context, operation *graphql.OperationContext) (answer *graphql.Response, executed bool) {
	limit := h.options.Limits.Time
	if operation.Operation.Operation == ast.Mutation {
		limit = h.options.Limits.Change
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	responses, ctx := h.exec.DispatchOperation(ctx, operation)
	answer = responses(ctx)
	if answer != nil && (ctx.Err() == nil || operation.Operation.Operation == ast.Mutation) {
		return answer, true
	}
	return h.failed(ctx, cmp.Or(ctx.Err(), context.Canceled)), false
}

// failed is an answer that holds nothing but err, made fit for clients.
func (h *Handler) failed(ctx context.Context, err error) *graphql.Response {
	return h.exec.DispatchError(ctx, gqlerror.List{gqlerror.Wrap(err)})
}

// drive executes a validated operation and gives each of its answers to emit,
// until there are no more or emit returns false. A last answer without data ends
// the operation. release is called as soon as the operation does not count as in
// flight any more: a subscription does not, once it is set up, nor what is being
// written. The context's end ends it.
func (h *Handler) drive(ctx context.Context, operation *graphql.OperationContext, job job) {
	defer job.release()
	ctx = graphql.WithOperationContext(ctx, operation)
	defer func() {
		if cause := recover(); cause != nil {
			job.emit(h.failed(ctx, recovered(ctx, cause)))
		}
	}()
	began, kind := time.Now(), operation.Operation.Operation
	if kind != ast.Subscription {
		answer, _ := h.once(ctx, operation)
		h.observe(kind, began, len(answer.Errors) > 0)
		job.release()
		job.emit(answer)
		return
	}
	next, end := h.subscribe(ctx, operation, job.caller)
	defer end()
	job.release()
	h.observe(kind, began, false)
	h.count(func(o Observer) { o.Subscriptions(job.transport, 1) })
	defer h.count(func(o Observer) { o.Subscriptions(job.transport, -1) })
	for answer := next(); answer != nil; answer = next() {
		last := answer.Data == nil
		if !job.emit(answer) || last {
			return
		}
		h.count(func(o Observer) { o.Event(job.transport) })
	}
}

// job is where an operation's answers go. emit returns when the client has taken
// the answer: the next event is not executed, and not in memory, before.
type job struct {
	transport string
	caller    string
	release   func()
	emit      func(*graphql.Response) (more bool)
}

func (h *Handler) observe(kind ast.Operation, began time.Time, failed bool) {
	h.count(func(o Observer) { o.Request(string(kind), time.Since(began), failed) })
}

func (h *Handler) count(tell func(Observer)) {
	if h.options.Observer != nil {
		tell(h.options.Observer)
	}
}

// subscribe sets a subscription up within the limit of time. next blocks until
// there is an answer and returns nil after the last; end must be called.
func (h *Handler) subscribe(ctx context.Context, operation *graphql.OperationContext,
	caller string,
) (next func() *graphql.Response, end func()) {
	last := &lastWord{}
	ctx, cancel := context.WithCancel(context.WithValue(ctx, lastWordKey{}, last))
	late := time.AfterFunc(h.options.Limits.Time, func() {
		last.set(context.DeadlineExceeded)
		cancel()
	})
	operation.ResolverMiddleware = timed(operation.ResolverMiddleware)
	responses, ctx := h.exec.DispatchOperation(ctx, operation)
	late.Stop()
	return func() *graphql.Response {
		if answer := h.event(ctx, responses, caller); answer != nil {
			return answer
		}
		if err := last.take(); err != nil {
			return h.failed(ctx, err)
		}
		return nil
	}, cancel
}

// event waits for the next event without a limit and executes it in the caller's turn, within the limit of time. Its place
// is given back before the client takes the answer.
func (h *Handler) event(ctx context.Context, responses graphql.ResponseHandler, caller string) *graphql.Response {
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	allowed := &allowance{turns: h.turns, caller: caller, limit: h.options.Limits.Time, cancel: cancel}
	defer allowed.end()
	answer := responses(context.WithValue(inner, allowanceKey{}, allowed))
	if allowed.spent.Load() && ctx.Err() == nil {
		return h.failed(ctx, context.DeadlineExceeded) // what there is of an answer may lack items
	}
	if answer != nil {
		answer.Data = slices.Clone(answer.Data) // the executor writes the next event over it
	}
	return answer
}

type lastWordKey struct{}

// lastWord is the error that ends a subscription, if any.
type lastWord struct {
	mu  sync.Mutex
	err error
}

func (l *lastWord) set(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.err = err
	}
}

func (l *lastWord) take() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	err := l.err
	l.err = nil
	return err
}

// EndWith makes err the end of the subscription that ctx, as its resolver got it,
// belongs to: once the resolver closes its channel the client gets err instead
// of complete. Outside of a subscription it does nothing.
func EndWith(ctx context.Context, err error) {
	if last, ok := ctx.Value(lastWordKey{}).(*lastWord); ok {
		last.set(err)
	}
}
