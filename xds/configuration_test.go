package xds

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/schema"
	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/xds/mcp"
	"isthmus.dev/isthmus/xds/xdstest"
)

const serviceEntries = "networking.istio.io/v1/ServiceEntry"

// empty is a configuration without objects.
type empty struct{}

func (empty) LatestPublished() *config.View {
	return &config.View{State: config.NewState(config.Options{})}
}

// reads admits everybody as a reader, or nobody.
type reads bool

func (r reads) Identify(context.Context) (Caller, error) {
	return Caller{Reads: func() (string, error) {
		if !r {
			return "", fmt.Errorf("not named")
		}
		return "spiffe://td/ns/istio-system/sa/istiod", nil
	}}, nil
}

// configurationServer serves the services of a registry.
func configurationServer(t *testing.T, access Access, limits ...Limits) (client func(delta bool) *xdstest.Client,
	publish func(name, address string),
) {
	t.Helper()
	from := federation.NewAggregate(nil)
	entry := schema.Kind{Kind: federation.Kind{Group: "networking.istio.io", Name: "ServiceEntry"}, Versions: []string{"v1"}, Storage: "v1"}
	s := New(Options{
		Snapshots: from, Fleet: fleet.New(), Logger: slog.New(slog.DiscardHandler), Access: access, Limits: append(limits, Limits{})[0],
		Configuration: mcp.New(mcp.Options{
			Snapshots: from, Views: empty{}, Kinds: []schema.Kind{entry}, Origin: "origin",
			Logger: slog.New(slog.DiscardHandler),
		}),
	})
	g := grpc.NewServer(s.ServerOptions()...)
	s.Register(g)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = g.Serve(listener) }()
	t.Cleanup(g.Stop)
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	metadata, err := structpb.NewStruct(map[string]any{"GENERATOR": "api"})
	if err != nil {
		t.Fatal(err)
	}
	client = func(delta bool) *xdstest.Client {
		t.Helper()
		c, err := xdstest.Open(t.Context(), conn, xdstest.Options{Node: &corev3.Node{Id: "no node of a proxy", Metadata: metadata}, Delta: delta})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return c
	}
	w := from.Open(federation.ShardKey{Cluster: "c1", Provider: federation.Kubernetes})
	w.Update(federation.Edit{Clusters: federation.Delta[federation.ClusterID,
		federation.ClusterSpec]{Set: map[federation.ClusterID]federation.ClusterSpec{"c1": {Provider: federation.Kubernetes}}}})
	publish = func(name, address string) {
		key := federation.ServiceKey{Hostname: federation.Hostname(name), Namespace: "shop"}
		if address == "" {
			w.Update(federation.Edit{Services: federation.Delta[federation.ServiceKey, *federation.Shard]{Gone: []federation.ServiceKey{key}}})
			return
		}
		w.Update(federation.Edit{Services: federation.Delta[federation.ServiceKey,
			*federation.Shard]{Set: map[federation.ServiceKey]*federation.Shard{key: {
			Ports: []federation.Port{{Name: "http", Number: 80, Protocol: federation.HTTP}},
			Endpoints: []federation.Endpoint{{
				Address: federation.IPAddress(netip.MustParseAddr(address)),
				Ports:   []federation.EndpointPort{{Name: "http", Number: 80}}, Health: federation.Healthy,
			}},
		}}}})
	}
	return client, publish
}

// TestM10ControlPlanesAreServed: SotW and delta, with refusals, unknown types and resumption.
func TestM10ControlPlanesAreServed(t *testing.T) {
	client, publish := configurationServer(t, reads(true))
	publish("a.example", "10.0.0.1")
	publish("b.example", "10.0.0.1")
	receive := func(c *xdstest.Client) xdstest.Response {
		t.Helper()
		r, err := c.Receive(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	send := func(c *xdstest.Client, r xdstest.Request) {
		t.Helper()
		if err := c.Send(r); err != nil {
			t.Fatal(err)
		}
	}
	sotw, delta := client(false), client(true)
	send(sotw, xdstest.Request{Type: "no.such/v1/Thing", Nonce: "as istiod sends"})
	if r := receive(sotw); r.Type != "no.such/v1/Thing" || len(r.Order) != 0 {
		t.Errorf("an unknown type is answered with %+v", r)
	}
	send(sotw, xdstest.Request{Type: serviceEntries})
	all := receive(sotw)
	if all.Type != serviceEntries || len(all.Order) != 2 {
		t.Errorf("SotW has %+v", all)
	}
	send(delta, xdstest.Request{Type: serviceEntries})
	first := receive(delta)
	if len(first.Order) != 2 || len(first.Versions) != 2 {
		t.Errorf("delta has %+v", first)
	}
	send(sotw, xdstest.Request{Type: serviceEntries, Nonce: all.Nonce, Error: "no"})
	send(delta, xdstest.Request{Type: serviceEntries, Nonce: first.Nonce})
	publish("b.example", "10.0.0.2")
	if r := receive(sotw); len(r.Order) != 2 {
		t.Errorf("after a refusal and a change, SotW has %+v", r)
	}
	second := receive(delta)
	if len(second.Order) != 1 || len(second.Removed) != 0 {
		t.Errorf("after a change, delta has %+v", second)
	}
	send(delta, xdstest.Request{Type: serviceEntries, Nonce: second.Nonce})
	publish("a.example", "")
	if r := receive(delta); len(r.Order) != 0 || len(r.Removed) != 1 {
		t.Errorf("after a removal, delta has %+v", r)
	}
	again, known := client(true), first.Versions
	send(again, xdstest.Request{Type: serviceEntries, Initial: known})
	if r := receive(again); len(r.Order) != 1 || len(r.Removed) != 1 {
		t.Errorf("a stream that resumes with %v has %+v", known, r)
	}
	greedy := client(false)
	for i := range mostConfigurationTypes + 1 {
		_ = greedy.Send(xdstest.Request{Type: fmt.Sprintf("no.such/v1/Thing%d", i)}) // receiving tells the error
	}
	for {
		r, err := greedy.Receive(t.Context())
		if err == nil {
			_ = greedy.Ack(r)
			continue
		}
		if status.Code(err) != codes.ResourceExhausted {
			t.Errorf("too many types end with %v", err)
		}
		break
	}
}

// TestM08OthersAreRefused: without the right, and where nobody has it.
func TestM08OthersAreRefused(t *testing.T) {
	for name, access := range map[string]Access{"not named": reads(false), "no access": nil} {
		client, _ := configurationServer(t, access)
		c := client(false)
		if err := c.Send(xdstest.Request{Type: serviceEntries}); err != nil {
			t.Fatal(err)
		}
		if r, err := c.Receive(t.Context()); status.Code(err) != codes.PermissionDenied {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
}

// identified admits everybody as one reader, whose streams count together.
type identified struct{}

func (identified) Identify(context.Context) (Caller, error) {
	return Caller{Identity: "istiod", Reads: func() (string, error) { return "spiffe://td/ns/istio-system/sa/istiod", nil }}, nil
}

// TestR91WhatReadersSayIsBounded: the names that a control plane says it has count until they
// are answered, and the URL of a type is a name.
func TestR91WhatReadersSayIsBounded(t *testing.T) {
	client, publish := configurationServer(t, identified{}, Limits{UnknownNames: 50 * claimCost})
	publish("a.example", "10.0.0.1")
	has := func(n int) map[string]string {
		initial := map[string]string{}
		for i := range n {
			initial[fmt.Sprint("gone/", i)] = "1"
		}
		return initial
	}
	c := client(true)
	for i := range 3 {
		if err := c.Send(xdstest.Request{Type: fmt.Sprint("a.type/v1/", i), Initial: has(40)}); err != nil {
			t.Fatal(err)
		}
		if r, err := c.Receive(t.Context()); err != nil || len(r.Removed) != 40 {
			t.Errorf("40 names are answered with %+v, %v", r, err)
		}
	}
	for name, q := range map[string]xdstest.Request{
		"many names": {Type: serviceEntries, Initial: has(60)}, "long type": {Type: strings.Repeat("t", 600)},
	} {
		c := client(true)
		_ = c.Send(q) // the stream may be over already
		if r, err := c.Receive(t.Context()); status.Code(err) != codes.ResourceExhausted {
			t.Errorf("%s: it gets %+v, %v", name, r, err)
		}
	}
	c = client(true) // those of the ended streams count no more
	if err := c.Send(xdstest.Request{Type: serviceEntries, Initial: has(50)}); err != nil {
		t.Fatal(err)
	}
	if r, err := c.Receive(t.Context()); err != nil || len(r.Removed) != 50 {
		t.Errorf("50 names are answered with %+v, %v", r, err)
	}
}
