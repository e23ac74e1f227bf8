package xds

import (
	"context"
	"log/slog"
	"sync"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	statusv3 "github.com/envoyproxy/go-control-plane/envoy/service/status/v3"
	"google.golang.org/grpc"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/derive"
	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/internal/clientaddr"
	"isthmus.dev/isthmus/xds/envoy"
)

// Server serves ADS, SotW and delta.
type Server struct {
	discoveryv3.UnimplementedAggregatedDiscoveryServiceServer
	options Options
	views   *derive.Table[*envoy.Node, *envoy.View] // of the nodes of streams
	drain   chan struct{}                           // closed when Run ends
	once    sync.Once
	callers callers
	// strangers is the log of callers before it is known who they are.
	strangers *clientaddr.Log
	// provoked is the log of what callers that are known make the hub say, so that
	// strangers do not displace it.
	provoked *clientaddr.Log
	// limitedLog is the log of what all proxies may do at once.
	limitedLog *clientaddr.LimitedLog

	fallbacks *fallbacks
	names     *nameTable
	builtFrom *derive.Index[*group] // by the objects that something of a group was built from
	changed   objectChanges
	reasons   *reasons

	mu      sync.Mutex
	groups  map[groupKey]*sharedGroup
	opened  fleet.Group // groups so far
	retired retired
}

type groupKey struct {
	kind  envoy.Type
	facet envoy.Facet
}

// sharedGroup is a group and the number of streams that use it.
type sharedGroup struct {
	*group
	users int
}

// New makes a server; it starts nothing.
func New(o Options) *Server {
	o = o.withDefaults()
	return &Server{
		options: o, views: viewsOf(o.builder.view), drain: make(chan struct{}), groups: map[groupKey]*sharedGroup{},
		callers: callers{open: map[string]*account{}, stored: o.UnknownNames}, strangers: clientaddr.NewLog(o.Logger),
		provoked: clientaddr.NewLog(o.Logger), limitedLog: clientaddr.NewLimitedLog(o.Logger), fallbacks: newFallbacks(),
		names: newNameTable(), builtFrom: derive.NewIndex[*group](), reasons: newReasons(o.Findings, o.Fleet.Built),
	}
}

// Register adds the discovery services, those of health and of client status among them, to a gRPC server that was made with
// ServerOptions.
func (s *Server) Register(r grpc.ServiceRegistrar) {
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(r, s)
	healthv3.RegisterHealthDiscoveryServiceServer(r, &healthService{server: s})
	statusv3.RegisterClientStatusDiscoveryServiceServer(r, &clientStatusService{server: s})
}

// ServerOptions are the options that a gRPC server needs to serve xDS: a codec
// that shares bytes between streams and is like gRPC's own for everything else.
// The limits of the transport are for who makes the gRPC server.
func (s *Server) ServerOptions() []grpc.ServerOption {
	return []grpc.ServerOption{grpc.ForceServerCodecV2(codec{})}
}

// Run blocks until the context ends; then all streams are closed, so that their
// clients go elsewhere.
func (s *Server) Run(ctx context.Context) error {
	s.limitedLog.Run(ctx)
	s.once.Do(func() { close(s.drain) })
	return nil
}

// StreamAggregatedResources serves SotW streams.
func (s *Server) StreamAggregatedResources(g discoveryv3.AggregatedDiscoveryService_StreamAggregatedResourcesServer) error {
	return s.serve(g, false)
}

// DeltaAggregatedResources serves delta streams.
func (s *Server) DeltaAggregatedResources(g discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResourcesServer) error {
	return s.serve(g, true)
}

// acquire returns the group, which stays until as many releases.
func (s *Server) acquire(key groupKey) *sharedGroup {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.groups[key]
	if g == nil {
		g = &sharedGroup{group: newGroup(key.kind, key.facet, *s.options.builder)}
		g.index = derive.Within[*group, string](s.builtFrom, g.group)
		s.opened++
		g.id, g.names.table = s.opened, s.names
		g.blame, g.reasoned, g.moved = s.retired.take(key), s.reasons.replace, s.options.Fleet.Built
		g.failed, g.built = s.buildFailed, func() { s.options.Metrics.Count(Built, key.kind) }
		s.groups[key] = g
	}
	g.users++
	return g
}

func (s *Server) release(key groupKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if g := s.groups[key]; g != nil {
		g.users--
		if g.users == 0 {
			delete(s.groups, key)
			g.close()
			if key.kind.Has(envoy.InParts) {
				s.retired.add(key, g.blame)
			}
		}
	}
}

func (s *Server) buildFailed(t envoy.Type, name string, err error) {
	s.options.Metrics.Count(BuildFailed, t)
	s.options.Logger.Error("leaving a resource as it was: it cannot be built", slog.String("type", string(t)),
		slog.String("name", name), slog.Any("err", err))
}

// viewsOf keeps the views of nodes: one is made again when something changed that it
// was derived from.
func viewsOf(view func(envoy.Node, *federation.Reader) envoy.View) *derive.Table[*envoy.Node, *envoy.View] {
	return derive.NewTable(func(r *federation.Reader, n *envoy.Node) *envoy.View {
		v := view(*n, r)
		return &v
	})
}
