package xds

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy"
)

// reports notes what probers find.
type reports struct {
	mu    sync.Mutex
	found map[string]string // by prober
	moved chan struct{}
}

func newReports() *reports {
	return &reports{found: map[string]string{}, moved: make(chan struct{}, 1)}
}

func (r *reports) Found(prober string, observer federation.NetworkID, reached map[netip.AddrPort]bool) {
	r.say(prober, fmt.Sprintf("%s %v", observer, reached))
}

func (r *reports) Left(prober string) { r.say(prober, "left") }

func (r *reports) say(prober, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.found[prober] = text
	select {
	case r.moved <- struct{}{}:
	default:
	}
}

// await waits until so many probers have said the text last.
func (r *reports) await(t *testing.T, n int, text string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		r.mu.Lock()
		said, all := 0, fmt.Sprint(r.found)
		for _, last := range r.found {
			if last == text {
				said++
			}
		}
		r.mu.Unlock()
		if said == n {
			return
		}
		select {
		case <-r.moved:
		case <-ctx.Done():
			t.Fatalf("%d probers said %q; all: %s", said, text, all)
		}
	}
}

// gatewaysOf makes the gateways those of the network.
func (h *hub) gatewaysOf(id federation.NetworkID, addresses ...string) {
	spec := &federation.NetworkObject{}
	for _, a := range addresses {
		spec.Gateways = append(spec.Gateways, federation.NetworkGateway{Address: a})
	}
	o := &federation.Object{
		Key:    federation.ObjectKey{Group: federation.MeshGroup, Kind: federation.NetworkKind.Name, Name: string(id)},
		Digest: strings.Join(addresses, " "), Spec: spec,
	}
	w := h.aggregate.Open(federation.ShardKey{Provider: federation.Operator})
	defer w.Close()
	w.Update(federation.Edit{Objects: federation.Delta[federation.ObjectKey,
		*federation.Object]{Set: map[federation.ObjectKey]*federation.Object{o.Key: o}}})
}

// gatewaysIn allows gateways in the namespaces.
func (h *hub) gatewaysIn(namespaces ...string) {
	o := &federation.Object{
		Key: federation.MeshSettingsKey, Digest: strings.Join(namespaces, " "),
		Spec: &federation.MeshSettings{GatewayNamespaces: namespaces},
	}
	w := h.aggregate.Open(federation.ShardKey{Provider: federation.Operator})
	defer w.Close()
	w.Update(federation.Edit{Objects: federation.Delta[federation.ObjectKey,
		*federation.Object]{Set: map[federation.ObjectKey]*federation.Object{o.Key: o}}})
}

// checker is a raw stream of health checks.
type checker struct {
	t *testing.T
	healthv3.HealthDiscoveryService_StreamHealthCheckClient
}

func (h *hub) checker(n *corev3.Node) checker {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), patience)
	h.t.Cleanup(cancel)
	s, err := healthv3.NewHealthDiscoveryServiceClient(h.conn).StreamHealthCheck(ctx)
	if err != nil {
		h.t.Fatal(err)
	}
	c := checker{h.t.(*testing.T), s}
	c.ask(n)
	return c
}

func (c checker) ask(n *corev3.Node) {
	_ = c.Send(&healthv3.HealthCheckRequestOrEndpointHealthResponse{RequestType: &healthv3.HealthCheckRequestOrEndpointHealthResponse_HealthCheckRequest{
		HealthCheckRequest: &healthv3.HealthCheckRequest{Node: n},
	}}) // the stream may be over already
}

// told waits for what is to be probed and returns the addresses.
func (c checker) told() (addresses []string) {
	c.t.Helper()
	s, err := c.Recv()
	if err != nil {
		c.t.Fatal(err)
	}
	for _, cluster := range s.GetClusterHealthChecks() {
		for _, l := range cluster.GetLocalityEndpoints() {
			for _, e := range l.GetEndpoints() {
				addresses = append(addresses, e.GetAddress().GetSocketAddress().GetAddress())
			}
		}
	}
	return addresses
}

func (c checker) report(address string, is corev3.HealthStatus) {
	c.t.Helper()
	e := &endpointv3.Endpoint{Address: &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{Address: address, PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: 15443}}}}}
	err := c.Send(&healthv3.HealthCheckRequestOrEndpointHealthResponse{RequestType: &healthv3.HealthCheckRequestOrEndpointHealthResponse_EndpointHealthResponse{
		EndpointHealthResponse: &healthv3.EndpointHealthResponse{EndpointsHealth: []*healthv3.EndpointHealth{{Endpoint: e, HealthStatus: is}}},
	}})
	if err != nil {
		c.t.Error(err)
	}
}

// TestHealthDiscovery: a gateway gets what to probe, again on the same stream
// when that changes and on a new one after a reconnect, and what it reports
// arrives.
func TestHealthDiscovery(t *testing.T) {
	found := newReports()
	h := newHub(t, func(o *Options) { o.Probes = found })
	h.gatewaysIn("shop")
	h.gatewaysOf("n2", "192.0.2.1")
	c := h.checker(router())
	want := func(c checker, addresses ...string) {
		t.Helper()
		if got := c.told(); strings.Join(got, " ") != strings.Join(addresses, " ") {
			t.Errorf("%q are to be probed, want %q", got, addresses)
		}
	}
	want(c, "192.0.2.1")
	h.set(service("web", 1)) // of no interest
	h.gatewaysOf("n2", "192.0.2.1", "192.0.2.2")
	want(c, "192.0.2.1", "192.0.2.2")
	c.report("192.0.2.1", corev3.HealthStatus_HEALTHY)
	found.await(t, 1, "default map[192.0.2.1:15443:true]")
	c.report("192.0.2.99", corev3.HealthStatus_UNHEALTHY) // was not asked for
	c.report("192.0.2.2", corev3.HealthStatus_TIMEOUT)
	found.await(t, 1, "default map[192.0.2.2:15443:false]")
	c.ask(router())
	want(c, "192.0.2.1", "192.0.2.2")
	again := h.checker(router()) // before the hub knows that the first is gone
	want(again, "192.0.2.1", "192.0.2.2")
	again.report("192.0.2.1", corev3.HealthStatus_HEALTHY)
	found.await(t, 1, "default map[192.0.2.1:15443:true]")
	_ = c.CloseSend()
	found.await(t, 1, "left")
	found.await(t, 1, "default map[192.0.2.1:15443:true]")
	h.gatewaysOf("n2")
	want(again)
}

// TestHealthDiscoveryIsForGatewaysThatAreProven.
func TestHealthDiscoveryIsForGatewaysThatAreProven(t *testing.T) {
	large := router()
	large.Id = strings.Repeat("x", 100<<10)
	for name, c := range map[string]struct {
		node   *corev3.Node
		change func(*Options)
		want   codes.Code
	}{
		"no node":      {nil, nil, codes.InvalidArgument},
		"no name":      {&corev3.Node{Id: "x"}, nil, codes.InvalidArgument},
		"a large node": {large, nil, codes.InvalidArgument},
		"a sidecar":    {node("web-1"), nil, codes.PermissionDenied},
		"another's name": {
			router(), func(o *Options) { o.Access = &gatekeeper{refused: errors.New("the node says c2")} },
			codes.PermissionDenied,
		},
		"nobody knows it": {
			router(), func(o *Options) { o.Access = &gatekeeper{nobody: status.Error(codes.Unauthenticated, "no")} },
			codes.Unauthenticated,
		},
		"nobody takes these": {router(), func(o *Options) { o.Probes = nil }, codes.Unimplemented},
	} {
		t.Run(name, func(t *testing.T) {
			found := newReports()
			h := newHub(t, func(o *Options) {
				o.Probes = found
				if c.change != nil {
					c.change(o)
				}
			})
			h.gatewaysIn("shop")
			h.gatewaysOf("n2", "192.0.2.1")
			if s, err := h.checker(c.node).Recv(); status.Code(err) != c.want {
				t.Errorf("it gets %v, %v", s, err)
			}
			if len(found.found) != 0 {
				t.Errorf("something was found: %v", found.found)
			}
		})
	}
	t.Run("another node later", func(t *testing.T) {
		h := newHub(t, func(o *Options) { o.Probes = newReports() })
		h.gatewaysIn("shop")
		c := h.checker(router())
		c.told()
		other := proto.Clone(router()).(*corev3.Node)
		other.Id = "router~10.1.0.8~other.shop~shop.svc.cluster.local"
		c.ask(other)
		if _, err := c.Recv(); status.Code(err) != codes.InvalidArgument {
			t.Errorf("it gets %v", err)
		}
	})
}

// TestReportsAreThoseOfGateways of the network for which they speak; others are
// counted and told why, also when that changes while they report.
func TestReportsAreThoseOfGateways(t *testing.T) {
	soon := func(o *Options) { now := defaultTiming; now.refusal = 50 * time.Millisecond; o.timing = &now }
	elsewhere := router()
	elsewhere.Metadata.Fields["NETWORK"] = structpb.NewStringValue("n3")
	named := func(h *hub) {
		gateway := federation.NetworkGateway{}
		gateway.Service.Hostname = "gw.shop.svc.cluster.local"
		o := &federation.Object{
			Key:  federation.ObjectKey{Group: federation.MeshGroup, Kind: federation.NetworkKind.Name, Name: "default"},
			Spec: &federation.NetworkObject{Gateways: []federation.NetworkGateway{gateway}},
		}
		w := h.aggregate.Open(federation.ShardKey{Provider: federation.Operator})
		defer w.Close()
		w.Update(federation.Edit{Objects: federation.Delta[federation.ObjectKey,
			*federation.Object]{Set: map[federation.ObjectKey]*federation.Object{o.Key: o}}})
	}
	for name, c := range map[string]struct {
		node    *corev3.Node
		allow   func(*hub)
		refused string
	}{
		"where gateways may be":          {router(), func(h *hub) { h.gatewaysIn("shop") }, ""},
		"a service that a Network names": {router(), named, ""},
		"nobody declares it":             {router(), func(*hub) {}, `gateways may not be in namespace "shop"`},
		"in another network by its word": {elsewhere, func(h *hub) { h.gatewaysIn("shop") }, `"n3"`},
	} {
		t.Run(name, func(t *testing.T) {
			found, counts := newReports(), &eventCounts{events: map[Event]int{}}
			h := newHub(t, soon, func(o *Options) { o.Probes, o.Metrics = found, counts })
			h.gatewaysOf("n2", "192.0.2.1")
			c.allow(h)
			reporter := h.checker(c.node)
			if c.refused == "" {
				reporter.told()
				reporter.report("192.0.2.1", corev3.HealthStatus_UNHEALTHY)
				found.await(t, 1, "default map[192.0.2.1:15443:false]")
				return
			}
			_, err := reporter.Recv()
			if status.Code(err) != codes.PermissionDenied || !strings.Contains(err.Error(), c.refused) {
				t.Errorf("it gets %v, want %q", err, c.refused)
			}
			if counts.of(ReportsRefused) != 1 || counts.of(Denied) != 1 {
				t.Errorf("counted: %v", counts.events)
			}
		})
	}
	t.Run("TestR36 once its registry knows it", func(t *testing.T) {
		late := func(o *Options) { now := defaultTiming; now.refusal = time.Hour; o.timing = &now }
		found, counts := newReports(), counter{events: make(chan Event, 100)}
		h := newHub(t, late, func(o *Options) { o.Probes, o.Metrics = found, counts })
		h.gatewaysOf("n2", "192.0.2.1")
		refused := h.checker(router())
		for e := range counts.events {
			if e == ReportsRefused {
				break
			}
		}
		h.gatewaysIn("shop")
		if _, err := refused.Recv(); status.Code(err) != codes.PermissionDenied {
			t.Errorf("it gets %v", err)
		}
		again := h.checker(router())
		again.told()
		again.report("192.0.2.1", corev3.HealthStatus_UNHEALTHY)
		found.await(t, 1, "default map[192.0.2.1:15443:false]")
	})
	t.Run("TestF84 until it is not admitted any more", func(t *testing.T) {
		g, counts := &gatekeeper{}, counter{events: make(chan Event, 100)}
		late := func(o *Options) {
			now := defaultTiming
			now.refusal, now.access = time.Hour, time.Millisecond
			o.timing, o.Access = &now, g
		}
		h := newHub(t, late, func(o *Options) { o.Probes, o.Metrics = newReports(), counts })
		h.gatewaysOf("n2", "192.0.2.1")
		waiting := h.checker(router())
		for e := range counts.events {
			if e == ReportsRefused {
				break
			}
		}
		g.refuse(errors.New("the trust bundle is another"))
		if _, err := waiting.Recv(); status.Code(err) != codes.PermissionDenied {
			t.Errorf("it gets %v", err)
		}
	})
	t.Run("not any more", func(t *testing.T) {
		found := newReports()
		h := newHub(t, soon, func(o *Options) { o.Probes = found })
		h.gatewaysIn("shop")
		h.gatewaysOf("n2", "192.0.2.1")
		c := h.checker(router())
		c.told()
		c.report("192.0.2.1", corev3.HealthStatus_HEALTHY)
		found.await(t, 1, "default map[192.0.2.1:15443:true]")
		h.gatewaysIn("elsewhere")
		if _, err := c.Recv(); status.Code(err) != codes.PermissionDenied {
			t.Errorf("it gets %v", err)
		}
		found.await(t, 1, "left")
	})
}

// counter hands on what is counted.
type counter struct {
	uncounted
	events chan Event
}

func (c counter) Count(e Event, _ envoy.Type) { c.events <- e }
