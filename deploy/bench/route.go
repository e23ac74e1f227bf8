package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/structpb"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/xds"
	"isthmus.dev/isthmus/xds/xdstest"
)

// The ports of the services: most share one route configuration, a few have one
// of their own, which is the same in stores of every size.
const (
	sharedPort = 80
	ownPort    = 7070
	ownHosts   = 10
)

// routeBench is a hub's configuration, its snapshots and one proxy, without a store.
type routeBench struct {
	state    *config.State
	writer   *federation.Writer
	client   *xdstest.Client
	revision int64
}

func routeHost(port, i int) string { return fmt.Sprintf("p%d-s%d.ns.svc.cluster.local", port, i) }

func routeShard(port, i int) *federation.Shard {
	s := shard(i, 0)
	s.Ports[0].Number = uint16(port)
	s.VIPs = []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(port), byte(i >> 8), byte(i)}), 32)}
	return s
}

// manifest is an object in namespace ns as a store gives it.
func manifest(kind, name, spec string, revision int64) config.Event {
	key := federation.ObjectKey{Group: "networking.istio.io", Kind: kind, Namespace: "ns", Name: name}
	text := fmt.Sprintf(`{"apiVersion":"networking.istio.io/v1","kind":%q,"metadata":{"name":%q,"namespace":"ns"},"spec":%s}`,
		kind, name, spec)
	return config.Event{New: &config.Object{Key: key, APIVersion: "networking.istio.io/v1", Revision: revision, Manifest: []byte(text)}}
}

func routeTo(host string, turn int, revision int64) config.Event {
	return manifest("VirtualService", host, fmt.Sprintf(
		`{"hosts":[%[1]q],"http":[{"match":[{"uri":{"prefix":"/login"}}],"timeout":"%[2]ds","route":[{"destination":{"host":%[1]q}}]},{"route":[{"destination":{"host":%[1]q}}]}]}`,
		host, 5+turn), revision)
}

// fillRoutes has a VirtualService and a DestinationRule for each service, and
// VirtualServices of hosts that no service has up to the number of objects.
func (w *routeBench) fillRoutes(objects, services int) {
	var events []config.Event
	for port, n := range map[int]int{sharedPort: services, ownPort: ownHosts} {
		for i := range n {
			host := routeHost(port, i)
			events = append(events, routeTo(host, 0, 1),
				manifest("DestinationRule", host, fmt.Sprintf(`{"host":%q,"trafficPolicy":{"loadBalancer":{"simple":"RANDOM"}}}`, host), 1))
		}
	}
	for i := len(events); i < objects; i++ {
		events = append(events, routeTo(fmt.Sprintf("nobody-%d.example.com", i), 0, 1))
	}
	w.take(events)
}

func (w *routeBench) take(events []config.Event) {
	w.revision++
	state, edit := w.state.Next(events, w.revision)
	w.state = state
	w.writer.Update(edit)
}

func openRouteBench(ctx context.Context, objects, services int, dir string) (*routeBench, func(), error) {
	aggregate := federation.NewAggregate(nil)
	w := &routeBench{state: config.NewState(config.Options{Hub: "hub"})}
	w.writer = aggregate.Open(w.state.Source())
	registry := fill(0)
	for port, n := range map[int]int{sharedPort: services, ownPort: ownHosts} {
		for i := range n {
			registry.Services.Set[federation.ServiceKey{Hostname: federation.Hostname(routeHost(port, i)), Namespace: "ns"}] = routeShard(port, i)
		}
	}
	aggregate.Open(source()).Update(registry)
	w.fillRoutes(objects, services)
	ads := xds.New(xds.Options{Snapshots: aggregate, Fleet: fleet.New(), Logger: slog.New(slog.DiscardHandler), Pace: time.Nanosecond})
	server := grpc.NewServer(ads.ServerOptions()...)
	ads.Register(server)
	address := "unix:" + filepath.Join(dir, fmt.Sprint("xds-", objects))
	listener, err := (&net.ListenConfig{}).Listen(ctx, "unix", strings.TrimPrefix(address, "unix:"))
	if err != nil {
		return nil, nil, err
	}
	go func() { _ = server.Serve(listener) }() // it ends with Stop
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		server.Stop()
		return nil, nil, err
	}
	stop := func() { conn.Close(); server.Stop() }
	metadata, err := structpb.NewStruct(map[string]any{"CLUSTER_ID": string(benchCluster), "NAMESPACE": "ns"})
	if err == nil {
		node := &corev3.Node{Id: "sidecar~10.0.0.1~client.ns~ns.svc.cluster.local", Metadata: metadata}
		w.client, err = xdstest.Open(ctx, conn, xdstest.Options{Node: node, Delta: true})
	}
	if err != nil {
		stop()
		return nil, nil, err
	}
	return w, stop, nil
}

// routeCost is what the hub, and a proxy that accepts it, spend on one changed
// VirtualService whose host is at the port.
type routeCost struct {
	cpu   time.Duration
	bytes int
}

// measure changes VirtualServices one after the other.
func (w *routeBench) measure(ctx context.Context, port, changes int) (routeCost, error) {
	name := fmt.Sprint(port)
	if err := w.client.Send(xdstest.Request{Type: xdstest.RDS, Names: []string{name}}); err != nil {
		return routeCost{}, err
	}
	var cost routeCost
	var before time.Duration
	for turn := range changes + 1 { // the first answer is that to the request
		if turn > 0 {
			w.take([]config.Event{routeTo(routeHost(port, turn%ownHosts), turn/ownHosts+1, int64(turn)+1)})
		}
		r, err := w.client.Receive(ctx)
		if err != nil {
			return cost, err
		}
		if r.Resources[name] == nil {
			return cost, fmt.Errorf("a change of %s is answered with %v", name, r.Names())
		}
		if err := w.client.Ack(r); err != nil {
			return cost, err
		}
		cost.bytes = r.Size
		if turn == 0 {
			before, _ = usage()
		}
	}
	after, _ := usage()
	cost.cpu = (after - before) / time.Duration(changes)
	return cost, w.client.Send(xdstest.Request{Type: xdstest.RDS, Unsubscribe: []string{name}})
}

// printRoute compares stores of two sizes.
func printRoute(ctx context.Context, _ options) error {
	const changes = 200
	dir, err := os.MkdirTemp("", "isthmus-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	costs := map[int]map[int]routeCost{}
	for objects, services := range map[int]int{100: ownHosts, 10_000: 1000} {
		fmt.Fprintf(os.Stderr, "changing VirtualServices among %d objects and %d services\n", objects, services)
		w, stop, err := openRouteBench(ctx, objects, services, dir)
		if err != nil {
			return err
		}
		costs[objects] = map[int]routeCost{}
		for _, port := range []int{ownPort, sharedPort} {
			costs[objects][port], err = w.measure(ctx, port, changes)
			if err != nil {
				stop()
				return err
			}
		}
		stop()
	}
	few, many := costs[100], costs[10_000]
	fmt.Printf("CPU of one changed VirtualService\t%v of 100 objects\t%v of 10,000 and 1,000 services\tratio %.2f (goal 2)\n",
		few[ownPort].cpu, many[ownPort].cpu, ratio(many[ownPort].cpu, few[ownPort].cpu))
	fmt.Printf("the same in the route configuration of all services\t%v of %d KiB\t%v of %d KiB\tratio %.2f, of the bytes %.2f\n\n",
		few[sharedPort].cpu, few[sharedPort].bytes>>10, many[sharedPort].cpu, many[sharedPort].bytes>>10,
		ratio(many[sharedPort].cpu, few[sharedPort].cpu), float64(many[sharedPort].bytes)/float64(few[sharedPort].bytes))
	return nil
}
