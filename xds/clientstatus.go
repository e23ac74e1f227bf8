package xds

import (
	"context"
	"time"

	statusv3 "github.com/envoyproxy/go-control-plane/envoy/service/status/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"golang.org/x/time/rate"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"isthmus.dev/isthmus/federation/fleet"
)

// maxNodeMatchers is how many nodes a request may name.
const maxNodeMatchers = 1000

// clientStatusService serves Envoy's client status discovery (CSDS): what each proxy has
// accepted.
type clientStatusService struct {
	statusv3.UnimplementedClientStatusDiscoveryServiceServer
	server *Server
}

// StreamClientStatus answers each request of a stream.
func (s *clientStatusService) StreamClientStatus(g statusv3.ClientStatusDiscoveryService_StreamClientStatusServer) error {
	return s.serve(g.Context(), func(c *xdsClient) error {
		ctx, cancel := context.WithCancel(g.Context())
		defer cancel()
		pace := rate.NewLimiter(rate.Limit(s.server.options.Limits.Requests), s.server.options.Limits.Burst)
		received, ended := incoming(ctx, g.Recv)
		for {
			r, err := nextQuestion(ctx, c, received, ended)
			if err != nil {
				return clean(err)
			}
			if !pace.Allow() {
				return status.Errorf(codes.ResourceExhausted, "more than %g requests in a second", s.server.options.Limits.Requests)
			}
			answer, err := s.answer(ctx, c, r)
			if err != nil {
				return err
			}
			if err := c.hand(ctx, func() error { return g.Send(answer) }); err != nil {
				return err
			}
		}
	})
}

// FetchClientStatus answers one request.
func (s *clientStatusService) FetchClientStatus(ctx context.Context,
	r *statusv3.ClientStatusRequest,
) (answer *statusv3.ClientStatusResponse, err error) {
	err = s.serve(ctx, func(c *xdsClient) error {
		answer, err = s.answer(ctx, c, r)
		return err
	})
	return answer, err
}

// serve runs the call for a caller that may ask about the hub.
func (s *clientStatusService) serve(ctx context.Context, call func(*xdsClient) error) (err error) {
	defer s.server.ended(&err)
	c := &xdsClient{server: s.server, log: s.server.options.Logger}
	defer c.end()
	err = c.identify(ctx)
	if err == nil {
		err = c.mayInspect(ctx)
	}
	if err == nil {
		err = call(c)
	}
	if e := refusal(err); e != "" {
		s.server.options.Metrics.Count(e, "")
		c.warn("refusing a request for the status of clients", err)
	}
	return err
}

func (s *clientStatusService) answer(ctx context.Context, c *xdsClient,
	r *statusv3.ClientStatusRequest,
) (*statusv3.ClientStatusResponse, error) {
	if err := c.stillAdmitted(time.Now()); err != nil {
		return nil, err
	}
	keep, err := keeps(r.GetNodeMatchers())
	if err != nil {
		return nil, err
	}
	done, err := s.server.options.Debug.Turn(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	all, err := s.server.options.Debug.Statuses(keep)
	if err != nil {
		return nil, status.Error(codes.ResourceExhausted, err.Error())
	}
	return &statusv3.ClientStatusResponse{Config: all}, nil
}

// keeps reports which proxies the matchers mean: those whose node ID is one of the exact
// ones; all without matchers.
func keeps(matchers []*matcherv3.NodeMatcher) (func(*fleet.Proxy) bool, error) {
	if len(matchers) > maxNodeMatchers {
		return nil, status.Errorf(codes.ResourceExhausted, "more than %d node_matchers", maxNodeMatchers)
	}
	ids := make(map[string]bool, len(matchers))
	for _, m := range matchers {
		id, is := m.GetNodeId().GetMatchPattern().(*matcherv3.StringMatcher_Exact)
		if !is || len(m.GetNodeMetadatas()) > 0 || m.GetNodeId().GetIgnoreCase() {
			return nil, status.Error(codes.InvalidArgument, "node_matchers: only node_id.exact is supported")
		}
		ids[id.Exact] = true
	}
	return func(p *fleet.Proxy) bool { return len(ids) == 0 || ids[p.NodeID] }, nil
}
