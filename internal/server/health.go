package server

import (
	"io"
	"net/http"
	"strconv"
	"strings"
)

// Readiness says whether the hub can serve, and otherwise why not; of one that can, what is wrong all the same. It must not block.
type Readiness func() (ready bool, reasons []string)

// Health answers /healthz (alive), /readyz (200, or 503; with a reason a line) and /metrics. metrics may be nil.
func Health(ready Readiness, metrics http.Handler) *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { plain(w, http.StatusOK, "ok\n") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		ok, reasons := ready()
		if ok {
			plain(w, http.StatusOK, "ok\n"+reasonLines(reasons))
			return
		}
		plain(w, http.StatusServiceUnavailable, "not ready\n"+reasonLines(reasons))
	})
	if metrics != nil {
		mux.Handle("GET /metrics", metrics)
	}
	return mux
}

func plain(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text)
}

// reasonLines keeps each reason on one line, whatever it holds (S51).
func reasonLines(reasons []string) string {
	var lines strings.Builder
	for _, reason := range reasons {
		if strings.ContainsFunc(reason, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			reason = strconv.Quote(reason)
		}
		lines.WriteString(reason + "\n")
	}
	return lines.String()
}
