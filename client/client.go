// Package client is a typed client of the hub's GraphQL API. The functions of
// operations.gen.go, made of operations.graphql, each send one operation; they
// take a Client. All of them end with their context.
package client

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"time"
)

//go:generate go run github.com/Khan/genqlient genqlient.yaml

// Options say where the hub is and how to speak with it.
type Options struct {
	URL       string // http://HOST:PORT, https://HOST:PORT or unix:PATH
	TLS       TLS
	UserAgent string        // absent: isthmus-client
	Sent      func(Request) // called with each operation before it is sent; nil: not called
	// MinRevision is the revision of the configuration that answers must include,
	// or a later one. A change that the client makes raises it.
	MinRevision int64
}

// Request is one operation as it is sent.
type Request struct {
	Query     string `json:"query"`
	Variables any    `json:"variables,omitempty"`
	Operation string `json:"operationName,omitempty"`
}

// Client speaks with one hub. Many goroutines may use it at once.
type Client struct {
	options  Options
	endpoint string
	http     *http.Client
	least    leastRevision
}

// New returns a client. It reads the files of TLS and opens no connection.
func New(o Options) (*Client, error) {
	transport := &http.Transport{ // HTTP/1.1: with HTTP/2 the hub's reason for refusing a certificate is lost.
		Proxy: http.ProxyFromEnvironment, TLSHandshakeTimeout: 10 * time.Second, IdleConnTimeout: 30 * time.Second,
	}
	var endpoint string
	var err error
	if path, ok := strings.CutPrefix(o.URL, "unix:"); ok {
		endpoint, err = useSocket(transport, o, path)
	} else {
		endpoint, err = useURL(transport, o)
	}
	if err != nil {
		return nil, err
	}
	c := &Client{options: o, endpoint: endpoint}
	c.http = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	c.least.raise(o.MinRevision)
	return c, nil
}

// useSocket has the transport connect to a unix socket, and returns the URL for it.
func useSocket(transport *http.Transport, o Options, path string) (string, error) {
	if path == "" {
		return "", fmt.Errorf("the server %q names no path; write unix:/run/isthmus/graphql, say", o.URL)
	}
	if o.TLS != (TLS{}) {
		return "", fmt.Errorf("the server %s is a unix socket, which has no TLS; remove the files of TLS", o.URL)
	}
	path = filepath.Clean(path)
	transport.Proxy = nil
	transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}
	return "http://localhost/graphql", nil
}

// useURL gives the transport its TLS, and returns the URL of GraphQL.
func useURL(transport *http.Transport, o Options) (string, error) {
	u, err := url.Parse(o.URL)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return "", fmt.Errorf("%q is not the address of a hub; use http://HOST:PORT, https://HOST:PORT or unix:PATH", withoutUser(o.URL))
	case u.User != nil:
		return "", fmt.Errorf("the server %s contains a user name; remove it: the hub authenticates clients by certificate", u.Host)
	case u.RawQuery != "" || u.Fragment != "":
		return "", fmt.Errorf("the server %s has more than an address; write %s://%s", u.Host, u.Scheme, u.Host)
	case u.Scheme == "http" && o.TLS != (TLS{}):
		return "", fmt.Errorf("http://%s is plaintext, but TLS files are given; use https, or remove the files", u.Host)
	}
	if u.Scheme == "https" {
		transport.TLSClientConfig, err = o.TLS.config()
		if err != nil {
			return "", err
		}
	}
	return u.Scheme + "://" + u.Host + strings.TrimSuffix(strings.TrimSuffix(u.Path, "/"), "/graphql") + "/graphql", nil
}

// withoutUser takes a password out of what is not a URL.
func withoutUser(text string) string {
	if at := strings.LastIndexByte(text, '@'); at >= 0 {
		return "…" + text[at:]
	}
	return text
}

// Server is the address as it was given.
func (c *Client) Server() string { return c.options.URL }

// Close closes what is idle.
func (c *Client) Close() { c.http.CloseIdleConnections() }
