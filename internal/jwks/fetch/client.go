package fetch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"syscall"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/jwks"
)

// Limits of one answer.
const (
	mostBytes     = 256 << 10
	mostKeys      = 100
	mostRedirects = 5
)

// client fetches keys from addresses that the policy allows. It has no proxy and keeps no connection.
type client struct {
	policy func() federation.AddressPolicy
}

// keys are the usable keys of the source, as a set.
func (c client) keys(ctx context.Context, from federation.KeySource, timeout time.Duration) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	uri := from.URI
	if from.OpenID {
		named, err := c.named(ctx, uri)
		if err != nil {
			return "", err
		}
		uri = named
	}
	body, err := c.get(ctx, uri)
	if err != nil {
		return "", err
	}
	return jwks.KeysUpTo(string(body), mostKeys)
}

// named is the URI of keys that an OpenID configuration names.
func (c client) named(ctx context.Context, uri string) (string, error) {
	body, err := c.get(ctx, uri)
	if err != nil {
		return "", fmt.Errorf("the OpenID configuration: %w", err)
	}
	var configuration struct {
		KeysURI string `json:"jwks_uri"`
	}
	err = json.Unmarshal(body, &configuration)
	switch {
	case err != nil:
		return "", errors.New("the OpenID configuration is not JSON with the text jwks_uri")
	case !jwks.IsURI(configuration.KeysURI):
		return "", errors.New("jwks_uri of the OpenID configuration is not a URL of http or https")
	}
	to, _ := url.Parse(configuration.KeysURI)
	before, _ := url.Parse(uri)
	return configuration.KeysURI, downgraded(before, to)
}

// get reads what is at the URI, after redirects.
func (c client) get(ctx context.Context, uri string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, uri, http.NoBody)
	if err != nil {
		return nil, errors.New("the URI cannot be read")
	}
	err = c.allowed(request.URL)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json")
	request.Header.Set("User-Agent", "isthmus")
	answer, err := c.http().Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the server answers with status %d", answer.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, mostBytes+1))
	if err == nil && len(body) > mostBytes {
		err = fmt.Errorf("the answer has more than %d bytes", mostBytes)
	}
	return body, err
}

func (c client) http() *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			DialContext: c.dial, DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: 64 << 10, ForceAttemptHTTP2: true,
		},
		CheckRedirect: func(to *http.Request, before []*http.Request) error {
			to.Header.Del("Referer") // it may have secrets of the URI before
			if len(before) > mostRedirects {
				return refusal(fmt.Sprintf("there are more than %d redirects", mostRedirects))
			}
			err := errors.Join(downgraded(before[len(before)-1].URL, to.URL), c.allowed(to.URL))
			if err != nil {
				return refusal("a redirect leads to " + jwks.Display(to.URL.String()) + ": " + err.Error())
			}
			return nil
		},
	}
}

// downgraded refuses to continue without TLS.
func downgraded(from, to *url.URL) error {
	if from.Scheme == "https" && to.Scheme != "https" {
		return refusal("it leads from https to " + to.Scheme)
	}
	return nil
}

// allowed asks the policy about the host's name, before DNS.
func (c client) allowed(u *url.URL) error {
	why := c.policy().RefuseHost(u.Hostname())
	_, err := netip.ParseAddr(u.Hostname())
	switch {
	case !jwks.IsURI(u.String()):
		return refusal("it is not a URL of http or https")
	case why != "" && err == nil:
		return refusal("the address " + u.Hostname() + " " + why)
	case why != "":
		return refusal("the host " + u.Hostname() + " " + why)
	}
	return nil
}

// dial connects to what the policy allows; it is asked after DNS.
func (c client) dial(ctx context.Context, network, address string) (net.Conn, error) {
	policy := c.policy()
	dialer := net.Dialer{Control: func(_, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err != nil {
			return refusal("the address policy does not know the address")
		}
		why := policy.Refuse(to.Addr(), to.Port())
		if why != "" {
			return refusal(fmt.Sprintf("the address %s %s", to.Addr(), why))
		}
		return nil
	}}
	conn, err := dialer.DialContext(ctx, network, address)
	if err == nil && isOwn(conn, policy) {
		return nil, errors.Join(refusal("the address is a listener of the hub"), conn.Close())
	}
	return conn, err
}

// isOwn reports whether the connection is to this machine, at a port at which the hub listens on every
// address.
func isOwn(conn net.Conn, policy federation.AddressPolicy) bool {
	local, ok := conn.LocalAddr().(*net.TCPAddr)
	remote, known := conn.RemoteAddr().(*net.TCPAddr)
	return ok && known && local.IP.Equal(remote.IP) && slices.ContainsFunc(policy.Own, func(own netip.AddrPort) bool {
		return own.Addr().IsUnspecified() && int(own.Port()) == remote.Port
	})
}
