package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// HTTPOptions set limits. Zero values have the defaults named here.
type HTTPOptions struct {
	TLS         *tls.Config   // nil: plaintext
	Drain       time.Duration // how long requests may go on after the context ended; default 10 s
	BodyTimeout time.Duration // how long a request body may take to arrive; default 10 s
	// WriteTimeout is how long a client may take to read what one Write has for it; default 30 s. It bounds no answer as
	// a whole: subscriptions last.
	WriteTimeout time.Duration
	Logger       *slog.Logger // default slog.Default
}

const (
	readHeaderTimeout = 10 * time.Second
	idleTimeout       = 2 * time.Minute
	maxHeader         = 64 << 10
)

// HTTP serves one handler. Answers may take as long as they like (subscriptions); requests, and clients that do not read
// what was written, may not.
type HTTP struct {
	handler  http.Handler
	options  HTTPOptions
	draining chan struct{}
}

// NewHTTP makes a server that Run starts.
func NewHTTP(handler http.Handler, options HTTPOptions) *HTTP {
	if options.Drain <= 0 {
		options.Drain = 10 * time.Second
	}
	if options.BodyTimeout <= 0 {
		options.BodyTimeout = 10 * time.Second
	}
	if options.WriteTimeout <= 0 {
		options.WriteTimeout = 30 * time.Second
	}
	if options.Logger == nil {
		options.Logger = slog.Default()
	}
	return &HTTP{handler: handler, options: options, draining: make(chan struct{})}
}

// Draining is closed when the server is to end, so that long answers can end early.
func (s *HTTP) Draining() <-chan struct{} { return s.draining }

// Run serves until the context ends, then lets requests finish for the drain window and ends the rest. It closes the
// listener and may be called once. It returns nil after a drain, and the error of the listener otherwise.
func (s *HTTP) Run(ctx context.Context, listener net.Listener) error {
	base, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	server := &http.Server{
		Handler:           timelyAnswer(timelyBody(panicsLogged(s.handler, s.options.Logger), s.options.BodyTimeout), s.options.WriteTimeout),
		ReadHeaderTimeout: readHeaderTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		BaseContext:       func(net.Listener) context.Context { return base },
		ErrorLog:          slog.NewLogLogger(s.options.Logger.Handler(), slog.LevelDebug),
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: 100},
	}
	accepting := listener
	server.ConnState = func(c net.Conn, state http.ConnState) {
		if state == http.StateActive {
			Established(accepting, c.RemoteAddr())
		}
	}
	if s.options.TLS != nil {
		listener = tls.NewListener(listener, s.options.TLS)
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		close(s.draining)
		return fmt.Errorf("serving %s: %w", listener.Addr(), err)
	case <-ctx.Done():
	}
	close(s.draining)
	window, stop := context.WithTimeout(base, s.options.Drain)
	defer stop()
	if err := server.Shutdown(window); err != nil {
		end()
		_ = server.Close() // the window is over
	}
	if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving %s: %w", listener.Addr(), err)
	}
	return nil
}
