package kube

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

// What an API server may answer, whatever it is (B-K18, S40).
const (
	maxResponseHeader = 1 << 20
	maxResponseBody   = 64 << 20
	maxErrorBody      = 64 << 10
	requestTimeout    = 60 * time.Second
	headerTimeout     = 30 * time.Second
	pingAfter         = 5 * time.Second
	pingTimeout       = 5 * time.Second
)

// ErrRedirect and ErrTooLarge mark answers that are refused whatever they hold.
var (
	ErrRedirect = errors.New("the server redirects; redirects are not followed")
	ErrTooLarge = errors.New("the answer is larger than allowed")
)

// base is the HTTP transport of one cluster: own dialer, no proxy, verified TLS, HTTP/2 with pings, so that a half-open
// connection is noticed within pingAfter + pingTimeout.
func base(credentials *Credentials, allow AddressPolicy) (*http.Transport, error) {
	config, err := tlsConfig(credentials)
	if err != nil {
		return nil, err
	}
	return &http.Transport{
		Proxy:                  nil,
		DialContext:            dialer(allow),
		TLSClientConfig:        config,
		TLSHandshakeTimeout:    10 * time.Second,
		ResponseHeaderTimeout:  headerTimeout,
		MaxResponseHeaderBytes: maxResponseHeader,
		IdleConnTimeout:        90 * time.Second,
		MaxIdleConnsPerHost:    4,
		ForceAttemptHTTP2:      true,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout},
	}, nil
}

func tlsConfig(credentials *Credentials) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: credentials.ServerName}
	if len(credentials.CA) > 0 {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(credentials.CA) {
			return nil, errors.New("reading the cluster's CA: it holds no certificate")
		}
	}
	if len(credentials.ClientCertificate) > 0 {
		pair, err := tls.X509KeyPair(credentials.ClientCertificate, []byte(credentials.ClientKey.Reveal()))
		if err != nil {
			return nil, errors.New("reading the client certificate: it does not fit its key")
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// bounded refuses redirects and bounds size and duration of every answer. A watch may last, so only its errors are bounded.
type bounded struct {
	next http.RoundTripper
}

func (b bounded) RoundTrip(request *http.Request) (*http.Response, error) {
	watching := request.URL.Query().Get("watch") != "" && request.URL.Query().Get("watch") != "false"
	ctx, cancel := request.Context(), context.CancelFunc(func() {})
	if !watching {
		ctx, cancel = context.WithTimeout(ctx, requestTimeout)
	}
	response, err := b.next.RoundTrip(request.WithContext(ctx))
	if err != nil {
		cancel()
		return nil, onLink(err)
	}
	if response.StatusCode >= 300 && response.StatusCode < 400 {
		_ = response.Body.Close()
		cancel()
		return nil, fmt.Errorf("%w (status %d)", ErrRedirect, response.StatusCode)
	}
	limit := int64(maxResponseBody)
	switch {
	case response.StatusCode >= 400:
		limit = maxErrorBody
	case watching:
		limit = -1
	}
	response.Body = &boundedBody{body: response.Body, left: limit, unlimited: limit < 0, cancel: cancel}
	return response, nil
}

// boundedBody ends with ErrTooLarge after its limit.
type boundedBody struct {
	body      io.ReadCloser
	left      int64
	unlimited bool
	once      sync.Once
	cancel    context.CancelFunc
}

func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.body.Read(p)
	err = onLink(err)
	if b.unlimited {
		return n, err
	}
	b.left -= int64(n)
	if b.left < 0 {
		return 0, ErrTooLarge
	}
	return n, err
}

func (b *boundedBody) Close() error {
	defer b.once.Do(b.cancel)
	return b.body.Close()
}
