package istiodebug

import (
	"context"
	"errors"
	"net/http"
	"strings"
)

// prefix is where pages are on Istio's debug address.
const prefix = "/debug/"

// Handler serves the pages at /debug/NAME and the version at /version, to callers for whom
// allow returns nil. Its error is for the caller.
func (d *Debug) Handler(allow func(*http.Request) error) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+prefix, d.servePage)
	mux.HandleFunc("GET /version", func(w http.ResponseWriter, _ *http.Request) {
		head(w, "text/plain; charset=utf-8")
		_, _ = w.Write([]byte(d.Version()))
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := allow(r); err != nil {
			head(w, "")
			http.Error(w, err.Error(), http.StatusForbidden)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

func (d *Debug) servePage(w http.ResponseWriter, r *http.Request) {
	body, err := d.pageInTurn(r.Context(), strings.TrimPrefix(r.URL.Path, prefix)+"?"+r.URL.RawQuery)
	switch {
	case errors.Is(err, ErrNoProxy):
		http.Error(w, err.Error(), http.StatusNotFound)
	case errors.Is(err, ErrNoPage):
		http.NotFound(w, r)
	case r.Context().Err() != nil: // the caller left
	case err != nil:
		http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
	default:
		head(w, "application/json")
		_, _ = w.Write(body)
	}
}

// pageInTurn ends before the page is sent: a caller that reads slowly does not keep others
// waiting.
func (d *Debug) pageInTurn(ctx context.Context, name string) ([]byte, error) {
	done, err := d.Turn(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	return d.Page(name)
}

func head(w http.ResponseWriter, contentType string) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if contentType != "" {
		w.Header().Set("Content-Type", contentType)
	}
}
