package transport

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"github.com/99designs/gqlgen/graphql"
)

// streaming is a validated operation that is answered as events.
type streaming struct {
	operation *graphql.OperationContext
	release   func()
}

// stream answers an operation as graphql-sse's distinct connections mode asks
// for: an event next for each answer, then complete. When the hub ends, the
// stream ends without complete, so that the client comes back.
func (h *Handler) stream(r *http.Request, reply *replier, s streaming) {
	leave, fault := h.callers.enter(eventStream, r)
	if fault != nil {
		s.release()
		reply.fault(fault)
		return
	}
	defer leave()
	h.count(func(o Observer) { o.Connections(eventStream, 1) })
	defer h.count(func(o Observer) { o.Connections(eventStream, -1) })
	answers, written := make(chan *graphql.Response), make(chan struct{})
	var driving sync.WaitGroup
	defer driving.Wait()
	ctx, cancel := context.WithCancel(r.Context())
	caller, _ := callerOf(r)
	defer cancel()
	defer whileTrusted(h.options.Trust, r, func(error) { cancel() })()
	driving.Go(func() {
		defer close(answers)
		h.drive(ctx, s.operation, job{transport: eventStream, caller: caller, release: s.release, emit: func(answer *graphql.Response) bool {
			select {
			case answers <- answer:
			case <-ctx.Done():
				return false
			}
			select {
			case <-written:
				return true
			case <-ctx.Done():
				return false
			}
		}})
	})
	out := h.startEvents(reply)
	keepAlive := time.NewTicker(h.options.Streams.KeepAlive)
	defer keepAlive.Stop()
	for out.err == nil {
		select {
		case answer, more := <-answers:
			if !more {
				out.complete()
				return
			}
			out.next(answer)
			select {
			case written <- struct{}{}:
			case <-ctx.Done():
			}
		case <-keepAlive.C:
			out.comment()
		case <-h.callers.ending:
			return
		case <-ctx.Done():
			return
		}
	}
}

// streamRefusal answers an operation that was not executed, as the protocol asks
// for: what is wrong with it comes as an event, since a browser's EventSource
// shows nothing of other answers.
func (h *Handler) streamRefusal(reply *replier, answer *graphql.Response) {
	h.observe(reply.operation, time.Now(), true)
	out := h.startEvents(reply)
	out.next(answer)
	out.complete()
}

// events writes server-sent events. Each must be taken within the stall limit;
// that also lifts a shorter limit that the server may have for whole answers.
type events struct {
	w       http.ResponseWriter
	control *http.ResponseController
	stall   time.Duration
	held    *hold
	err     error // Why the stream is over, or nil.
}

func (h *Handler) startEvents(reply *replier) *events {
	reply.streamed = true
	header := reply.w.Header()
	header.Set("Content-Type", mediaTypeEvents+"; charset=utf-8")
	header.Set("X-Accel-Buffering", "no") // Proxies hold answers back otherwise.
	out := &events{w: reply.w, control: http.NewResponseController(reply.w), stall: h.options.Streams.Stall, held: reply.held}
	out.comment()
	return out
}

// next writes an answer, and releases it: of a large one, memory holds one copy
// while the client reads it.
func (e *events) next(answer *graphql.Response) {
	data, err := json.Marshal(enveloped(answer)) // One line.
	if err != nil {
		data = []byte(unwritable)
	}
	answer.Data = nil
	e.write([]byte("event: next\ndata: "), data, []byte("\n\n"))
}

// complete has a data line, without which EventSource drops the event.
func (e *events) complete() { e.write([]byte("event: complete\ndata:\n\n")) }

func (e *events) comment() { e.write([]byte(":\n\n")) }

func (e *events) write(texts ...[]byte) {
	if e.err != nil {
		return
	}
	bytes := 0
	for _, text := range texts {
		bytes += len(text)
	}
	if !e.held.while(bytes, func() {
		_ = e.control.SetWriteDeadline(time.Now().Add(e.stall)) // Not every server has deadlines.
		for _, text := range texts {
			_, e.err = e.w.Write(text)
			if e.err != nil {
				return
			}
		}
		e.err = e.control.Flush()
	}) {
		e.err = errHeld
	}
}
