package transport

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"github.com/coder/websocket"
)

// goodbye is how long a client may take to answer a close frame.
const goodbye = 2 * time.Second

// socket speaks graphql-transport-ws with one client. The goroutine of run reads;
// that of each operation writes its answers.
type socket struct {
	handler    *Handler
	limits     StreamLimits
	header     http.Header
	caller     string
	ws         *websocket.Conn
	cut        func() // Ends the connection at once.
	rate       *rate
	operations *operations

	failing chan closing // Holds the first reason for the hub to end the connection.
	initial *time.Timer  // Runs until connection_init.
	ready   bool         // connection_init was acknowledged. For the reader only.
}

func newSocket(h *Handler, r *http.Request) *socket {
	limits := h.options.Streams
	caller, _ := callerOf(r)
	return &socket{
		handler: h, limits: limits, header: r.Header, caller: caller, rate: newRate(limits.Messages),
		operations: newOperations(limits.Subscriptions), failing: make(chan closing, 1),
	}
}

// fail ends the connection. The first reason counts.
func (s *socket) fail(why closing) {
	select {
	case s.failing <- why:
	default:
	}
}

// run returns when the connection and all of its operations have ended.
func (s *socket) run(ctx context.Context) closing {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	defer s.cut()
	s.initial = time.AfterFunc(s.limits.InitTime, func() { s.fail(noInit()) })
	defer s.initial.Stop()
	var others sync.WaitGroup
	others.Go(func() { s.keepAlive(ctx) })
	var why closing
	others.Go(func() {
		why = s.awaitEnd(ctx)
		end(why)
		s.close(why)
	})
	if s.ws.Subprotocol() == subprotocolName {
		s.read(ctx)
	} else {
		s.fail(subprotocol())
	}
	s.operations.wait()
	others.Wait()
	return why
}

// awaitEnd returns the reason for which the connection is to be closed.
func (s *socket) awaitEnd(ctx context.Context) closing {
	select {
	case why := <-s.failing:
		return why
	case <-s.handler.callers.ending:
	case <-ctx.Done():
	}
	return goingAway()
}

// close says why, and cuts the connection when the client does not answer.
func (s *socket) close(why closing) {
	defer s.cut()
	if why.by != "" {
		_ = s.ws.CloseNow()
		return
	}
	impatient := time.AfterFunc(goodbye, s.cut)
	defer impatient.Stop()
	_ = s.ws.Close(why.code, why.reason)
}

// keepAlive pings the client, so that connections whose client has gone end.
func (s *socket) keepAlive(ctx context.Context) {
	ticker := time.NewTicker(s.limits.KeepAlive)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		waiting, cancel := context.WithTimeout(ctx, s.limits.KeepAlive)
		err := s.ws.Ping(waiting)
		cancel()
		if err != nil {
			s.fail(noPong())
			return
		}
	}
}

// read handles messages until the connection ends.
func (s *socket) read(ctx context.Context) {
	defer s.answerPanic(ctx)
	for ctx.Err() == nil {
		data, err := s.receive()
		if err == nil && ctx.Err() == nil {
			err = s.handle(ctx, data)
		}
		var why closing
		switch {
		case errors.As(err, &why):
			s.fail(why)
			return
		case err != nil:
			s.fail(closingOf(err))
			return
		}
	}
}

// answerPanic ends the connection after a panic of the transport itself.
func (s *socket) answerPanic(ctx context.Context) {
	if cause := recover(); cause != nil {
		s.handler.options.Log.ErrorContext(ctx, "serving a WebSocket panicked",
			"requestId", RequestID(ctx), "panic", fmt.Sprint(cause), "stack", string(debug.Stack()))
		s.fail(broken())
	}
}

// receive returns the next message. What is wrong with it is a closing.
func (s *socket) receive() ([]byte, error) {
	kind, message, err := s.ws.Reader(context.Background()) // A context that ends would cut the connection.
	if err != nil {
		return nil, err
	}
	late := time.AfterFunc(s.limits.MessageTime, func() { s.fail(tooLong()) })
	defer late.Stop()
	data, err := io.ReadAll(io.LimitReader(message, s.limits.Message+1))
	switch {
	case err != nil:
		return nil, err
	case int64(len(data)) > s.limits.Message:
		return nil, tooBig(s.limits.Message)
	case kind != websocket.MessageText:
		return nil, badRequest("a message is text")
	case !s.rate.allow(time.Now()):
		return nil, tooMany(s.limits.Messages)
	}
	return data, nil
}

// pinged counts pings and pongs of WebSocket itself as messages, pongs that the hub has not asked
// for among them. The pong is not ours to send.
func (s *socket) pinged(context.Context, []byte) bool {
	if !s.rate.allow(time.Now()) {
		s.fail(tooMany(s.limits.Messages))
		return false
	}
	return true
}

// handle does what one message asks for. An error is a closing.
func (s *socket) handle(ctx context.Context, data []byte) error {
	m, err := parseMessage(data)
	if err != nil {
		return badRequest(err.Error())
	}
	switch m.kind {
	case messageInit:
		return s.initialise(ctx, m)
	case messagePing:
		s.send(sent{Type: messagePong, Payload: m.payload})
	case messageSubscribe:
		if !s.ready {
			return unauthorized()
		}
		return s.subscribe(ctx, m)
	case messageComplete:
		s.operations.complete(m.id)
	}
	return nil
}

func (s *socket) initialise(ctx context.Context, m received) error {
	if s.ready {
		return initAgain()
	}
	s.initial.Stop()
	if connect := s.handler.options.Connect; connect != nil {
		var payload map[string]any
		if m.payload != nil && decode(m.payload, &payload) != nil {
			return badRequest("the payload of connection_init is an object")
		}
		if err := connect(ctx, payload); err != nil {
			return s.refused(ctx, err)
		}
	}
	s.ready = true
	s.send(sent{Type: messageAck})
	return nil
}

// refused shows the text of an Error only; what else went wrong goes to the log.
func (s *socket) refused(ctx context.Context, err error) closing {
	var shown *Error
	if errors.As(err, &shown) {
		return forbidden(bounded(shown.Text))
	}
	s.handler.options.Log.WarnContext(ctx, "a WebSocket was refused", "requestId", RequestID(ctx), "err", err)
	return forbidden("the connection is refused")
}

// send writes one message and returns false when the connection is over. A client
// that does not take it within the stall limit is cut off.
func (s *socket) send(m sent) bool {
	data, err := json.Marshal(m)
	if err != nil {
		s.fail(broken())
		return false
	}
	stalled := time.AfterFunc(s.limits.Stall, func() { s.fail(tooSlow()) })
	defer stalled.Stop()
	sent := false
	held := &hold{of: s.handler.holds, caller: s.caller}
	if !held.while(len(data), func() {
		// A context would cut the connection before its close frame is sent.
		sent = s.ws.Write(context.Background(), websocket.MessageText, data) == nil
	}) {
		s.fail(tooSlow())
	}
	return sent
}
