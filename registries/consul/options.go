package consul

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"isthmus.dev/isthmus/federation"
)

// Options say which Consul to follow and how. The zero value of every field
// below Token is a usable default.
type Options struct {
	Cluster federation.ClusterID
	Network federation.NetworkID // of endpoints that name none themselves
	Address string               // http(s)://host:port of an agent or server
	// Datacenter is asked for by name; empty is the agent's own.
	Datacenter string
	// Token is asked before every request, so that a rotated token file is
	// followed. Its errors and its result never reach a log; nil means that there is no token.
	Token func() (string, error)

	TLS *tls.Config // for https; nil trusts the system's roots
	// Hostname is a template over .Service .Datacenter .Namespace .Cluster with
	// plain fields only; empty is DefaultHostname.
	Hostname string
	// Namespace of all services; empty takes the second label of hostnames of
	// the form NAME.NS.svc.DOMAIN, else none.
	Namespace string
	// InstancePort says which ports of its instances a service has that does not say
	// so itself: AllPorts, FirstPort, or the one of a name. ServicePort is the number
	// under which callers know the one port.
	InstancePort string
	ServicePort  uint16
	// Workloads says how workloads prove who they are; nil: by nothing that Consul knows.
	Workloads *WorkloadsSection
	Dial      func(ctx context.Context, network, address string) (net.Conn, error) // carries the address policy
	Expect    string                                                               // Identity.UID known from before; another Consul is refused

	MaxPolls    int                    // requests open at once over HTTP/1; default 150
	MaxServices int                    // services looked at; default 10,000
	Wait        time.Duration          // of a long poll; default 30 s
	SweepEvery  time.Duration          // all services that have no long poll are read once in this time; default 10 s
	Limits      federation.Limits      // of what the datacenter may have; zero: the defaults
	Used        func(federation.Usage) // called with the usage; it must not block
	Logger      *slog.Logger

	poison func(service string)     // tests make the handling of a service panic; nil: no test
	Count  func(requestKind string) // called before every request: services, health, canary, token, roots
}

// The kinds of requests that Options.Count counts. Canary and token reads
// prove that an answer may be used to delete; they carry no catalogue.
const (
	CountServices = "services"
	CountHealth   = "health"
	CountCanary   = "canary"
	CountToken    = "token"
	CountRoots    = "roots" // of Connect
)

const (
	defaultPolls    = 150
	minPolls        = 8
	maxStreams      = 2000 // long polls over HTTP/2
	defaultServices = 10_000
)

func (o *Options) setDefaults() {
	o.MaxPolls = max(cmp.Or(o.MaxPolls, defaultPolls), minPolls)
	o.MaxServices = cmp.Or(o.MaxServices, defaultServices)
	o.Wait = cmp.Or(o.Wait, 30*time.Second)
	o.SweepEvery = cmp.Or(o.SweepEvery, 10*time.Second)
	o.Hostname = cmp.Or(o.Hostname, DefaultHostname)
	o.InstancePort = cmp.Or(o.InstancePort, AllPorts)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Used == nil {
		o.Used = func(federation.Usage) {}
	}
	if o.Count == nil {
		o.Count = func(string) {}
	}
	if o.Token == nil {
		o.Token = func() (string, error) { return "", nil }
	}
	if o.Dial == nil {
		o.Dial = (&net.Dialer{Timeout: requestTimeout}).DialContext
	}
}

func parseAddress(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, errors.New("consul.address: is not a URL; write http://host:port or https://host:port")
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("consul.address: must start with http:// or https://")
	case u.Hostname() == "":
		return nil, errors.New("consul.address: names no host")
	case u.User != nil:
		return nil, errors.New("consul.address: must hold no user or password; use tokenFile")
	case u.Path != "" && u.Path != "/", u.RawQuery != "", u.Fragment != "":
		return nil, errors.New("consul.address: must end after the port")
	}
	u.Path = ""
	return u, nil
}

// New checks the options and connects to nothing. Its error names the field of
// the configuration that is wrong.
func New(o Options) (*Registry, error) {
	hasToken := o.Token != nil
	o.setDefaults()
	base, err := parseAddress(o.Address)
	if err != nil {
		return nil, fmt.Errorf("setting up cluster %q: %w", o.Cluster, err)
	}
	if base.Scheme == "http" && o.Workloads != nil && o.Workloads.Tokens && !isLocal(base.Hostname()) {
		return nil,
			fmt.Errorf("setting up cluster %q: consul.workloads.tokens: http:// would send tokens of workloads in plain text to another machine; use https://", o.Cluster)
	}
	if base.Scheme == "http" && hasToken && !isLocal(base.Hostname()) {
		return nil,
			fmt.Errorf("setting up cluster %q: consul.address: http:// would send the token in plain text to another machine; use https://",
				o.Cluster)
	}
	if base.Scheme == "http" && o.TLS != nil {
		return nil, fmt.Errorf("setting up cluster %q: consul.tls: needs an address that starts with https://", o.Cluster)
	}
	switch {
	case !isLabel(o.InstancePort):
		return nil, fmt.Errorf("setting up cluster %q: consul.instancePort: must be all, first, or the name of a port in lower case", o.Cluster)
	case o.ServicePort != 0 && o.InstancePort == AllPorts:
		return nil,
			fmt.Errorf("setting up cluster %q: consul.servicePort: is the number of one port; set consul.instancePort to first or to the name of a port", o.Cluster)
	}
	names, err := parseNaming(o)
	if err != nil {
		return nil, fmt.Errorf("setting up cluster %q: %w", o.Cluster, err)
	}
	id, err := parseIdentity(o.Expect)
	if err != nil {
		return nil, fmt.Errorf("setting up cluster %q: %w", o.Cluster, err)
	}
	owners, err := o.Workloads.accounts(o.Namespace)
	if err != nil {
		return nil, fmt.Errorf("setting up cluster %q: %w", o.Cluster, err)
	}
	r := &Registry{o: o, names: names, accounts: owners, expect: id, log: o.Logger.With("cluster", o.Cluster, "provider", federation.Consul)}
	r.client = newClient(o, base)
	if o.Workloads != nil {
		r.workloads = newWorkloads(r, o.Workloads)
	}
	return r, nil
}

// newClient has o.MaxPolls connections of its own.
func newClient(o Options, base *url.URL) *client {
	return &client{base: base, dc: o.Datacenter, token: o.Token, count: o.Count, budget: &budget{
		limits: o.Limits.WithDefaults(),
		used:   o.Used,
	}, starting: make(chan struct{}, startingAtOnce), http: &http.Client{
		Transport: newTransport(o, base.Scheme == "https"),
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		},
	}}
}

// isLocal tells an address at which what is sent does not leave the machine.
func isLocal(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

func newTransport(o Options, secure bool) *http.Transport {
	t := &http.Transport{
		DialContext:            o.Dial,
		TLSClientConfig:        o.TLS.Clone(),
		TLSHandshakeTimeout:    requestTimeout,
		DisableCompression:     true, // a small answer must not grow beyond its limit
		MaxIdleConns:           o.MaxPolls,
		MaxIdleConnsPerHost:    o.MaxPolls,
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
		ForceAttemptHTTP2:      secure,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: beatEvery, PingTimeout: requestTimeout},
	}
	// Over HTTP/1 a request is a connection; over HTTP/2 hundreds share one.
	t.MaxConnsPerHost = o.MaxPolls
	return t
}
