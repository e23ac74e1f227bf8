package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"

	"isthmus.dev/isthmus/deploy/bridge"
)

// openDoor lets a browser of this machine in, which has no certificate: it asks the
// hub as the operator. It returns its URL and is closed when the demo ends.
func openDoor(s *stage, hub *bridge.Hub) string {
	s.Helper()
	target, err := url.Parse(hub.URL)
	if err != nil {
		s.Fatal(err)
	}
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		s.Fatal(err)
	}
	at := listener.Addr().String()
	door := &http.Server{Handler: door(at, target, hub.Web.Transport), ReadHeaderTimeout: 10 * time.Second}
	ended := make(chan error, 1)
	go func() { ended <- door.Serve(listener) }()
	s.Cleanup(func() {
		if err := errors.Join(door.Close(), <-ended); !errors.Is(err, http.ErrServerClosed) {
			s.Error(err)
		}
	})
	return "http://" + at
}

// door passes on what was meant for it: pages of others cannot use it through a
// visitor's browser.
func door(at string, target *url.URL, way http.RoundTripper) http.Handler {
	inside := &httputil.ReverseProxy{Transport: way, FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		if r.In.Header.Get("Origin") != "" {
			r.Out.Header.Set("Origin", target.String())
		}
	}}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if origin := r.Header.Get("Origin"); r.Host != at || origin != "" && origin != "http://"+at {
			http.Error(w, "this door is for pages of its own", http.StatusForbidden)
			return
		}
		inside.ServeHTTP(w, r)
	})
}
