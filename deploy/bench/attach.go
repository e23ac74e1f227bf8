package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strings"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/pager"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/internal/kube"
	"isthmus.dev/isthmus/registries"
	"isthmus.dev/isthmus/registries/kubernetes"
	"isthmus.dev/isthmus/xds"
	"isthmus.dev/isthmus/xds/xdstest"
)

const (
	attachServices = 1000
	attachRounds   = 7
)

// printAttach measures a cluster of 1,000 services from its registry's start to the
// first endpoints at a connected proxy, against reading the same objects with
// client-go. Both take turns.
func printAttach(ctx context.Context, o options) error {
	return on(func(s *stage) error {
		server := testbed.StartKube(s, testbed.KubeOptions{Name: "attach", ServiceCIDR: "10.96.0.0/12"})
		fmt.Fprintf(os.Stderr, "filling a cluster with %d services\n", attachServices)
		fillCluster(server)
		median, err := takeTurns(
			attachRounds,
			func() (time.Duration, error) { return attachOnce(ctx, server) },
			func() (time.Duration, error) { return readBare(ctx, server, bare{page: pageSize, atOnce: 1}) },
			func() (time.Duration, error) { return readBare(ctx, server, bare{atOnce: 1}) },
			func() (time.Duration, error) { return readBare(ctx, server, bare{atOnce: allAtOnce}) },
		)
		if err != nil {
			return err
		}
		fmt.Printf("attach of %d services, first list to first EDS\t%v\tbare list and decode in the same pages %v, unpaged %v, all kinds at once %v\tratio %.2f, %.2f, %.2f (goal 2, of the first)\n",
			attachServices, median[0], median[1], median[2], median[3], ratio(median[0], median[1]), ratio(median[0], median[2]),
			ratio(median[0], median[3]))
		return nil
	})
}

func connect(k *testbed.Kube) (*kube.Client, error) {
	credentials, err := kube.Parse(k.Kubeconfig(), kube.ParseOptions{AllowLoopback: true})
	if err != nil {
		return nil, err
	}
	return kube.Connect(credentials, kube.ConnectOptions{Allow: func(netip.AddrPort) error { return nil }})
}

// bare is how client-go reads: in pages of so many objects, or at once (0), and so
// many kinds at a time.
type bare struct{ page, atOnce int }

const (
	pageSize  = 500 // of the registry, and of client-go's pager
	allAtOnce = 5
)

type lister func(context.Context, metav1.ListOptions) (runtimeapi.Object, error)

// listsOf are the lists that a registry begins with.
func listsOf(c *kube.Client) []lister {
	return []lister{
		func(ctx context.Context, o metav1.ListOptions) (runtimeapi.Object, error) {
			return c.CoreV1().Services("").List(ctx, o)
		},
		func(ctx context.Context, o metav1.ListOptions) (runtimeapi.Object, error) {
			return c.DiscoveryV1().EndpointSlices("").List(ctx, o)
		},
		func(ctx context.Context, o metav1.ListOptions) (runtimeapi.Object, error) {
			return c.CoreV1().Pods("").List(ctx, o)
		},
		func(ctx context.Context, o metav1.ListOptions) (runtimeapi.Object, error) {
			return c.CoreV1().Nodes().List(ctx, o)
		},
		func(ctx context.Context, o metav1.ListOptions) (runtimeapi.Object, error) {
			return c.CoreV1().Namespaces().List(ctx, o)
		},
	}
}

// readBare lists and decodes everything once.
func readBare(ctx context.Context, k *testbed.Kube, how bare) (time.Duration, error) {
	client, err := connect(k)
	if err != nil {
		return 0, err
	}
	defer client.Close()
	began := time.Now()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(how.atOnce)
	for _, list := range listsOf(client) {
		group.Go(func() error {
			pages := pager.New(pager.ListPageFunc(list))
			pages.PageSize = int64(how.page)
			_, _, err := pages.List(ctx, metav1.ListOptions{})
			return err
		})
	}
	err = group.Wait()
	return time.Since(began), err
}

// attachOnce attaches the cluster to a new hub with one connected proxy.
func attachOnce(ctx context.Context, k *testbed.Kube) (time.Duration, error) {
	ctx, cancel := context.WithCancel(ctx)
	var group errgroup.Group
	defer func() { cancel(); _ = group.Wait() }()
	quiet := slog.New(slog.DiscardHandler)
	aggregate := federation.NewAggregate(nil)
	supervisor := registries.New(registries.Options{Aggregate: aggregate, Logger: quiet})
	ads := xds.New(xds.Options{Snapshots: aggregate, Fleet: fleet.New(), Logger: quiet})
	server := grpc.NewServer(ads.ServerOptions()...)
	ads.Register(server)
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	group.Go(func() error { return server.Serve(listener) })
	defer server.Stop()
	group.Go(func() error { return supervisor.Run(ctx) })
	group.Go(func() error { return ads.Run(ctx) })
	proxy, err := newWatcher(ctx, listener.Addr().String())
	if err != nil {
		return 0, err
	}
	defer proxy.close()
	began := time.Now()
	supervisor.Attach(registries.Cluster{
		ID: "c1", Spec: federation.ClusterSpec{Provider: federation.Kubernetes},
		Open: func(federation.ClusterIdentity) (registries.Registry, error) {
			client, err := connect(k)
			if err != nil {
				return nil, err
			}
			return following{client}, nil
		},
	})
	if err := proxy.firstEndpoints(ctx); err != nil {
		return 0, err
	}
	return time.Since(began), nil
}

// following is the registry of the cluster.
type following struct{ client *kube.Client }

func (f following) Run(ctx context.Context, to registries.Sink) error {
	defer f.client.Close()
	return kubernetes.New(kubernetes.Options{Cluster: "c1", Client: f.client, Logger: slog.New(slog.DiscardHandler)}).Run(ctx, to)
}

// watcher is a connected proxy that has no clusters yet.
type watcher struct {
	conn   *grpc.ClientConn
	client *xdstest.Client
}

func newWatcher(ctx context.Context, address string) (*watcher, error) {
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(1<<30)))
	if err != nil {
		return nil, err
	}
	w := &watcher{conn: conn}
	w.client, err = xdstest.Open(ctx, conn, xdstest.Options{
		Delta: true, Buffer: 16,
		Node: &corev3.Node{Id: "sidecar~10.128.0.0~s0000-0.shop~shop.svc.cluster.local"},
	})
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	if err := w.client.Send(xdstest.Request{Type: xdstest.CDS, Names: []string{"*"}}); err != nil {
		return nil, err
	}
	r, err := w.client.Receive(ctx)
	if err == nil {
		err = w.client.Ack(r)
	}
	return w, err
}

func (w *watcher) close() {
	w.client.Close()
	_ = w.conn.Close() // it is of no use any more
}

// firstEndpoints returns when endpoints of the services have come.
func (w *watcher) firstEndpoints(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		r, err := w.client.Receive(ctx)
		if err != nil {
			return err
		}
		if r.Type == xdstest.EDS && len(r.Resources) > 0 {
			return nil
		}
		if err := w.client.Ack(r); err != nil {
			return err
		}
		var names []string
		for name := range r.Resources {
			if r.Type == xdstest.CDS && strings.HasPrefix(name, "outbound|") {
				names = append(names, name)
			}
		}
		if len(names) > 0 {
			if err := w.client.Send(xdstest.Request{Type: xdstest.EDS, Names: names}); err != nil {
				return err
			}
		}
	}
}
