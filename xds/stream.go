package xds

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"log/slog"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/xds/envoy"
)

// stream joins the state of a stream with gRPC. The handler's own goroutine drives
// it.
type stream struct {
	server *Server
	client xdsClient
	wire   wire

	view    *envoy.View // of the node, as the snapshot of the state has it
	variant *envoy.Variant
	excess  error // why the stream may not go on with the view that it has
	state   *streamState
	report  *fleet.Stream
	held    map[envoy.Type][]groupKey

	published map[envoy.Type]*fleet.Delivery
	changed   map[string]*fleet.Delivery // by publish, which uses it again
	// untraced are the titles of what the proxy refuses and no object made, by type.
	untraced map[envoy.Type]map[string]bool
	served   bool   // upTo is set
	upTo     uint64 // version that was published

	connected time.Time // zero: the first request has not come

	secrets *secretSource
	roots   *rootSource

	registered registration
	renewed    <-chan struct{}     // closed when a secret changed
	refused    map[string]struct{} // names of secrets
}

func (s *Server) serve(g grpc.ServerStream, delta bool) (err error) {
	defer s.ended(&err)
	s.options.Traffic.Streams(protocolOf(delta), 1)
	defer s.options.Traffic.Streams(protocolOf(delta), -1)
	st := &stream{
		server: s, client: xdsClient{server: s, log: s.options.Logger},
		wire:      wire{grpc: g, delta: delta, out: make(chan frame), written: make(chan error, 1)},
		published: map[envoy.Type]*fleet.Delivery{}, changed: map[string]*fleet.Delivery{}, untraced: map[envoy.Type]map[string]bool{},
		held:    map[envoy.Type][]groupKey{},
		refused: map[string]struct{}{},
	}
	// The handler's return ends the gRPC stream, and with it both goroutines.
	ctx, cancel := context.WithCancel(g.Context())
	defer cancel()
	defer st.close()
	defer st.client.end()
	err = st.client.identify(ctx)
	if err == nil {
		st.wire.received, st.wire.ended = incoming(ctx, st.wire.read)
		go st.wire.write(ctx)
		err = st.run(ctx)
	}
	st.logEnd(err)
	if e := refusal(err); e != "" {
		s.options.Metrics.Count(e, "")
		st.client.warn("closing an xDS stream", err)
	}
	return err
}

// refusal is the event of a stream that the hub ended because of what the
// client did; empty for every other end.
func refusal(err error) Event {
	switch status.Code(err) {
	case codes.Unauthenticated, codes.PermissionDenied, codes.FailedPrecondition:
		return Denied
	case codes.ResourceExhausted:
		return TooMuch
	case codes.InvalidArgument:
		return Malformed
	case codes.DeadlineExceeded:
		return TooSlow
	}
	return ""
}

// run serves the stream until it ends, and returns why.
func (st *stream) run(ctx context.Context) error {
	first, err := st.wire.first(ctx, st.server.options.Limits.FirstRequest, st.server.drain)
	if err != nil {
		return err
	}
	if asksAboutHub(first.request) {
		return answerInquiry(ctx, st, first)
	}
	if asksForConfiguration(first.node) {
		return readConfiguration(ctx, st, first)
	}
	if err := st.greet(first); err != nil {
		return err
	}
	if err := st.server.ready(ctx); err != nil {
		return err
	}
	if st.client.trusted {
		st.renewed = st.server.options.Secrets.Changed()
	}
	if err := st.registered.join(&st.client); err != nil {
		return err
	}
	st.noteMode()
	if err := st.take(first); err != nil {
		return err
	}
	return st.loop(ctx)
}

// noteMode reports why a router in sni-dnat mode gets what a standard one does.
func (st *stream) noteMode() {
	if st.client.node.RouterMode != envoy.SNIDNAT {
		return
	}
	if err := envoy.Serves(st.client.node, st.state.latest()); err != nil {
		st.server.options.Metrics.Count(NotServing, "")
		st.client.provoke("a router in sni-dnat mode passes nothing on", slog.Any("err", err))
	}
}

var errDraining = status.Error(codes.Unavailable, "the hub is shutting down: connect again")

// ready waits until clusters are known.
func (s *Server) ready(ctx context.Context) error {
	select {
	case <-s.options.Ready:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-s.drain:
		return errDraining
	}
}

// greet admits the proxy of the first request.
func (st *stream) greet(m message) error {
	if err := st.client.meet(m.node); err != nil {
		return err
	}
	st.state = st.newState()
	if st.excess != nil {
		return st.excess
	}
	node := st.client.node // apart, since the Fleet keeps it longer than the stream
	st.report = st.server.options.Fleet.Connect(proxyOf(&node, st.wire.delta))
	st.logConnect()
	return nil
}

func (st *stream) newState() *streamState {
	var random [5]byte
	rand.Read(random[:])
	name := hex.EncodeToString(random[:])
	st.view = st.server.views.Get(st.server.options.Snapshots.Latest(), &st.client.node)
	st.vary()
	return &streamState{
		moved: st.moved, nacked: st.logNack,
		delta: st.wire.delta, timing: *st.server.options.timing, latest: st.server.options.Snapshots.Latest, open: st.open, reopen: st.reopen,
		count: st.server.options.Metrics.Count, answered: st.server.options.Metrics.Answered,
		prefix: name + "-", subs: map[envoy.Type]*subscription{}, warming: map[string]struct{}{},
		shared: st.server.fallbacks, names: st.server.names, account: st.client.account,
	}
}

// supply has what streams do about a type that is not built from snapshots.
type supply struct {
	open   func(*stream) []source
	reopen func(*stream) []source  // nil if they do not differ; no function: they never do
	asked  func(*stream, []string) // notes which names a client asks for; no function: it does not matter
}

// supplies has a row for each type that is served and not built.
var supplies = map[envoy.Type]supply{
	envoy.SecretType: {(*stream).openSecrets, reopenSecrets, func(st *stream, names []string) {
		st.secrets.ask(names)
		st.noteRefused(names)
	}},
	envoy.ProxyConfigType: {open: openRoots},
}

// reportTypes are the types of requests that want nothing: they tell something.
var reportTypes = map[envoy.Type]func(*stream, request) error{
	envoy.HealthType: func(st *stream, r request) error { return st.registered.reportHealth(&st.client, r) },
}

// open returns the groups of the node for the type.
func (st *stream) open(t envoy.Type) []source {
	if of, supplied := supplies[t]; supplied {
		return of.open(st)
	}
	if !t.Has(envoy.Built) {
		st.client.provoke("ignoring a request: its type is not supported", slog.String("type", printable(string(t))))
		return nil
	}
	return st.acquire(t, groupKeysOf(st.view, t))
}

// groupKeysOf names the groups of the view for the type. Those of secrets, which are not built, are of what refers to
// them.
func groupKeysOf(of *envoy.View, t envoy.Type) []groupKey {
	if t.Has(envoy.Built) {
		return groupsFor(t, of.Facets(t))
	}
	var keys []groupKey
	referring := of.Referring()
	for _, t := range pushOrder {
		keys = append(keys, groupsFor(t, referring[t])...)
	}
	return keys
}

func groupsFor(t envoy.Type, facets []envoy.Facet) []groupKey {
	var keys []groupKey
	for _, facet := range facets {
		keys = append(keys, groupKey{t, facet})
	}
	return keys
}

// acquire takes the groups in place of those that the stream had of the type.
func (st *stream) acquire(t envoy.Type, keys []groupKey) []source {
	sources := []source{}
	for _, key := range keys {
		sources = append(sources, st.server.acquire(key))
	}
	for _, key := range st.held[t] {
		st.server.release(key)
	}
	st.held[t] = keys
	return sources
}

// reopen returns the groups of the node if they differ from those of the stream,
// else nil.
func (st *stream) reopen(t envoy.Type) []source {
	if of, supplied := supplies[t]; supplied {
		if of.reopen == nil {
			return nil
		}
		return of.reopen(st)
	}
	keys := groupKeysOf(st.view, t)
	if slices.Equal(keys, st.held[t]) {
		return nil
	}
	return st.acquire(t, keys)
}

// take handles one request.
func (st *stream) take(m message) error {
	if m.node != nil && m.node.GetId() != st.client.node.ID {
		return status.Errorf(codes.InvalidArgument, "the node of a stream must not change: it was %q", st.client.node.ID)
	}
	if err := m.check(st.server.options.Limits); err != nil {
		return err
	}
	if report := reportTypes[m.kind]; report != nil {
		return report(st, m.request)
	}
	sub, asked := st.state.handle(m.request, time.Now())
	if sub != nil && sub.client.slots.excess != nil {
		return sub.client.slots.excess
	}
	if asked && !st.client.rate.Allow() {
		return status.Errorf(codes.ResourceExhausted, "more than %g requests in a second", st.server.options.Limits.Requests)
	}
	if sub == nil {
		return nil
	}
	if asked := supplies[m.kind].asked; asked != nil {
		asked(st, m.names)
	}
	return sub.tooMany(st.server.options.Limits)
}

// push sends the response; the writer must be idle. An error is that the client
// has gone.
func (st *stream) push(ctx context.Context, r *response, now time.Time) error {
	f, waited := st.reveal(r).frame(), time.Duration(-1)
	if !r.since.IsZero() {
		waited = now.Sub(r.since)
	}
	select {
	case st.wire.out <- f:
	case <-ctx.Done():
		return ctx.Err()
	}
	st.server.options.Metrics.Count(Sent, r.kind)
	st.server.options.Traffic.Pushed(r.kind, f.buffers.Len(), waited)
	return nil
}

// unserved is why the stream cannot go on in the snapshot; nil: it can.
func unserved(st *stream, in *federation.Snapshot) error {
	if in.ClusterNamed(st.client.claimed) != st.client.node.Cluster {
		return status.Errorf(codes.Unavailable, "the cluster that the node names, %s, changed: connect again",
			printable(string(st.client.claimed)))
	}
	if st.excess != nil {
		return st.excess
	}
	if err := st.view.Disagrees(); err != nil {
		return status.Error(codes.FailedPrecondition, printable(err.Error()))
	}
	return nil
}

// loop is the life of the stream after the first request.
func (st *stream) loop(ctx context.Context) error {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	var sendLimit time.Time // zero: nothing is being sent
	for {
		snapshot, now := st.state.latest(), time.Now()
		if err := st.client.stillAdmitted(now); err != nil {
			return err
		}
		st.state.collect(snapshot, now)
		if err := unserved(st, snapshot); err != nil {
			return err
		}
		wake := sendLimit
		if sendLimit.IsZero() {
			var r *response
			r, wake = st.state.next(now)
			st.publish() // a proxy has nothing of which the fleet does not know that it was sent
			if r != nil {
				if err := st.push(ctx, r, now); err != nil {
					return err
				}
				sendLimit = now.Add(st.server.options.Limits.Send)
				wake = sendLimit
			}
		} else {
			st.publish()
		}
		wake = earliest(wake, st.client.nextProof())
		if !wake.IsZero() {
			timer.Reset(wake.Sub(now))
		}
		select {
		case m := <-st.wire.received:
			if err := st.take(m); err != nil {
				return err
			}
		case err := <-st.wire.written:
			sendLimit = (time.Time{})
			if err != nil {
				return err
			}
		case <-snapshot.Superseded():
		case <-st.registered.ended():
			return st.registered.member.Err()
		case <-st.renewed:
			st.renew(time.Now())
		case <-timer.C:
			if !sendLimit.IsZero() && !time.Now().Before(sendLimit) {
				return status.Errorf(codes.DeadlineExceeded, "the client took no response for %s", st.server.options.Limits.Send)
			}
		case err := <-st.wire.ended:
			return clean(err)
		case <-ctx.Done():
			return ctx.Err()
		case <-st.server.drain:
			return errDraining
		}
	}
}
