package xds

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy"
	"isthmus.dev/isthmus/xds/xdstest"
)

// TestR07NamesThatExistCostNothing: only names without a resource count, long ones once for all streams of an identity; what the
// client says it has counts until it accepted that it is gone.
func TestR07NamesThatExistCostNothing(t *testing.T) {
	var bytes atomic.Int64
	keeper := &gatekeeper{caller: Caller{Identity: "shop/web"}}
	const limit = 20_000
	v := guarded(t, keeper)
	// The server is made already.
	v.server.options.Limits.UnknownNames, v.server.callers.stored = limit, func(change int) { bytes.Add(int64(change)) }
	all := serviceDelta{Set: map[federation.ServiceKey]*federation.Shard{}}
	var existing []string
	for i := range 300 {
		name := fmt.Sprint("s", i)
		all.Set[key(name)], existing = httpShard(1), append(existing, cluster(name))
	}
	v.set(all)
	unknown := strings.Repeat("n", 500)
	stream := func() client {
		c := v.client(xdstest.Options{Delta: true})
		c.get(xdstest.Request{Type: xdstest.CDS})
		c.get(xdstest.Request{Type: xdstest.EDS, Names: append([]string{unknown}, existing...)})
		return c
	}
	first := stream()
	once := bytes.Load()
	if once < 500 || once > 1000 {
		t.Errorf("300 names that exist and one of 500 bytes that does not cost %d bytes", once)
	}
	stream()
	if again := bytes.Load() - once; again <= 0 || again > 100 {
		t.Errorf("the same on another stream costs %d bytes", again)
	}
	has := map[string]string{}
	for i := range 20 {
		has[fmt.Sprint("gone-", i)] = "1"
	}
	before := bytes.Load()
	claims := v.client(xdstest.Options{Delta: true})
	claims.ask(xdstest.Request{Type: xdstest.CDS, Initial: has})
	told := claims.next(xdstest.CDS)
	if cost := bytes.Load() - before; cost < 20*claimCost {
		t.Errorf("20 claims cost %d bytes", cost)
	}
	claims.ack(told)
	testbed.WaitFor(t, patience, "the claims to cost nothing", func() error {
		if cost := bytes.Load() - before; cost != 0 {
			return fmt.Errorf("they cost %d bytes", cost)
		}
		return nil
	})
	for i := range 100 {
		has[fmt.Sprint("gone-too-", i)] = "1"
	}
	greedy := v.client(xdstest.Options{Delta: true})
	_ = greedy.Send(xdstest.Request{Type: xdstest.CDS, Initial: has})
	if err := greedy.ends(); status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), fmt.Sprintf("%d bytes", limit)) {
		t.Errorf("too many claims: %v", err)
	}
	first.get(xdstest.Request{Type: xdstest.LDS})
	keeper.become("shop/cart")
	has = map[string]string{}
	for i := range 20 {
		has[fmt.Sprint("gone-", i)] = "1"
	}
	v.client(xdstest.Options{Delta: true}).get(xdstest.Request{Type: xdstest.CDS, Initial: has})
}

// TestR07UnansweredResponses: a client that answers nothing and names ever other resources does not have the hub keep these names,
// nor each version of what it was sent.
func TestR07UnansweredResponses(t *testing.T) {
	d := newDrive(t, true, sidecarNode(t))
	d.set(service("web", 1))
	var last []string
	for i := range 10 * maxInflight {
		var names []string
		for n := range 10 {
			names = append(names, fmt.Sprintf("unknown-%d-%d", i, n))
		}
		d.ask(request{kind: envoy.EndpointType, names: append(names, cluster("web")), unsubscribe: last})
		last = names
		d.set(service("web", i+1))
		d.after(defaultTiming.unanswered)
	}
	sub := d.state.subs[envoy.EndpointType]
	resources, removed := 0, 0
	for _, f := range sub.responses.unanswered {
		resources, removed = resources+len(f.resources), removed+len(f.removed)
	}
	if len(sub.responses.unanswered) > maxInflight || resources > 2*maxInflight || removed > 2*maxInflight {
		t.Errorf("%d responses are kept with %d resources and %d removals", len(sub.responses.unanswered), resources, removed)
	}
	if n := d.state.names.len(); n > 20 {
		t.Errorf("%d names are kept", n)
	}
}
