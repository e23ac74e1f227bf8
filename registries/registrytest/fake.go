package registrytest

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/registries"
)

// Fake is a registry whose Run the test writes.
type Fake func(ctx context.Context, to registries.Sink) error

// Run is part of registries.Registry.
func (f Fake) Run(ctx context.Context, to registries.Sink) error { return f(ctx, to) }

// Says is a registry that says the edit and then waits for its end.
func Says(e federation.Edit) Fake {
	return func(ctx context.Context, to registries.Sink) error {
		to.Update(e)
		<-ctx.Done()
		return nil
	}
}

// Key is that of a service in the namespace shop.
func Key(name string) federation.ServiceKey {
	return federation.ServiceKey{Hostname: federation.Hostname(name + ".shop.svc.cluster.local"), Namespace: "shop"}
}

// Shard has a VIP and endpoints in 10.N.0.0/16.
func Shard(n byte, endpoints int) *federation.Shard {
	s := &federation.Shard{
		Ports: []federation.Port{{Number: 80, Protocol: federation.HTTP}},
		VIPs:  []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, n, 0, 1}), 32)},
	}
	for i := range endpoints {
		s.Endpoints = append(s.Endpoints, federation.Endpoint{
			Address: federation.IPAddress(netip.AddrFrom4([4]byte{10, n, 1, byte(i + 1)})),
			Ports:   []federation.EndpointPort{{Number: 8080}},
		})
	}
	return s
}

// Full is a whole list of the cluster n: that many services s0, s1… of two endpoints each.
func Full(n byte, services int) federation.Edit {
	e := federation.Edit{
		Services:  federation.Delta[federation.ServiceKey, *federation.Shard]{Full: true, Set: map[federation.ServiceKey]*federation.Shard{}},
		Workloads: federation.Delta[federation.WorkloadKey, *federation.Workload]{Full: true},
		Problems:  federation.Delta[string, federation.Problem]{Full: true},
		Identity:  &federation.ClusterIdentity{UID: fmt.Sprintf("uid-%d", n)},
	}
	for i := range services {
		e.Services.Set[Key(fmt.Sprintf("s%d", i))] = Shard(n, 2)
	}
	return e
}

// History remembers every published snapshot. Its zero value is ready for use.
type History struct {
	mu  sync.Mutex
	all []*federation.Snapshot
}

// Published is part of federation.Observer.
func (h *History) Published(s *federation.Snapshot, _ federation.ChangeSet, _ time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, s)
}

// Since are those after the first n.
func (h *History) Since(n int) []*federation.Snapshot {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.all[n:])
}
