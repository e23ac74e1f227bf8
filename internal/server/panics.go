package server

import (
	"log/slog"
	"net/http"
	"runtime/debug"
)

// panicsLogged logs a panic of the handler as an error, and has the server end the request: its own
// log of faults has those of clients, too, and is for debugging.
func panicsLogged(handler http.Handler, logger *slog.Logger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			cause := recover()
			if cause == nil {
				return
			}
			if cause != http.ErrAbortHandler { //nolint:errorlint // it is a value that is compared, as net/http does
				logger.Error("a request panicked", "path", r.URL.Path, "panic", cause, "stack", string(debug.Stack()))
			}
			panic(http.ErrAbortHandler)
		}()
		handler.ServeHTTP(w, r)
	})
}
