package xds

import (
	"fmt"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy"
	"isthmus.dev/isthmus/xds/xdstest"
)

// One endpoint of one service changes; 100 clients with endpoints of all
// services get and accept it. cpu-us/op is the process's time, clients included.
func BenchmarkEndpointChange(b *testing.B) {
	for _, delta := range []bool{true, false} {
		for _, services := range []int{250, 1000, 4000} {
			b.Run(fmt.Sprintf("delta=%t/services=%d", delta, services), func(b *testing.B) { benchmarkChange(b, delta, services) })
		}
	}
}

func benchmarkChange(b *testing.B, delta bool, services int) {
	h := newHub(b, func(o *Options) { o.Pace = time.Nanosecond })
	all := serviceDelta{Set: map[federation.ServiceKey]*federation.Shard{}}
	var names []string
	for i := range services {
		all.Set[key(fmt.Sprint("s", i))] = httpShard(1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
		names = append(names, cluster(fmt.Sprint("s", i)))
	}
	h.set(all)
	clients := make([]client, 100)
	for i := range clients {
		clients[i] = h.client(xdstest.Options{Delta: delta, Node: node(fmt.Sprint("web-", i))})
		clients[i].get(xdstest.Request{Type: xdstest.CDS})
		clients[i].get(xdstest.Request{Type: xdstest.EDS, Names: names})
	}
	before, n := cpu(), 0
	for b.Loop() {
		n++
		h.set(service(fmt.Sprint("s", n%services), n, n+1))
		for _, c := range clients {
			c.accept(xdstest.EDS)
		}
	}
	b.ReportMetric(float64((cpu()-before).Microseconds())/float64(n), "cpu-us/op")
}

func cpu() time.Duration {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// All services go at once; the client accepts everything. Time is the second proof of the empty
// sets: of the listeners first, then of the clusters to which they referred.
func BenchmarkDetach(b *testing.B) {
	for _, services := range []int{250, 1000, 4000} {
		b.Run(fmt.Sprintf("services=%d", services), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				d, all := detachDrive(b, services)
				b.StartTimer()
				d.set(all)
				for range 3 {
					d.accept()
				}
				if n := d.state.subs[envoy.ClusterType].client.live; n != 0 {
					b.Fatalf("%d clusters are left", n)
				}
			}
		})
	}
}

// A client gets and accepts its first configuration, which others have had before it.
func BenchmarkFirstConfiguration(b *testing.B) {
	for _, services := range []int{250, 500} {
		b.Run(fmt.Sprintf("services=%d", services), func(b *testing.B) {
			d, _ := detachDrive(b, services)
			first := d.state
			endpoints := request{kind: envoy.EndpointType}
			for i := range services {
				endpoints.names = append(endpoints.names, fmt.Sprintf("outbound|9000||s%d.shop.svc.cluster.local", i))
			}
			b.ReportAllocs()
			for b.Loop() {
				d.state = &streamState{
					delta: true, timing: first.timing, latest: first.latest, open: first.open, reopen: first.reopen, prefix: "m",
					count: first.count, answered: first.answered, subs: map[envoy.Type]*subscription{}, warming: map[string]struct{}{},
					shared: first.shared, names: first.names,
				}
				d.start(request{kind: envoy.ClusterType}, endpoints, request{kind: envoy.ListenerType})
				d.state.close()
			}
		})
	}
}

// detachDrive has accepted everything of so many TCP services.
func detachDrive(t testing.TB, services int) (d *drive, removal serviceDelta) {
	d = newDrive(t, true, sidecarNode(t))
	all := serviceDelta{Set: map[federation.ServiceKey]*federation.Shard{}}
	endpoints := request{kind: envoy.EndpointType}
	for i := range services {
		name := fmt.Sprint("s", i)
		shard := httpShard(1)
		shard.Ports[0].Protocol, shard.Ports[0].Number = federation.TCP, 9000
		shard.VIPs = []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 96, byte(i >> 8), byte(i)}), 32)}
		all.Set[key(name)] = shard
		removal.Gone = append(removal.Gone, key(name))
		endpoints.names = append(endpoints.names, fmt.Sprintf("outbound|9000||%s.shop.svc.cluster.local", name))
	}
	d.set(all)
	d.start(request{kind: envoy.ClusterType}, endpoints, request{kind: envoy.ListenerType})
	return d, removal
}
