package xds

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/structpb"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/xds/xdstest"
)

// patience is how long a test waits for what must come.
const patience = time.Minute

var source1 = federation.ShardKey{Cluster: "c1", Provider: federation.Mock}

// hub is a server over an aggregate, reached through memory.
type hub struct {
	t         testing.TB
	aggregate *federation.Aggregate
	writer    *federation.Writer
	fleet     *fleet.Fleet
	server    *Server
	listener  *bufconn.Listener
	conn      *grpc.ClientConn
	clients   int // on conn
}

func newHub(t testing.TB, change ...func(*Options)) *hub {
	t.Helper()
	h := &hub{t: t, aggregate: federation.NewAggregate(nil), fleet: fleet.New()}
	h.writer = h.aggregate.Open(source1)
	h.writer.Update(federation.Edit{Status: &federation.RegistryStatus{Phase: federation.Ready}})
	o := Options{Snapshots: h.aggregate, Fleet: h.fleet, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}
	for _, f := range change {
		f(&o)
	}
	h.server = New(o)
	g := grpc.NewServer(h.server.ServerOptions()...)
	h.server.Register(g)
	l := bufconn.Listen(1 << 20)
	served := make(chan error, 1)
	go func() { served <- g.Serve(l) }()
	h.listener = l
	t.Cleanup(func() { g.Stop(); <-served })
	h.dial()
	return h
}

// dial makes a new connection the one for further clients.
func (h *hub) dial() {
	h.t.Helper()
	conn, err := grpc.NewClient("passthrough:///hub", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64<<20)),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return h.listener.DialContext(ctx) }))
	if err != nil {
		h.t.Fatal(err)
	}
	h.conn, h.clients = conn, 0
	h.t.Cleanup(func() { conn.Close() })
}

// node is a sidecar of cluster c1.
func node(name string) *corev3.Node {
	metadata, _ := structpb.NewStruct(map[string]any{"CLUSTER_ID": "c1", "INTERCEPTION_MODE": "REDIRECT", "NAMESPACE": "shop"})
	return &corev3.Node{Id: "sidecar~10.1.0.9~" + name + ".shop~shop.svc.cluster.local", Metadata: metadata}
}

// set says what the services are, beside those said before.
func (h *hub) set(services ...federation.Delta[federation.ServiceKey, *federation.Shard]) {
	h.t.Helper()
	for _, s := range services {
		h.writer.Update(federation.Edit{Services: s})
	}
}

type serviceDelta = federation.Delta[federation.ServiceKey, *federation.Shard]

func key(name string) federation.ServiceKey {
	return federation.ServiceKey{Hostname: federation.Hostname(name + ".shop.svc.cluster.local"), Namespace: "shop"}
}

// service is one service with an HTTP port 80 and one endpoint for each number.
func service(name string, endpoints ...int) serviceDelta {
	return serviceDelta{Set: map[federation.ServiceKey]*federation.Shard{key(name): httpShard(endpoints...)}}
}

func httpShard(endpoints ...int) *federation.Shard {
	shard := &federation.Shard{Ports: []federation.Port{{Name: "http", Number: 80, Protocol: federation.HTTP}}}
	for _, n := range endpoints {
		shard.Endpoints = append(shard.Endpoints, federation.Endpoint{
			Address: federation.IPAddress(netip.AddrFrom4([4]byte{10, 1, byte(n >> 8), byte(n)})),
			Ports:   []federation.EndpointPort{{Name: "http", Number: 8080}}, Health: federation.Healthy,
		})
	}
	return shard
}

// tcpService has a VIP and a TCP port, and so a listener of its own.
func tcpService(name string, vip byte) serviceDelta {
	shard := httpShard(1)
	shard.Ports[0] = federation.Port{Name: "http", Number: 9000, Protocol: federation.TCP}
	shard.VIPs = []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 96, 0, vip}), 32)}
	return serviceDelta{Set: map[federation.ServiceKey]*federation.Shard{key(name): shard}}
}

func gone(names ...string) serviceDelta {
	var d serviceDelta
	for _, n := range names {
		d.Gone = append(d.Gone, key(n))
	}
	return d
}

func cluster(name string) string { return fmt.Sprintf("outbound|80||%s.shop.svc.cluster.local", name) }

// client is a raw client that fails the test where something goes wrong.
type client struct {
	t testing.TB
	*xdstest.Client
}

func (h *hub) client(o xdstest.Options) client {
	h.t.Helper()
	if o.Node == nil {
		o.Node = node("web-1")
	}
	if o.Buffer == 0 {
		o.Buffer = 64
	}
	h.clients++
	if h.clients > 10 {
		h.dial()
	}
	c, err := xdstest.Open(context.Background(), h.conn, o)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(c.Close)
	return client{h.t, c}
}

func (c client) ask(q xdstest.Request) {
	c.t.Helper()
	if err := c.Send(q); err != nil {
		c.t.Fatalf("asking: %v", err)
	}
}

// next returns the next response, which must be of the type.
func (c client) next(typ string) xdstest.Response {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	r, err := c.Receive(ctx)
	if err != nil {
		c.t.Fatalf("waiting for %s: %v", typ, err)
	}
	if r.Type != typ {
		c.t.Fatalf("next response is %s %v -%v, want %s", r.Type, r.Names(), r.Removed, typ)
	}
	return r
}

// get asks, takes the answer and accepts it.
func (c client) get(q xdstest.Request) xdstest.Response {
	c.t.Helper()
	c.ask(q)
	return c.accept(q.Type)
}

func (c client) accept(typ string) xdstest.Response {
	c.t.Helper()
	r := c.next(typ)
	c.ack(r)
	return r
}

func (c client) ack(r xdstest.Response) {
	c.t.Helper()
	if err := c.Ack(r); err != nil {
		c.t.Fatal(err)
	}
}

func (c client) nack(r xdstest.Response, text string) {
	c.t.Helper()
	if err := c.Nack(r, text); err != nil {
		c.t.Fatal(err)
	}
}

// ends returns the error that ends the stream.
func (c client) ends() error {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		if _, err := c.Receive(ctx); err != nil {
			if ctx.Err() != nil {
				c.t.Fatal("the stream did not end")
			}
			return err
		}
	}
}

func wantNames(t testing.TB, r xdstest.Response, names ...string) {
	t.Helper()
	slices.Sort(names)
	if got := r.Names(); !slices.Equal(got, names) {
		t.Fatalf("%s has %q, want %q", r.Type, got, names)
	}
}

func wantRemoved(t testing.TB, r xdstest.Response, names ...string) {
	t.Helper()
	slices.Sort(names)
	if got := slices.Sorted(slices.Values(r.Removed)); !slices.Equal(got, names) {
		t.Fatalf("%s removes %q, want %q", r.Type, got, names)
	}
}

// bothVariants runs the test with SotW and with delta.
func bothVariants(t *testing.T, run func(t *testing.T, delta bool)) {
	t.Run("sotw", func(t *testing.T) { run(t, false) })
	t.Run("delta", func(t *testing.T) { run(t, true) })
}

// eventually waits for the condition, which a change of the fleet makes true.
func (h *hub) eventually(what string, ok func(*fleet.Value) bool) {
	h.t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	for {
		v := h.fleet.Latest()
		if ok(v) {
			return
		}
		select {
		case <-v.Superseded():
		case <-deadline.C:
			h.t.Fatalf("waiting until %s; the fleet is %+v", what, slices.Collect(v.Proxies()))
		}
	}
}

// router is a proxy that has no clusters but those of services.
func router() *corev3.Node {
	n := node("gw")
	n.Id = "router~10.1.0.8~gw.shop~shop.svc.cluster.local"
	return n
}

func rawFrame(data string) frame { return frame{mem.BufferSlice{mem.SliceBuffer(data)}} }
