package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"isthmus.dev/isthmus/xds/xdstest"
)

// clients are simulated proxies: each has a connection of its own, asks for
// everything, and accepts every response.
type clients struct {
	context context.CancelFunc
	all     []*simulated
	failed  chan error
	mu      sync.Mutex
	sample  map[string][]byte // last response of each type, to replay
	first   map[string][]byte // first response of each type
}

type simulated struct {
	conn     *grpc.ClientConn
	stream   *xdstest.Client
	have     map[string]int // first resources, by type
	ready    chan struct{}
	changes  atomic.Int64 // EDS responses since the first configuration
	last     atomic.Int64 // when the latest came
	policies atomic.Bool  // whether its inbound listener verifies tokens and authorizes
}

func openFleet(ctx context.Context, address string, services int, o options) (*clients, error) {
	ctx, cancel := context.WithCancel(ctx)
	f := &clients{context: cancel, failed: make(chan error, o.clients), sample: map[string][]byte{}, first: map[string][]byte{}}
	for i := range o.clients {
		c, err := f.open(ctx, address, i)
		if err != nil {
			f.close()
			return nil, err
		}
		f.all = append(f.all, c)
		go f.follow(ctx, c, i == 0, services)
	}
	limit := time.NewTimer(2 * time.Minute)
	defer limit.Stop()
	for _, c := range f.all {
		select {
		case <-c.ready:
		case err := <-f.failed:
			f.close()
			return nil, err
		case <-limit.C:
			f.close()
			return nil, errors.New("a client had no complete configuration after two minutes")
		}
	}
	return f, nil
}

func (f *clients) open(ctx context.Context, address string, i int) (*simulated, error) {
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(1<<30)))
	if err != nil {
		return nil, err
	}
	metadata, err := structpb.NewStruct(map[string]any{
		"CLUSTER_ID": string(benchCluster), "NAMESPACE": "ns", "LABELS": map[string]any{"app": fmt.Sprint("w", i)},
	})
	if err != nil {
		return nil, err
	}
	node := &corev3.Node{Id: fmt.Sprintf("sidecar~%s~client-%d.ns~ns.svc.cluster.local", clientAddress(i), i), Metadata: metadata}
	stream, err := xdstest.Open(ctx, conn, xdstest.Options{Node: node, Delta: true, Buffer: 16})
	if err != nil {
		return nil, err
	}
	return &simulated{conn: conn, stream: stream, have: map[string]int{}, ready: make(chan struct{})}, nil
}

func clientAddress(i int) string { return fmt.Sprintf("10.0.%d.%d", i/250, i%250+1) }

func (f *clients) close() {
	f.context()
	for _, c := range f.all {
		c.conn.Close()
	}
}

// follow asks for clusters and listeners, then for the endpoints of every
// cluster and the route of the one HTTP port, and accepts all that comes.
func (f *clients) follow(ctx context.Context, c *simulated, keep bool, services int) {
	fail := func(err error) {
		if ctx.Err() == nil {
			f.failed <- err
		}
	}
	for _, kind := range []string{xdstest.CDS, xdstest.LDS} {
		if err := c.stream.Send(xdstest.Request{Type: kind}); err != nil {
			fail(err)
			return
		}
	}
	started := false
	for {
		r, err := c.stream.Receive(ctx)
		if err != nil {
			fail(err)
			return
		}
		if keep {
			f.keep(r)
		}
		if err := errors.Join(c.stream.Ack(r), c.askForMore(r)); err != nil {
			fail(err)
			return
		}
		if inbound := r.Resources["virtualInbound"]; r.Type == xdstest.LDS && inbound != nil {
			text := inbound.GetValue()
			c.policies.Store(bytes.Contains(text, []byte("jwt_authn")) && bytes.Contains(text, []byte("filters.http.rbac")))
		}
		switch {
		case started && r.Type == xdstest.EDS:
			c.last.Store(time.Now().UnixNano())
			c.changes.Add(1)
		case !started:
			c.have[r.Type] += len(r.Resources)
			started = c.have[xdstest.EDS] >= services && c.have[xdstest.RDS] > 0 && c.have[xdstest.LDS] > 0
			if started {
				close(c.ready)
			}
		}
	}
}

func (c *simulated) askForMore(r xdstest.Response) error {
	switch {
	case r.Type == xdstest.CDS && c.have[xdstest.CDS] == 0:
		var names []string
		for _, name := range r.Names() {
			if len(name) > 9 && name[:9] == "outbound|" {
				names = append(names, name)
			}
		}
		return c.stream.Send(xdstest.Request{Type: xdstest.EDS, Names: names})
	case r.Type == xdstest.LDS && c.have[xdstest.LDS] == 0:
		return c.stream.Send(xdstest.Request{Type: xdstest.RDS, Names: []string{"80"}})
	}
	return nil
}

// forget has the next change be the first.
func (f *clients) forget() {
	for _, c := range f.all {
		c.changes.Store(0)
	}
}

// awaitChange returns when the last client got its nth change.
func (f *clients) awaitChange(n int) (time.Time, error) {
	limit := time.Now().Add(20 * time.Second)
	tick := time.NewTicker(500 * time.Microsecond)
	defer tick.Stop()
	for {
		latest, all := int64(0), true
		for _, c := range f.all {
			all = all && c.changes.Load() >= int64(n)
			latest = max(latest, c.last.Load())
		}
		if all {
			return time.Unix(0, latest), nil
		}
		select {
		case <-tick.C:
		case err := <-f.failed:
			return time.Time{}, err
		}
		if time.Now().After(limit) {
			return time.Time{}, fmt.Errorf("change %d did not reach every client within 20 s", n)
		}
	}
}

// keep remembers the first and the latest response of each type.
func (f *clients) keep(r xdstest.Response) {
	m := &discoveryv3.DeltaDiscoveryResponse{TypeUrl: r.Type, SystemVersionInfo: r.Version, RemovedResources: r.Removed, Nonce: "n"}
	for _, name := range r.Order {
		m.Resources = append(m.Resources, &discoveryv3.Resource{Name: name, Version: r.Versions[name], Resource: r.Resources[name]})
	}
	data, err := proto.Marshal(m)
	if err != nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.first[r.Type] == nil {
		f.first[r.Type] = data
	}
	f.sample[r.Type] = data
}

// record writes what the first client got to a folder.
func (f *clients) record() (string, error) {
	dir, err := os.MkdirTemp("", "isthmus-bench-")
	if err != nil {
		return "", err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, kind := range []string{xdstest.CDS, xdstest.EDS, xdstest.LDS, xdstest.RDS} {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, "first-"+filepath.Base(kind)), f.first[kind], 0o600))
	}
	return dir, errors.Join(err, os.WriteFile(filepath.Join(dir, "change"), f.sample[xdstest.EDS], 0o600))
}
