// Package xds serves Envoy's discovery protocol: it decides which resources a client gets,
// and when. Package xds/envoy builds the resources.
package xds

import (
	"log/slog"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/xds/envoy"
	"isthmus.dev/isthmus/xds/istiodebug"
	"isthmus.dev/isthmus/xds/mcp"
)

// Snapshots gives the newest snapshot; an Aggregate does.
type Snapshots interface {
	Latest() *federation.Snapshot
}

// Event is something that happened on a stream.
type Event string

// The events.
const (
	Sent         Event = "sent"          // a response
	Acked        Event = "acked"         // one was accepted
	Nacked       Event = "nacked"        // one was refused
	StaleRequest Event = "stale_request" // left alone
	UnknownType  Event = "unknown_type"  // request for a type that is not served
	EmptyHeld    Event = "empty_held"    // an empty set waits for a second proof
	Built        Event = "built"         // a resource was built, not found ready
	// UntracedRefusal: a proxy refuses a part of a resource that no object made.
	UntracedRefusal Event = "untraced_refusal"
	BuildFailed     Event = "build_failed" // a resource could not be built; its last good bytes stay
	// SecretRefused: a name that is not the proxy's own was asked for, or on a
	// stream that carries no secrets.
	SecretRefused Event = "secret_refused"
	// NotServing: a router asks for sni-dnat mode that is not a gateway of its network.
	NotServing Event = "not_serving"
	// ReportsRefused: who is not a gateway of its network wants to report of others'.
	ReportsRefused Event = "reports_refused"
	// StreamPanic: a fault of the hub ended a stream.
	StreamPanic Event = "stream_panic"
	Denied      Event = "denied" // a stream of someone who may not have it, or no longer
)

// Events that end a stream because of what the client did.
const (
	TooMuch   Event = "too_much"  // more than Limits allow
	Malformed Event = "malformed" // no request that can be understood
	TooSlow   Event = "too_slow"  // no first request, or a response not taken, in time
)

// Metrics counts events; the type is empty where none is meant. Its methods
// must not block.
type Metrics interface {
	Count(e Event, t envoy.Type)
	Answered(t envoy.Type, after time.Duration) // a response was accepted
}

// Traffic measures streams and what is sent on them. Its methods must not
// block.
type Traffic interface {
	Streams(p fleet.Protocol, change int) // 1: one was opened; -1: one was closed
	// Pushed is one response of so many bytes. waited is the time since its first
	// change was seen; negative where the response only answers a request.
	Pushed(t envoy.Type, bytes int, waited time.Duration)
}

// Limits bounds what one stream may do, and how many streams a caller may have.
type Limits struct {
	Streams      int           // open at the same time, of callers with one identity
	Variants     int           // of nodes, of callers with one identity
	UnknownNames int           // bytes that names without a resource may cost, of callers with one identity
	NodeBytes    int           // that what nodes report about themselves may take, of callers with one identity
	Names        int           // subscribed to, of one type; also those that the client says it has
	NameBytes    int           // of one name
	Requests     float64       // in a second, those apart that answer a response
	Burst        int           // of requests
	FirstRequest time.Duration // within which the first request must come
	Send         time.Duration // within which the client must take a response
}

// DefaultLimits are those of a hub that says nothing else.
var DefaultLimits = Limits{
	Streams: 2000, Variants: 10, UnknownNames: 64 << 20, NodeBytes: 32 << 20, Names: 50_000, NameBytes: 512, Requests: 100, Burst: 200,
	FirstRequest: 10 * time.Second, Send: 30 * time.Second,
}

// Options are what a Server works with. Snapshots and Fleet are required.
type Options struct {
	Snapshots Snapshots
	Fleet     *fleet.Fleet
	Ready     <-chan struct{} // streams wait until it is closed; nil: they do not
	Metrics   Metrics         // nil: nothing is counted
	Traffic   Traffic         // nil: nothing is measured
	Logger    *slog.Logger    // nil: slog's default
	Pace      time.Duration   // between two pushes of a type to a stream; 0: 20 ms
	Limits    Limits          // zero fields: DefaultLimits
	Secrets   Secrets         // nil: the type is not served
	Probes    Probes          // nil: health discovery is not served
	Members   Members         // nil: proxies cannot register themselves
	// Configuration is served to control planes that may read it; nil: to none.
	Configuration *mcp.Table
	Debug         *istiodebug.Debug // answers Istio's tools that may ask; nil: none may
	Access        Access            // nil: every client is trusted, and none has secrets of its own

	// Findings counts what builders say of objects, by code: 1 for one more, -1 for
	// one less. It must not block. nil: nothing is counted.
	Findings func(code string, change int)
	// UnknownNames measures the bytes that names without a resource cost. It must not
	// block. nil: nothing is measured.
	UnknownNames func(change int)

	// SecretsOnSocket gives secrets to clients of a unix socket without TLS. On
	// other connections they are for clients with a verified certificate.
	SecretsOnSocket bool

	builder *builder // nil: xds/envoy; for tests
	timing  *timing  // nil: defaultTiming; for tests
}

func (o Options) withDefaults() Options {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Metrics == nil {
		o.Metrics = uncounted{}
	}
	if o.Traffic == nil {
		o.Traffic = uncounted{}
	}
	if o.UnknownNames == nil {
		o.UnknownNames = func(int) {}
	}
	if o.Ready == nil {
		ready := make(chan struct{})
		close(ready)
		o.Ready = ready
	}
	if o.builder == nil {
		o.builder = &envoyBuilder
	}
	t := defaultTiming
	if o.timing != nil {
		t = *o.timing
	}
	if o.Pace != 0 {
		t.pace = o.Pace
	}
	o.timing = &t
	o.Limits = o.Limits.withDefaults()
	return o
}

func (l Limits) withDefaults() Limits {
	d := DefaultLimits
	setDefault(&l.Streams, d.Streams)
	setDefault(&l.Variants, d.Variants)
	setDefault(&l.UnknownNames, d.UnknownNames)
	setDefault(&l.NodeBytes, d.NodeBytes)
	setDefault(&l.Names, d.Names)
	setDefault(&l.NameBytes, d.NameBytes)
	setDefault(&l.Requests, d.Requests)
	setDefault(&l.Burst, d.Burst)
	setDefault(&l.FirstRequest, d.FirstRequest)
	setDefault(&l.Send, d.Send)
	return l
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

type uncounted struct{}

func (uncounted) Count(Event, envoy.Type)               {}
func (uncounted) Answered(envoy.Type, time.Duration)    {}
func (uncounted) Streams(fleet.Protocol, int)           {}
func (uncounted) Pushed(envoy.Type, int, time.Duration) {}
