// Package xdstest is an xDS client without an Envoy around it: it says exactly
// what its user tells it to, and shows exactly what came back.
package xdstest

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	statusv3 "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// The types that a proxy asks for.
const (
	CDS = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
	EDS = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"
	LDS = "type.googleapis.com/envoy.config.listener.v3.Listener"
	RDS = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration"
	SDS = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret"
)

// Options say how a client connects.
type Options struct {
	Node   *corev3.Node // sent with the first request, unless nil
	Delta  bool
	Buffer int // responses that wait to be read; 0: the client reads only in Receive
}

// Request is one request of either variant.
type Request struct {
	Type        string
	Names       []string // SotW: all that are wanted; delta: to subscribe to
	Unsubscribe []string // delta only
	Initial     map[string]string
	Version     string // SotW only
	Nonce       string
	Error       string       // not empty: a NACK
	Node        *corev3.Node // in place of the one that the options give
}

// Response is one response of either variant.
type Response struct {
	Type, Version, Nonce string
	Resources            map[string]*anypb.Any
	Versions             map[string]string // delta only
	Order                []string          // names as they came
	Removed              []string          // delta only
	Size                 int               // bytes
}

// Client is one stream. Its methods are for one goroutine.
type Client struct {
	options  Options
	stream   grpc.ClientStream
	cancel   context.CancelFunc
	incoming chan Response
	failed   chan error
	greeted  bool
	names    map[string][]string // last SotW names, repeated in answers
}

// Open opens a stream. It ends with the context or with Close.
func Open(ctx context.Context, conn grpc.ClientConnInterface, o Options) (*Client, error) {
	ctx, cancel := context.WithCancel(ctx)
	c := &Client{
		options: o, cancel: cancel, incoming: make(chan Response, o.Buffer), failed: make(chan error, 1),
		names: map[string][]string{},
	}
	var err error
	ads := discoveryv3.NewAggregatedDiscoveryServiceClient(conn)
	if o.Delta {
		c.stream, err = ads.DeltaAggregatedResources(ctx)
	} else {
		c.stream, err = ads.StreamAggregatedResources(ctx)
	}
	if err != nil {
		cancel()
		return nil, fmt.Errorf("opening a stream: %w", err)
	}
	go c.receive()
	return c, nil
}

// Close ends the stream.
func (c *Client) Close() { c.cancel() }

func (c *Client) receive() {
	for {
		r, err := c.read()
		if err != nil {
			c.failed <- err
			return
		}
		select {
		case c.incoming <- r:
		case <-c.stream.Context().Done():
			c.failed <- c.stream.Context().Err()
			return
		}
	}
}

func (c *Client) read() (Response, error) {
	if c.options.Delta {
		var m discoveryv3.DeltaDiscoveryResponse
		err := c.stream.RecvMsg(&m)
		return fromDelta(&m), err
	}
	var m discoveryv3.DiscoveryResponse
	err := c.stream.RecvMsg(&m)
	return fromSotW(&m), err
}

func fromDelta(m *discoveryv3.DeltaDiscoveryResponse) Response {
	r := Response{
		Type: m.GetTypeUrl(), Version: m.GetSystemVersionInfo(), Nonce: m.GetNonce(), Removed: m.GetRemovedResources(),
		Resources: map[string]*anypb.Any{}, Versions: map[string]string{}, Size: proto.Size(m),
	}
	for _, res := range m.GetResources() {
		r.Order = append(r.Order, res.GetName())
		r.Resources[res.GetName()] = res.GetResource()
		r.Versions[res.GetName()] = res.GetVersion()
	}
	return r
}

func fromSotW(m *discoveryv3.DiscoveryResponse) Response {
	r := Response{
		Type: m.GetTypeUrl(), Version: m.GetVersionInfo(), Nonce: m.GetNonce(),
		Resources: map[string]*anypb.Any{}, Size: proto.Size(m),
	}
	for _, res := range m.GetResources() {
		name := Name(res)
		r.Order = append(r.Order, name)
		r.Resources[name] = res
	}
	return r
}

// Name is the name of a resource; empty where it cannot be read.
func Name(res *anypb.Any) string {
	m, err := res.UnmarshalNew()
	if err != nil {
		return ""
	}
	switch m := m.(type) {
	case interface{ GetClusterName() string }:
		return m.GetClusterName()
	case interface{ GetName() string }:
		return m.GetName()
	}
	return ""
}

// Names are the names of the resources, sorted.
func (r Response) Names() []string { return slices.Sorted(maps.Keys(r.Resources)) }

// Send sends the request as it is.
func (c *Client) Send(q Request) error {
	node := q.Node
	if node == nil && !c.greeted {
		node = c.options.Node
	}
	c.greeted = true
	var refusal *statusv3.Status
	if q.Error != "" {
		refusal = &statusv3.Status{Code: int32(codes.InvalidArgument), Message: q.Error}
	}
	if c.options.Delta {
		return c.stream.SendMsg(&discoveryv3.DeltaDiscoveryRequest{
			Node: node, TypeUrl: q.Type, ResourceNamesSubscribe: q.Names, ResourceNamesUnsubscribe: q.Unsubscribe,
			InitialResourceVersions: q.Initial, ResponseNonce: q.Nonce, ErrorDetail: refusal,
		})
	}
	c.names[q.Type] = q.Names
	return c.stream.SendMsg(&discoveryv3.DiscoveryRequest{
		Node: node, TypeUrl: q.Type, ResourceNames: q.Names, VersionInfo: q.Version, ResponseNonce: q.Nonce, ErrorDetail: refusal,
	})
}

// Ack accepts the response, with the names that were last asked for.
func (c *Client) Ack(r Response) error {
	return c.Send(c.answer(r, Request{Version: r.Version}))
}

// Nack refuses the response with that text.
func (c *Client) Nack(r Response, text string) error {
	return c.Send(c.answer(r, Request{Error: text}))
}

func (c *Client) answer(r Response, q Request) Request {
	q.Type, q.Nonce = r.Type, r.Nonce
	if !c.options.Delta {
		q.Names = c.names[r.Type]
	}
	return q
}

// Receive returns the next response, or the error that ended the stream.
func (c *Client) Receive(ctx context.Context) (Response, error) {
	select {
	case r := <-c.incoming:
		return r, nil
	default:
	}
	select {
	case r := <-c.incoming:
		return r, nil
	case err := <-c.failed:
		c.failed <- err
		return Response{}, err
	case <-ctx.Done():
		return Response{}, fmt.Errorf("waiting for a response: %w", ctx.Err())
	}
}
