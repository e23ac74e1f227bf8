package server

import (
	"io"
	"net/http"
	"time"
)

// timelyBody gives the body of each request a limited time to arrive (B-G10). The limit ends with the body, so that long
// answers and upgraded connections are not touched by it.
func timelyBody(next http.Handler, limit time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body == nil || r.Body == http.NoBody || r.ContentLength == 0 {
			next.ServeHTTP(w, r)
			return
		}
		control := http.NewResponseController(w)
		if control.SetReadDeadline(time.Now().Add(limit)) == nil {
			r.Body = &timely{ReadCloser: r.Body, lift: func() { _ = control.SetReadDeadline(time.Time{}) }}
		}
		next.ServeHTTP(w, r)
	})
}

// timely lifts the limit when the body is read to its end.
type timely struct {
	io.ReadCloser
	lift func()
}

func (t *timely) Read(p []byte) (int, error) {
	n, err := t.ReadCloser.Read(p)
	if err == io.EOF {
		t.lift()
	}
	return n, err
}
