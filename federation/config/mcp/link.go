package mcp

import (
	"context"
	"fmt"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/protobuf/types/known/structpb"

	"isthmus.dev/isthmus/federation/config"
)

const (
	defaultAnswer = 256 << 20 // bytes
	// steadyAfter is how long a stream without an answer must last to show that the server
	// is there: one that knows what the hub has may have nothing to say.
	steadyAfter = 5 * time.Second
	// A server that is gone without a word is noticed by pings that it does not answer. One that
	// permits only as many as gRPC's servers do without settings, one in 5 minutes, is asked less often.
	pingsOften   = 30 * time.Second
	pingsSeldom  = 6 * time.Minute
	pingPatience = 10 * time.Second
)

// link is one stream to the server. Its methods other than run are for one goroutine.
type link struct {
	arrived chan event
	stop    context.CancelFunc
	ended   chan struct{}
	node    *corev3.Node
	sotw    discoveryv3.AggregatedDiscoveryService_StreamAggregatedResourcesClient
	delta   discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResourcesClient
}

// event is what came over a link: an answer, an error that ends it, or, with neither, that
// it is open.
type event struct {
	answer *answer
	steady bool // the stream is open for a while
	err    error
}

// answer is a response of either variant.
type answer struct {
	url, version, nonce string
	resources           []resource
	removed             []string
	delta               bool
}

type resource struct {
	version string // delta only
	value   []byte // of a mcp.v1alpha1.Resource
}

// dial opens a stream; what comes of it are events.
func (s *Source) dial(ctx context.Context) *link {
	ctx, stop := context.WithCancel(ctx)
	l := &link{arrived: make(chan event), stop: stop, ended: make(chan struct{}), node: s.node()}
	delta, pings := s.delta, s.pings
	go func() {
		defer close(l.ended)
		err := s.follow(ctx, l, delta, pings)
		if ctx.Err() == nil {
			l.send(ctx, event{err: err})
		}
	}()
	return l
}

// follow reads the stream until it ends. Pings are sent after such a time without anything else.
func (s *Source) follow(ctx context.Context, l *link, delta bool, pings time.Duration) error {
	transport, err := s.transport()
	if err != nil {
		return err
	}
	target := "passthrough:///" + s.o.Address
	if s.o.local() {
		target = s.o.Address
	}
	options := []grpc.DialOption{
		grpc.WithTransportCredentials(transport), grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(s.o.Answer)),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: pings, Timeout: pingPatience}),
	}
	if s.o.Dial != nil {
		options = append(options, grpc.WithContextDialer(s.o.Dial))
	}
	conn, err := grpc.NewClient(target, options...)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	client := discoveryv3.NewAggregatedDiscoveryServiceClient(conn)
	if delta {
		l.delta, err = client.DeltaAggregatedResources(ctx)
	} else {
		l.sotw, err = client.StreamAggregatedResources(ctx)
	}
	if err != nil {
		return err
	}
	l.send(ctx, event{})
	steady := time.AfterFunc(steadyAfter, func() { l.send(ctx, event{steady: true}) })
	defer steady.Stop()
	for {
		a, err := l.read()
		if err != nil {
			return err
		}
		l.send(ctx, event{answer: a})
	}
}

func (l *link) send(ctx context.Context, e event) {
	select {
	case l.arrived <- e:
	case <-ctx.Done():
	}
}

// events are what comes; a link that is nil has none.
func (l *link) events() <-chan event {
	if l == nil {
		return nil
	}
	return l.arrived
}

// close ends the stream and waits for that; a link that is nil needs none.
func (l *link) close() {
	if l != nil {
		l.stop()
		<-l.ended
	}
}

func (l *link) read() (*answer, error) {
	if l.delta != nil {
		r, err := l.delta.Recv()
		a := &answer{url: r.GetTypeUrl(), version: r.GetSystemVersionInfo(), nonce: r.GetNonce(), removed: r.GetRemovedResources(), delta: true}
		for _, of := range r.GetResources() {
			a.resources = append(a.resources, resource{of.GetVersion(), of.GetResource().GetValue()})
		}
		return a, err
	}
	r, err := l.sotw.Recv()
	a := &answer{url: r.GetTypeUrl(), version: r.GetVersionInfo(), nonce: r.GetNonce()}
	for _, of := range r.GetResources() {
		a.resources = append(a.resources, resource{value: of.GetValue()})
	}
	return a, err
}

// ask subscribes to the kinds, and says what is known of them.
func (l *link) ask(all []*table) (err error) {
	node := l.node
	for _, t := range all {
		if l.delta != nil {
			err = l.delta.Send(&discoveryv3.DeltaDiscoveryRequest{Node: node, TypeUrl: t.url, InitialResourceVersions: t.versions()})
		} else {
			err = l.sotw.Send(&discoveryv3.DiscoveryRequest{Node: node, TypeUrl: t.url, VersionInfo: t.version})
		}
		if err != nil {
			return nil // reading tells why
		}
		node = nil
	}
	return nil
}

// acknowledge tells the server that its answer was taken, or why not.
func (l *link) acknowledge(t *table, a *answer, refused *config.Problem) error {
	var detail *status.Status
	if refused != nil {
		detail = &status.Status{Code: int32(codes.InvalidArgument), Message: refused.Message}
	}
	if l.delta != nil {
		_ = l.delta.Send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: t.url, ResponseNonce: a.nonce, ErrorDetail: detail})
	} else {
		_ = l.sotw.Send(&discoveryv3.DiscoveryRequest{TypeUrl: t.url, VersionInfo: t.version, ResponseNonce: a.nonce, ErrorDetail: detail})
	}
	return nil // reading tells why it could not be sent
}

func (s *Source) transport() (credentials.TransportCredentials, error) {
	config, err := s.o.TLS.Config()
	switch {
	case err != nil:
		return nil, fmt.Errorf("tls: %w", err)
	case config == nil:
		return insecure.NewCredentials(), nil
	}
	return credentials.NewTLS(config), nil
}

// node is what Istio's servers expect of who reads configuration.
func (s *Source) node() *corev3.Node {
	namespace := s.o.Namespace
	if namespace == "" {
		namespace = "istio-system"
	}
	fields := map[string]any{"GENERATOR": "api", "NAMESPACE": namespace, "CLUSTER_ID": string(s.o.Hub)}
	metadata, _ := structpb.NewStruct(fields)
	return &corev3.Node{Id: "sidecar~127.0.0.1~isthmus." + namespace + "~" + namespace + ".svc.cluster.local", Metadata: metadata}
}
