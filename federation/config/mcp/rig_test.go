package mcp_test

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	mcpapi "istio.io/api/mcp/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/configtest"
	"isthmus.dev/isthmus/federation/config/kind"
	"isthmus.dev/isthmus/federation/config/mcp"
	"isthmus.dev/isthmus/federation/config/schema"
)

const entries = "networking.istio.io/v1/ServiceEntry"

// server is a server of the protocol that says what a test wants.
type server struct {
	discoveryv3.UnimplementedAggregatedDiscoveryServiceServer
	t        *testing.T
	at       string
	grpc     *grpc.Server
	asked    chan *discoveryv3.DiscoveryRequest      // each request
	answers  chan *discoveryv3.DiscoveryResponse     // to be sent on the open stream
	delta    chan *discoveryv3.DeltaDiscoveryRequest // each request; nil: there is no delta xDS
	changes  chan *discoveryv3.DeltaDiscoveryResponse
	hangUp   chan struct{}
	listener net.Listener
}

func serve(t *testing.T, delta bool) *server {
	t.Helper()
	s := &server{
		t: t, asked: make(chan *discoveryv3.DiscoveryRequest, 1000), answers: make(chan *discoveryv3.DiscoveryResponse),
		changes: make(chan *discoveryv3.DeltaDiscoveryResponse), hangUp: make(chan struct{}),
	}
	if delta {
		s.delta = make(chan *discoveryv3.DeltaDiscoveryRequest, 1000)
	}
	// Nobody takes its port while it is away.
	here := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	s.start(netip.AddrPortFrom(here, uint16(testbed.FreePort(t, nil, here))).String())
	t.Cleanup(func() { s.grpc.Stop() })
	return s
}

func (s *server) start(at string) {
	s.t.Helper()
	var err error
	s.listener, err = net.Listen("tcp", at)
	if err != nil {
		s.t.Fatal(err)
	}
	s.at, s.grpc = s.listener.Addr().String(), grpc.NewServer()
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(s.grpc, s)
	go func(g *grpc.Server, l net.Listener) { _ = g.Serve(l) }(s.grpc, s.listener)
}

func (s *server) StreamAggregatedResources(g discoveryv3.AggregatedDiscoveryService_StreamAggregatedResourcesServer) error {
	return converse(g, s.asked, s.answers, s.hangUp)
}

// talk is a stream of requests and answers.
type talk[Q, A any] interface {
	Recv() (Q, error)
	Send(A) error
	Context() context.Context
}

// converse tells what the client asks, and sends what it is given, until it is to hang up or the client has.
func converse[Q, A, H any](g talk[Q, A], asked chan<- Q, answers <-chan A, hangUp <-chan H) error {
	go func() {
		for {
			r, err := g.Recv()
			if err != nil {
				return
			}
			asked <- r
		}
	}()
	for {
		select {
		case r := <-answers:
			if err := g.Send(r); err != nil {
				return err
			}
		case <-hangUp:
			return nil
		case <-g.Context().Done():
			return nil
		}
	}
}

func (s *server) DeltaAggregatedResources(g discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResourcesServer) error {
	if s.delta == nil {
		return s.UnimplementedAggregatedDiscoveryServiceServer.DeltaAggregatedResources(g)
	}
	return converse(g, s.delta, s.changes, s.hangUp)
}

// say answers for ServiceEntries.
func (s *server) say(version string, all ...*anypb.Any) {
	s.t.Helper()
	s.send(&discoveryv3.DiscoveryResponse{TypeUrl: entries, VersionInfo: version, Nonce: "n" + version, Resources: all})
}

func (s *server) send(r *discoveryv3.DiscoveryResponse) {
	s.t.Helper()
	put(s.t, s.answers, r)
}

func (s *server) change(r *discoveryv3.DeltaDiscoveryResponse) {
	s.t.Helper()
	put(s.t, s.changes, r)
}

// put waits for a stream that takes the answer.
func put[T any](t *testing.T, to chan<- T, answer T) {
	t.Helper()
	patience := time.NewTimer(configtest.Patience)
	defer patience.Stop()
	select {
	case to <- answer:
	case <-patience.C:
		t.Fatal("no stream takes an answer")
	}
}

// next waits for a request.
func (s *server) next(of func(*discoveryv3.DiscoveryRequest) bool) *discoveryv3.DiscoveryRequest {
	s.t.Helper()
	patience := time.NewTimer(configtest.Patience)
	defer patience.Stop()
	for {
		select {
		case r := <-s.asked:
			if of(r) {
				return r
			}
		case <-patience.C:
			s.t.Fatal("the request does not come")
		}
	}
}

func set(t *testing.T) *schema.Set {
	t.Helper()
	all, err := schema.Load(kind.Expressions)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// hub is a source, and what it gave.
type hub struct {
	t      *testing.T
	source *mcp.Source
	stop   func()

	mu      sync.Mutex
	changed chan struct{}
	updates []config.Update
	objects map[federation.ObjectKey]*config.Object
	trouble []config.Problem
}

func (h *hub) Update(u config.Update) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.updates = append(h.updates, u)
	if u.Full {
		h.objects = map[federation.ObjectKey]*config.Object{}
	}
	for _, e := range u.Events {
		delete(h.objects, e.Key())
		if e.New != nil {
			h.objects[e.Key()] = e.New
		}
	}
	close(h.changed)
	h.changed = make(chan struct{})
}

func (h *hub) Trouble(all []config.Problem) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.trouble = all
	close(h.changed)
	h.changed = make(chan struct{})
}

// read makes a source of ServiceEntries and runs it.
func (s *server) read(change ...func(*mcp.Options)) *hub {
	s.t.Helper()
	known := set(s.t)
	o := mcp.Options{
		Server: mcp.Server{Name: "test", Address: s.at, Kinds: []string{"ServiceEntry.networking.istio.io"}},
		Known:  known.Kinds(), Schema: kind.Schema{Set: known}, Origin: "this-hub", Pause: 10 * time.Millisecond, Hold: time.Hour,
		Logger: slog.New(slog.DiscardHandler),
	}
	for _, c := range change {
		c(&o)
	}
	h := &hub{t: s.t, source: mcp.New(o), changed: make(chan struct{})}
	h.run()
	return h
}

func (h *hub) run() {
	ctx, cancel := context.WithCancel(context.Background())
	var ended sync.WaitGroup
	ended.Go(func() { _ = h.source.Run(ctx, h) })
	h.stop = func() { cancel(); ended.Wait() }
	h.t.Cleanup(h.stop)
}

// await waits until the hub is as it should be.
func (h *hub) await(what string, is func() bool) {
	h.t.Helper()
	patience := time.NewTimer(configtest.Patience)
	defer patience.Stop()
	for {
		h.mu.Lock()
		done, changed := is(), h.changed
		h.mu.Unlock()
		if done {
			return
		}
		select {
		case <-changed:
		case <-patience.C:
			h.t.Fatalf("waiting for %s: there are %d objects, and the trouble is %+v", what, len(h.objects), h.trouble)
		}
	}
}

func (h *hub) has(name string) bool { return h.objects[entryKey(name)] != nil }

func (h *hub) manifest(name string) string {
	if o := h.objects[entryKey(name)]; o != nil {
		return string(o.Manifest)
	}
	return ""
}

// said reports whether the codes are those of the trouble.
func (h *hub) said(codes ...string) bool {
	var all []string
	for _, p := range h.trouble {
		all = append(all, p.Code)
	}
	slices.Sort(all)
	slices.Sort(codes)
	return slices.Equal(all, codes)
}

func entryKey(name string) federation.ObjectKey {
	return federation.ObjectKey{Group: "networking.istio.io", Kind: "ServiceEntry", Namespace: "shop", Name: name}
}

func wrap(t *testing.T, m proto.Message) *anypb.Any {
	t.Helper()
	a, err := anypb.New(m)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// entry is a ServiceEntry of the namespace shop.
func entry(t *testing.T, name, version string, change ...func(*mcpapi.Resource, *networking.ServiceEntry)) *anypb.Any {
	t.Helper()
	m := &mcpapi.Resource{Metadata: &mcpapi.Metadata{Name: "shop/" + name, Version: version}}
	e := &networking.ServiceEntry{
		Hosts: []string{name + ".example.com"}, Resolution: networking.ServiceEntry_STATIC, Location: networking.ServiceEntry_MESH_INTERNAL,
		Ports:     []*networking.ServicePort{{Number: 80, Name: "http", Protocol: "HTTP"}},
		Endpoints: []*networking.WorkloadEntry{{Address: "10.0.0.1"}},
	}
	for _, c := range change {
		c(m, e)
	}
	if m.Body == nil {
		m.Body = wrap(t, e)
	}
	return wrap(t, m)
}
