// Package transport carries GraphQL over HTTP, as the GraphQL-over-HTTP draft
// asks for, with the limits that stand before every execution. Queries and
// mutations come by POST, queries also by GET. Subscriptions, and what else is
// wanted as a stream, come by WebSocket (graphql-transport-ws) or as server-sent
// events (the distinct connections mode of graphql-sse).
package transport

import (
	"context"
	"crypto/rand"
	"crypto/tls"
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
)

// Options are what New needs beside the schema. The zero value works.
type Options struct {
	Limits  Limits       // Fields that are zero take the value of DefaultLimits.
	Streams StreamLimits // Fields that are zero take the value of DefaultStreamLimits.
	Log     *slog.Logger // Gets errors whose text clients do not see; nil: slog.Default.
	// PartialSuccess answers data that comes with errors with the draft's status
	// 294 where the client takes application/graphql-response+json, instead of 200.
	PartialSuccess bool
	Observer       Observer // nil: nothing is counted.
	// HideSchema refuses introspection. Errors then suggest no names of the schema either.
	HideSchema bool
	// Origins are those of pages elsewhere that may send operations, such as
	// https://dashboard.example.com.
	Origins []string
	// Connect decides on the payload of a connection_init, which may be nil: an
	// error closes the WebSocket with 4403. nil: callers that were admitted may stay.
	Connect func(ctx context.Context, payload map[string]any) error
	// Trust returns why the client certificate of an open connection is not trusted now, for the client, in
	// at most 100 bytes. It must not block. nil: a stream stays as long as its connection.
	Trust func(*tls.ConnectionState) error
}

// Observer sees every answered request and of what stays open. It must not
// block. A transport is websocket or sse.
type Observer interface {
	// Request was answered; a subscription, when it was set up. The operation is
	// query, mutation, subscription, or "" where the request was refused before that
	// was known; failed reports whether the answer holds an error.
	Request(operation string, took time.Duration, failed bool)
	// Connections counts streams that were opened (1) or have ended (-1).
	Connections(transport string, change int)
	// Subscriptions counts subscriptions that were set up (1) or have ended (-1).
	Subscriptions(transport string, change int)
	// Event of a subscription was sent.
	Event(transport string)
	// Closed tells how a WebSocket ended: the code that the hub closed it with,
	// "client" where the client closed it, "lost" where it broke.
	Closed(code string)
}

// Handler answers GraphQL requests. It is safe for concurrent use.
type Handler struct {
	exec     *executor.Executor
	schema   *ast.Schema
	options  Options
	inFlight chan struct{}
	holds    *holds
	turns    *turns // of events of subscriptions
	callers  *callers
}

// New makes the handler of one endpoint for schema.
func New(schema graphql.ExecutableSchema, options Options) *Handler {
	options.Limits, options.Streams = options.Limits.withDefaults(), options.Streams.withDefaults()
	if options.Log == nil {
		options.Log = slog.Default()
	}
	known := newDocuments(options.Limits)
	exec := executor.New(schema)
	exec.SetParserTokenLimit(options.Limits.Tokens)
	exec.SetQueryCache(known)
	exec.SetErrorPresenter(presenter(options.Log))
	exec.SetRecoverFunc(recovered)
	if options.HideSchema {
		hideSchema(exec)
	} else {
		exec.Use(extension.Introspection{})
	}
	exec.Use(gate{limits: options.Limits, known: known, hideSchema: options.HideSchema})
	exec.Use(&costGate{limits: options.Limits})
	return &Handler{
		exec: exec, schema: schema.Schema(), options: options, callers: newCallers(options.Streams),
		inFlight: make(chan struct{}, options.Limits.InFlight), holds: newHolds(options.Limits), turns: newTurns(options.Streams.Events),
	}
}

// ServeHTTP answers one request. Each answer has an X-Request-Id, which errors
// and the log repeat.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := newRequestID()
	ctx, revisions := withRevisions(withRequestID(r.Context(), id), r.Header)
	r = r.WithContext(graphql.StartOperationTrace(ctx))
	setAnswerHeaders(w.Header(), id)
	reply := replier{w: w, mediaType: mediaTypeJSON, id: id, revisions: revisions}
	began := time.Now()
	defer func() {
		if !reply.streamed {
			h.observe(reply.operation, began, reply.failed)
		}
	}()
	defer h.answerPanic(r, &reply)
	if asksForSocket(r) {
		h.serveSocket(&reply, r)
		return
	}
	accepts, fault := h.admit(r)
	if fault != nil {
		reply.fault(fault)
		return
	}
	reply.mediaType = accepts.mediaType
	h.serve(r, &reply, accepts)
}

// serve answers an admitted request. A place in flight is taken after the body was read and given back before the answer
// is written, so that it is not held for as long as a client likes; what is in memory meanwhile is bounded by itself.
func (h *Handler) serve(r *http.Request, reply *replier, accepts accepted) {
	caller, _ := callerOf(r)
	started := graphql.Now()
	held, fault := h.holds.begin(caller)
	defer held.end()
	var body []byte
	if fault == nil && r.Method == http.MethodPost {
		body, fault = h.readBody(reply.w, r, held)
	}
	if fault != nil {
		reply.fault(fault)
		return
	}
	release, fault := h.slot(caller)
	if fault != nil {
		reply.fault(fault)
		return
	}
	defer release()
	params, fault := h.parse(r, body, started)
	if fault != nil {
		release()
		reply.fault(fault)
		return
	}
	reply.held = held
	h.answer(r, reply, answering{accepts: accepts, params: params, release: release})
}

// answering is what an admitted request has got so far.
type answering struct {
	accepts accepted
	params  *graphql.RawParams
	release func() // Gives the place in flight back; may be called more than once.
}

func (h *Handler) answer(r *http.Request, reply *replier, a answering) {
	ctx := r.Context()
	operation, errs := h.prepare(ctx, a.params)
	if len(errs) > 0 {
		a.release()
		answer := h.exec.DispatchError(graphql.WithOperationContext(ctx, operation), errs)
		if a.accepts.plain {
			reply.send(statusOf(answer.Errors), answer)
		} else {
			h.streamRefusal(reply, answer)
		}
		return
	}
	reply.operation = operation.Operation.Operation
	if fault := suits(r, operation.Operation.Operation, a.accepts); fault != nil {
		a.release()
		reply.fault(fault)
		return
	}
	if !a.accepts.plain || operation.Operation.Operation == ast.Subscription {
		h.stream(r, reply, streaming{operation: operation, release: a.release})
		return
	}
	answer, executed := h.once(ctx, operation)
	a.release()
	if !executed {
		reply.send(http.StatusServiceUnavailable, answer)
		return
	}
	reply.send(h.statusOfExecuted(answer, reply.mediaType), answer)
}

// suits refuses what an HTTP request cannot carry.
func suits(r *http.Request, operation ast.Operation, accepts accepted) *refusal {
	switch {
	case operation == ast.Subscription && !accepts.stream:
		return refuse(http.StatusNotAcceptable, BadUserInput, "a subscription needs a stream: "+streams)
	case r.Method == http.MethodGet && operation == ast.Mutation:
		fault := refuse(http.StatusMethodNotAllowed, BadUserInput, "GET carries no mutation; send it by POST")
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
		"requestId", reply.id, "panic", fmt.Sprint(cause), "stack", string(debug.Stack()))
	if reply.streamed {
		panic(http.ErrAbortHandler) // What was sent cannot be taken back.
	}
	reply.fault(refuse(http.StatusInternalServerError, Internal, internalText))
}

func newRequestID() string {
	var raw [12]byte
	_, _ = rand.Read(raw[:]) // Never fails.
	return hex.EncodeToString(raw[:])
}
