package server

import (
	"io"
	"net/http"
	"time"
)

// timelyAnswer gives the client of each answer a limited time to read what is written. A client that reads nothing would
// else hold a connection, and whatever the handler holds, for ever.
func timelyAnswer(next http.Handler, limit time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t := &timelyWriter{ResponseWriter: w, control: http.NewResponseController(w), limit: limit}
		t.lift() // the limit of the request before on this connection
		next.ServeHTTP(t, r)
		t.begin() // for what is still buffered
	})
}

// timelyWriter sets a limit before each Write and lifts it afterwards: an HTTP/2 stream ends at its limit even if
// nothing is being written.
type timelyWriter struct {
	http.ResponseWriter
	control *http.ResponseController
	limit   time.Duration
}

// Not every server has deadlines, and a connection that was taken over is not the server's any more.
func (t *timelyWriter) begin() { _ = t.control.SetWriteDeadline(time.Now().Add(t.limit)) }
func (t *timelyWriter) lift()  { _ = t.control.SetWriteDeadline(time.Time{}) }

// Unwrap is for http.ResponseController.
func (t *timelyWriter) Unwrap() http.ResponseWriter { return t.ResponseWriter }

// Write is part of http.ResponseWriter.
func (t *timelyWriter) Write(p []byte) (int, error) {
	t.begin()
	defer t.lift()
	return t.ResponseWriter.Write(p)
}

// WriteString is part of io.StringWriter.
func (t *timelyWriter) WriteString(s string) (int, error) {
	t.begin()
	defer t.lift()
	return io.WriteString(t.ResponseWriter, s)
}

// FlushError is for http.ResponseController.
func (t *timelyWriter) FlushError() error {
	t.begin()
	defer t.lift()
	return t.control.Flush()
}
