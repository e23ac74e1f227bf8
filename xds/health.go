package xds

import (
	"context"
	"crypto/rand"
	"net/netip"
	"sync"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy"
)

// Probes takes what gateways find of the gateways of other networks. Its methods
// must not block.
type Probes interface {
	// Found is one report of a prober in the observer's network: for each gateway
	// whether it was reached.
	Found(prober string, observer federation.NetworkID, reached map[netip.AddrPort]bool)
	// Left records that nothing more comes from the prober.
	Left(prober string)
}

// probesPace is between two looks at what a gateway is to probe.
const probesPace = 500 * time.Millisecond

// healthService serves Envoy's health discovery to gateways.
type healthService struct {
	healthv3.UnimplementedHealthDiscoveryServiceServer
	server *Server
	names  probeNames
}

// probeNames are computed once for a snapshot and shared by all callers.
type probeNames struct {
	mu      sync.Mutex
	version uint64
	names   map[federation.NetworkID][]string
}

func (p *probeNames) of(s *federation.Snapshot) map[federation.NetworkID][]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.version < s.Version() {
		p.version, p.names = s.Version(), envoy.ProbeNames(s)
	}
	return p.names
}

// healthStream is a gateway that probes. It is proven as the streams of ADS are.
type healthStream struct {
	server   *Server
	client   xdsClient
	service  *healthService
	ended    <-chan error // of receiving
	grpc     healthv3.HealthDiscoveryService_StreamHealthCheckServer
	received <-chan *healthv3.HealthCheckRequestOrEndpointHealthResponse
	prober   string
	probes   envoy.Probes
	refused  bool      // it is not a gateway of its network
	seen     uint64    // version of the snapshot for which they are
	paced    time.Time // before which they are not computed again
}

// StreamHealthCheck tells a gateway what to probe, again whenever that changes,
// and takes its reports.
func (s *healthService) StreamHealthCheck(g healthv3.HealthDiscoveryService_StreamHealthCheckServer) (err error) {
	defer s.server.ended(&err)
	if s.server.options.Probes == nil {
		return status.Error(codes.Unimplemented, "this hub takes no reports of probes")
	}
	h := &healthStream{
		server: s.server, client: xdsClient{server: s.server, log: s.server.options.Logger},
		service: s, grpc: g, prober: rand.Text(),
	}
	ctx, cancel := context.WithCancel(g.Context())
	defer cancel()
	defer h.client.end()
	err = h.serve(ctx)
	if e := refusal(err); e != "" {
		s.server.options.Metrics.Count(e, "")
		h.client.warn("closing a stream of health checks", err)
	}
	if h.refused {
		h.linger(ctx)
	}
	return err
}

// linger keeps a stream whose requests are ignored from now on, since an Envoy that is
// refused asks again within a second, and logs a warning each time. It ends at once when
// the node may probe, as a gateway often connects before its registry knows its pod (R36),
// and when the caller is no longer admitted.
func (h *healthStream) linger(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	end := time.Now().Add(h.server.options.timing.refusal)
	for {
		latest, now := h.server.options.Snapshots.Latest(), time.Now()
		if !now.Before(end) || h.client.stillAdmitted(now) != nil || envoy.Serves(h.client.node, latest) == nil {
			return
		}
		timer.Reset(earliest(end, h.client.nextProof()).Sub(now))
		select {
		case <-latest.Superseded():
		case <-timer.C:
		case <-ctx.Done():
			return
		case <-h.server.drain:
			return
		}
	}
}

func (h *healthStream) serve(ctx context.Context) error {
	if err := h.client.identify(ctx); err != nil {
		return err
	}
	h.received, h.ended = incoming(ctx, h.grpc.Recv)
	if err := h.greet(ctx); err != nil {
		return err
	}
	if err := h.server.ready(ctx); err != nil {
		return err
	}
	defer h.server.options.Probes.Left(h.prober)
	return h.loop(ctx)
}

// greet waits for the first request, which must name the node.
func (h *healthStream) greet(ctx context.Context) error {
	limits := h.server.options.Limits
	timer := time.NewTimer(limits.FirstRequest)
	defer timer.Stop()
	select {
	case m := <-h.received:
		return h.meet(m.GetHealthCheckRequest().GetNode())
	case err := <-h.ended:
		return clean(err)
	case <-ctx.Done():
		return ctx.Err()
	case <-h.server.drain:
		return errDraining
	case <-timer.C:
		return status.Errorf(codes.DeadlineExceeded, "no request within %s of opening the stream", limits.FirstRequest)
	}
}

func (h *healthStream) meet(said *corev3.Node) error {
	if said == nil {
		return status.Error(codes.InvalidArgument, "the first message of a stream must be a request with a node")
	}
	if err := h.client.meet(said); err != nil {
		return err
	}
	if h.client.node.Type == envoy.Sidecar {
		return status.Error(codes.PermissionDenied, "health checks are for gateways: take hds_config out of the bootstrap of a sidecar")
	}
	return nil
}

// loop is the life of the stream after the first request.
func (h *healthStream) loop(ctx context.Context) error {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		snapshot, now := h.server.options.Snapshots.Latest(), time.Now()
		if err := h.client.stillAdmitted(now); err != nil {
			return err
		}
		wake, err := h.sendProbes(ctx, snapshot, now)
		if err != nil {
			return err
		}
		superseded := snapshot.Superseded()
		if !wake.IsZero() {
			superseded = nil // the newest is looked at when it is time
		}
		wake = earliest(wake, h.client.nextProof())
		if !wake.IsZero() {
			timer.Reset(wake.Sub(now))
		}
		select {
		case m := <-h.received:
			if err := h.take(m); err != nil {
				return err
			}
		case <-superseded:
		case <-timer.C:
		case err := <-h.ended:
			return clean(err)
		case <-ctx.Done():
			return ctx.Err()
		case <-h.server.drain:
			return errDraining
		}
	}
}

// sendProbes sends what is to be probed if it is not what was sent last, and
// returns when to look at a newer snapshot. A node that is not a gateway of its network, or no
// longer, gets the reason and is ignored from then on.
func (h *healthStream) sendProbes(ctx context.Context, s *federation.Snapshot, now time.Time) (time.Time, error) {
	if h.seen == s.Version() {
		return time.Time{}, nil
	}
	if now.Before(h.paced) {
		return h.paced, nil
	}
	h.seen, h.paced = s.Version(), now.Add(probesPace)
	if err := envoy.Serves(h.client.node, s); err != nil {
		h.refused = true
		h.server.options.Metrics.Count(ReportsRefused, "")
		return time.Time{}, status.Errorf(codes.PermissionDenied, "health checks are for gateways of networks: %s", printable(err.Error()))
	}
	next := envoy.ProbesOf(h.client.node, s, h.service.names.of(s))
	if h.probes.Specifier != nil && proto.Equal(next.Specifier, h.probes.Specifier) {
		h.probes.Observer = next.Observer
		return time.Time{}, nil
	}
	h.probes = next
	return time.Time{}, h.client.hand(ctx, func() error { return h.grpc.Send(next.Specifier) })
}

// take reads a report. Another request, of a node that was named already, is
// answered with what there is to probe.
func (h *healthStream) take(m *healthv3.HealthCheckRequestOrEndpointHealthResponse) error {
	if !h.client.rate.Allow() {
		return status.Errorf(codes.ResourceExhausted, "more than %g reports in a second", h.server.options.Limits.Requests)
	}
	if m.GetHealthCheckRequest() != nil {
		if id := m.GetHealthCheckRequest().GetNode().GetId(); id != "" && id != h.client.node.ID {
			return status.Error(codes.InvalidArgument, "the node of a stream must not change")
		}
		h.seen, h.probes, h.paced = 0, envoy.Probes{}, time.Time{}
		return nil
	}
	if found := h.probes.Found(m.GetEndpointHealthResponse()); len(found) > 0 {
		h.server.options.Probes.Found(h.prober, h.probes.Observer, found)
	}
	return nil
}
