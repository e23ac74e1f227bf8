// Package transport carries GraphQL over HTTP, as the GraphQL-over-HTTP draft
// asks for, with the limits that stand before every execution. Queries and
// mutations come by POST, queries also by GET. Subscriptions need a streaming
// transport; none is offered yet and requests for one are refused by name.
package transport

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/executor"
	"github.com/99designs/gqlgen/graphql/handler/extension"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
)

// Options are what New needs beside the schema. The zero value works.
type Options struct {
	Limits Limits       // Fields that are zero take the value of DefaultLimits.
	Log    *slog.Logger // Gets errors whose text clients do not see; nil: slog.Default.
	// PartialSuccess answers data that comes with errors with the draft's status
	// 294 where the client takes application/graphql-response+json, instead of 200.
	PartialSuccess bool
	Observer       Observer // nil: nobody counts.
}

// Observer is told of every answered request. It must not block.
type Observer interface {
	// Request was answered. The operation is query, mutation, subscription, or ""
	// where the request was refused before that was known; failed tells that the
	// answer holds an error.
	Request(operation string, took time.Duration, failed bool)
}

// Handler answers GraphQL requests. It is safe for concurrent use.
type Handler struct {
	exec     *executor.Executor
	options  Options
	inFlight chan struct{}
}

// New makes the handler of one endpoint for schema.
func New(schema graphql.ExecutableSchema, options Options) *Handler {
	options.Limits = options.Limits.withDefaults()
	if options.Log == nil {
		options.Log = slog.Default()
	}
	known := newDocuments(options.Limits)
	exec := executor.New(schema)
	exec.SetParserTokenLimit(options.Limits.Tokens)
	exec.SetDisableSuggestion(true)
	exec.SetQueryCache(known)
	exec.SetErrorPresenter(presenter(options.Log))
	exec.SetRecoverFunc(recovered)
	exec.Use(extension.Introspection{})
	exec.Use(gate{limits: options.Limits, known: known})
	exec.Use(&costGate{limits: options.Limits})
	return &Handler{exec: exec, options: options, inFlight: make(chan struct{}, options.Limits.InFlight)}
}

// ServeHTTP answers one request. Each answer has an X-Request-Id, which errors
// and the log repeat.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := newRequestID()
	ctx, cancel := context.WithTimeout(withRequestID(r.Context(), id), h.options.Limits.Time)
	defer cancel()
	r = r.WithContext(graphql.StartOperationTrace(ctx))
	setAnswerHeaders(w.Header(), id)
	reply := replier{w: w, mediaType: mediaTypeJSON, id: id}
	if h.options.Observer != nil {
		began := time.Now()
		defer func() { h.options.Observer.Request(reply.operation, time.Since(began), reply.failed) }()
	}
	defer h.answerPanic(r, &reply)
	if media, fault := admit(r); fault != nil {
		reply.fault(fault)
		return
	} else {
		reply.mediaType = media
	}
	select {
	case h.inFlight <- struct{}{}:
		defer func() { <-h.inFlight }()
	default:
		w.Header().Set("Retry-After", "1")
		reply.fault(refuse(http.StatusServiceUnavailable, Unavailable, "the hub answers as many operations as it may; try again"))
		return
	}
	h.answer(r, &reply)
}

func (h *Handler) answer(r *http.Request, reply *replier) {
	params, fault := h.read(reply.w, r)
	if fault != nil {
		reply.fault(fault)
		return
	}
	ctx := r.Context()
	operation, errs := h.exec.CreateOperationContext(ctx, params)
	if len(errs) > 0 {
		answer := h.exec.DispatchError(graphql.WithOperationContext(ctx, operation), errs)
		reply.send(statusOf(answer.Errors), answer)
		return
	}
	reply.operation = string(operation.Operation.Operation)
	if fault := suits(r.Method, operation.Operation.Operation); fault != nil {
		reply.fault(fault)
		return
	}
	responses, ctx := h.exec.DispatchOperation(ctx, operation)
	answer := responses(ctx)
	if answer == nil {
		answer = h.exec.DispatchError(ctx, gqlerror.List{gqlerror.Wrap(ctx.Err())})
		reply.send(http.StatusServiceUnavailable, answer)
		return
	}
	reply.send(h.statusOfExecuted(answer, reply.mediaType), answer)
}

// suits refuses what an HTTP request of that method cannot carry.
func suits(method string, operation ast.Operation) *refusal {
	switch {
	case operation == ast.Subscription:
		return refuse(http.StatusNotAcceptable, BadUserInput, "a subscription needs a stream: "+noStreams)
	case method == http.MethodGet && operation != ast.Query:
		fault := refuse(http.StatusMethodNotAllowed, BadUserInput, "GET carries queries only; send a mutation by POST")
		fault.allow = http.MethodPost
		return fault
	}
	return nil
}

func (h *Handler) statusOfExecuted(answer *graphql.Response, mediaType string) int {
	partial := len(answer.Errors) > 0 && len(answer.Data) > 0 && string(answer.Data) != "null"
	switch {
	case answer.Data == nil && len(answer.Errors) > 0:
		return statusOf(answer.Errors)
	case partial && h.options.PartialSuccess && mediaType == mediaTypeGraphQL:
		return statusPartialSuccess
	default:
		return http.StatusOK
	}
}

// answerPanic turns a panic of the transport itself into an INTERNAL error.
func (h *Handler) answerPanic(r *http.Request, reply *replier) {
	cause := recover()
	if cause == nil {
		return
	}
	if err, ok := cause.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(cause)
	}
	h.options.Log.ErrorContext(r.Context(), "answering a GraphQL request panicked",
		"requestId", reply.id, "error", fmt.Sprint(cause), "stack", string(debug.Stack()))
	reply.fault(refuse(http.StatusInternalServerError, Internal, internalText))
}

func newRequestID() string {
	var raw [12]byte
	_, _ = rand.Read(raw[:]) // Never fails.
	return hex.EncodeToString(raw[:])
}
