package transport

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
)

// operations are those of one WebSocket, by the IDs that its client gave them.
type operations struct {
	most    int
	running sync.WaitGroup

	mu   sync.Mutex
	open map[string]*operation
}

type operation struct {
	cancel context.CancelFunc
	done   chan struct{} // Closed when nothing of it is sent any more.
	over   bool          // Its ID may be used again once it is done.
}

func newOperations(most int) *operations {
	return &operations{most: most, open: make(map[string]*operation)}
}

func (o *operations) wait() { o.running.Wait() }

// complete ends an operation that the client does not want any more.
func (o *operations) complete(id string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if found, ok := o.open[id]; ok {
		found.over = true
		found.cancel()
	}
}

// finish marks that the last message of an operation is about to be sent. It returns
// false if the client has completed it: nothing more may be sent.
func (o *operations) finish(ended *operation) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	was := ended.over
	ended.over = true
	return !was
}

// add opens an operation, after an older one of the same ID is done. exists: the
// older one is not over; full: there are as many as may be.
func (o *operations) add(ctx context.Context, id string, made *operation) (exists, full bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for old := o.open[id]; old != nil; old = o.open[id] {
		if !old.over {
			return true, false
		}
		o.mu.Unlock()
		select {
		case <-old.done:
		case <-ctx.Done():
		}
		o.mu.Lock()
		if ctx.Err() != nil {
			return false, true
		}
	}
	if len(o.open) >= o.most {
		return false, true
	}
	o.open[id] = made
	return false, false
}

func (o *operations) remove(id string, made *operation) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.open, id)
	close(made.done)
}

// subscribe begins an operation of whatever kind. Only the use of an ID that is
// in use is a closing; everything else is the operation's error.
func (s *socket) subscribe(ctx context.Context, m received) error {
	opCtx, cancel := context.WithCancel(graphql.StartOperationTrace(ctx))
	made := &operation{cancel: cancel, done: make(chan struct{})}
	exists, full := s.operations.add(ctx, m.id, made)
	switch {
	case exists:
		cancel()
		return alreadyExists(m.id)
	case full:
		cancel()
		s.sendErrors(m.id, s.refusal(ctx, refuse(http.StatusTooManyRequests, RateLimited,
			fmt.Sprintf("a connection has at most %d operations open; complete one", s.limits.Subscriptions))))
		return nil
	}
	s.operations.running.Go(func() {
		defer s.operations.remove(m.id, made)
		defer cancel()
		defer s.answerPanic(ctx)
		s.execute(opCtx, made, m)
	})
	return nil
}

// execute sends the answers of an operation and then complete, or an error, which
// is the last message by itself.
func (s *socket) execute(ctx context.Context, made *operation, m received) {
	failed := false
	emit := func(answer *graphql.Response) bool {
		if ctx.Err() != nil {
			return false
		}
		if answer.Data == nil {
			failed = true
			if s.operations.finish(made) {
				s.sendErrors(m.id, enveloped(answer).Errors)
			}
			return false
		}
		payload, err := json.Marshal(enveloped(answer))
		if err != nil {
			payload = json.RawMessage(unwritable)
		}
		return s.send(sent{ID: m.id, Type: messageNext, Payload: payload})
	}
	s.perform(ctx, m.params, emit)
	if !failed && ctx.Err() == nil && s.operations.finish(made) {
		s.send(sent{ID: m.id, Type: messageComplete})
	}
}

// perform takes an operation through every limit and executes it.
func (s *socket) perform(ctx context.Context, params *graphql.RawParams, emit func(*graphql.Response) bool) {
	h, began := s.handler, graphql.Now()
	release, fault := h.slot(s.caller)
	if fault != nil {
		h.observe(ast.Operation(""), began, true)
		emit(&graphql.Response{Errors: s.refusal(ctx, fault)})
		return
	}
	defer release()
	params.Headers = s.header
	params.ReadTime = graphql.TraceTiming{Start: began, End: began}
	operation, errs := h.prepare(ctx, params)
	if len(errs) > 0 {
		h.observe(ast.Operation(""), began, true)
		release()
		emit(h.exec.DispatchError(graphql.WithOperationContext(ctx, operation), errs))
		return
	}
	h.drive(ctx, operation, job{transport: webSocket, caller: s.caller, release: release, emit: emit})
}

func (s *socket) refusal(ctx context.Context, fault *refusal) gqlerror.List {
	return gqlerror.List{{
		Message:    fault.text,
		Extensions: map[string]any{"code": string(fault.code), "requestId": RequestID(ctx)},
	}}
}

func (s *socket) sendErrors(id string, errs gqlerror.List) {
	payload, err := json.Marshal(errs)
	if err != nil {
		s.fail(broken())
		return
	}
	s.send(sent{ID: id, Type: messageError, Payload: payload})
}
