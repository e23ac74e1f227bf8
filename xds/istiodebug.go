package xds

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"golang.org/x/time/rate"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"isthmus.dev/isthmus/xds/envoy"
	"isthmus.dev/isthmus/xds/istiodebug"
)

// debugType is the type of all that istioctl asks about the hub itself. Its resources are
// pages in JSON; syncType has the status of each proxy, dumpType what one proxy was sent.
const (
	debugType envoy.Type = "istio.io/debug"
	syncType             = debugType + "/syncz"
	dumpType             = debugType + "/config_dump"
)

// asksAboutHub reports whether the request is one of istioctl.
func asksAboutHub(r request) bool {
	return r.kind == debugType || strings.HasPrefix(string(r.kind), string(debugType)+"/")
}

// inquiry is a stream over which istioctl asks about the hub.
type inquiry struct {
	stream *stream
	rate   *rate.Limiter
	sent   int    // responses
	nonce  string // of the last of them, until it is acknowledged
}

// mayInspect checks that the caller may ask about the hub, and waits until clusters are known.
func (c *xdsClient) mayInspect(ctx context.Context) error {
	options := c.server.options
	if options.Debug == nil || c.caller.Inspects == nil {
		return status.Error(codes.PermissionDenied, "debug requests are disabled; list allowed clients in debug.clients")
	}
	c.caller.Admit = func(envoy.Node) (string, error) { return c.caller.Inspects() }
	if err := c.admit(time.Now()); err != nil {
		return err
	}
	return c.server.ready(ctx)
}

// answerInquiry serves istioctl until the stream ends, and returns why.
func answerInquiry(ctx context.Context, st *stream, first message) error {
	if st.wire.delta {
		return status.Errorf(codes.Unimplemented, "%s is served by StreamAggregatedResources", debugType)
	}
	st.client.node.ID = first.node.GetId()
	if err := st.client.mayInspect(ctx); err != nil {
		return err
	}
	limits := st.server.options.Limits
	q := &inquiry{stream: st, rate: rate.NewLimiter(rate.Limit(limits.Requests), limits.Burst)}
	st.client.log.Info("a client asks about the hub", slog.String("node", printable(first.node.GetId())),
		slog.String("workload", st.client.workload))
	for m := first; ; {
		if err := q.take(ctx, m); err != nil {
			return err
		}
		var err error
		m, err = nextQuestion(ctx, &st.client, st.wire.received, st.wire.ended)
		if err != nil {
			return clean(err)
		}
	}
}

// take answers one request. One with the nonce of a response acknowledges it.
func (q *inquiry) take(ctx context.Context, m message) error {
	limits := q.stream.server.options.Limits
	switch {
	case !asksAboutHub(m.request):
		return status.Errorf(codes.InvalidArgument, "a stream that asks for %s may ask for nothing else", debugType)
	case q.nonce != "" && m.nonce == q.nonce:
		q.nonce = ""
		return nil
	case !q.rate.Allow():
		return status.Errorf(codes.ResourceExhausted, "more than %g requests in a second", limits.Requests)
	}
	if err := m.check(limits); err != nil {
		return err
	}
	resources, err := inspect(ctx, q.stream.server.options.Debug, m.request)
	if err != nil {
		return err
	}
	q.sent++
	q.nonce = strconv.Itoa(q.sent)
	r := &discoveryv3.DiscoveryResponse{
		TypeUrl: string(m.kind), VersionInfo: strconv.FormatUint(q.stream.server.options.Snapshots.Latest().Version(), 10), Nonce: q.nonce,
		Resources: resources, ControlPlane: &corev3.ControlPlane{Identifier: q.stream.server.options.Debug.Identifier()},
	}
	bytes, err := proto.Marshal(r)
	if err != nil {
		return status.Error(codes.Internal, "the answer cannot be encoded")
	}
	return q.stream.client.hand(ctx, func() error { return q.stream.wire.grpc.SendMsg(frame{mem.BufferSlice{mem.SliceBuffer(bytes)}}) })
}

// inspect makes the resources that answer the request.
func inspect(ctx context.Context, debug *istiodebug.Debug, r request) ([]*anypb.Any, error) {
	done, err := debug.Turn(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	if r.kind == syncType {
		return inspectProxies(debug)
	}
	ask := map[envoy.Type]func(*istiodebug.Debug, string) ([]*anypb.Any, error){debugType: inspectPage, dumpType: inspectProxy}[r.kind]
	switch {
	case ask == nil:
		return nil, status.Errorf(codes.Unimplemented,
			"this hub does not serve %s; it serves %s, %s, and the pages of %s that the page list names",
			printable(string(r.kind)), syncType, dumpType, debugType)
	case len(r.names) != 1:
		return nil, status.Errorf(codes.InvalidArgument, "name one page of %s, such as syncz, or one proxy of %s", debugType, dumpType)
	}
	resources, err := ask(debug, r.names[0])
	switch {
	case errors.Is(err, istiodebug.ErrNoProxy):
		return nil, status.Error(codes.NotFound, printable(err.Error()))
	case err != nil:
		return nil, status.Error(codes.ResourceExhausted, err.Error())
	}
	return resources, nil
}

// inspectPage makes a page in JSON.
func inspectPage(debug *istiodebug.Debug, name string) ([]*anypb.Any, error) {
	page, err := debug.Page(name)
	if errors.Is(err, istiodebug.ErrNoPage) {
		page, err = []byte(err.Error()), nil
	}
	if err != nil {
		return nil, err
	}
	return []*anypb.Any{{TypeUrl: string(debugType), Value: page}}, nil
}

// inspectProxy makes the parts of the config dump of a proxy.
func inspectProxy(debug *istiodebug.Debug, name string) ([]*anypb.Any, error) {
	dump, err := debug.ConfigDump(name)
	return dump.GetConfigs(), err
}

// inspectProxies packs the status of each proxy, under the name that Istio's tools know.
func inspectProxies(debug *istiodebug.Debug) ([]*anypb.Any, error) {
	all, err := debug.Statuses(istiodebug.Everyone)
	if err != nil {
		return nil, status.Error(codes.ResourceExhausted, err.Error())
	}
	resources := make([]*anypb.Any, 0, len(all))
	for _, one := range all {
		one.Node.Id = istiodebug.Name(one.GetNode().GetId())
		packed, err := anypb.New(one)
		if err != nil {
			return nil, status.Error(codes.Internal, "the answer cannot be encoded")
		}
		resources = append(resources, packed)
	}
	return resources, nil
}
