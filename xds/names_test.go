package xds

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy"
)

// TestR62StreamsKeepLittleOfAResource: 16 bytes and a bit of a resource, and nothing of
// a name that the client sent.
func TestR62StreamsKeepLittleOfAResource(t *testing.T) {
	const services, streams = 3000, 6
	d := newDrive(t, true, sidecarNode(t))
	all := serviceDelta{Set: map[federation.ServiceKey]*federation.Shard{}}
	for i := range services {
		all.Set[key(fmt.Sprint("s", i))] = httpShard(1)
	}
	d.set(all)
	first := *d.state
	names := func() (all []string) {
		for i := range services {
			all = append(all, strings.Clone(cluster(fmt.Sprint("s", i))))
		}
		return all
	}
	connect := func(i int) *streamState {
		s := first
		d.state, s.subs, s.warming = &s, map[envoy.Type]*subscription{}, map[string]struct{}{}
		s.snapshot, s.prefix = 0, fmt.Sprint("n", i)
		d.start(request{kind: envoy.ClusterType}, request{kind: envoy.EndpointType, names: names()})
		for _, sub := range s.subs {
			sub.client.slots.delivered() // as the fleet has it
		}
		return &s
	}
	kept := []*streamState{connect(0)} // builds everything
	before := heap()
	for i := range streams {
		kept = append(kept, connect(i+1))
	}
	each := (heap() - before) / streams
	const resources = 2 * services
	if most := int64(16 * resources); each > most {
		t.Errorf("a stream keeps %d bytes of %d resources, more than %d", each, resources, most)
	}
	t.Logf("%d bytes of %d resources", each, resources)
	for _, s := range kept {
		if n := s.subs[envoy.EndpointType].client.slots.named; n != services {
			t.Errorf("a stream has %d names", n)
		}
		s.close()
	}
	if n := first.names.len(); n != 0 {
		t.Errorf("%d names are kept without a stream", n)
	}
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// len is how many names are held.
func (t *nameTable) len() int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return len(t.names) - len(t.free)
}
