package xds

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"isthmus.dev/isthmus/xds/xdstest"
)

// many is so many events, one for each of as many services.
const many = 50

func numbered(i int) string { return fmt.Sprintf("s%02d", i) }

// manyServices has one endpoint for each of them.
func manyServices() []serviceDelta {
	var all []serviceDelta
	for i := range many {
		all = append(all, service(numbered(i), i+1))
	}
	return all
}

// askManyEndpoints asks for all endpoints, takes the answer and accepts it.
func (b *bubble) askManyEndpoints() {
	var names []string
	for i := range many {
		names = append(names, cluster(numbered(i)))
	}
	b.toHub <- &discoveryv3.DeltaDiscoveryRequest{Node: node("web-1"), TypeUrl: xdstest.EDS, ResourceNamesSubscribe: names}
	b.ackAs(<-b.toPeer)
}

// ackAs accepts a response of whichever type.
func (b *bubble) ackAs(r told) {
	delta := r.(*discoveryv3.DeltaDiscoveryResponse)
	b.toHub <- &discoveryv3.DeltaDiscoveryRequest{TypeUrl: delta.GetTypeUrl(), ResponseNonce: r.GetNonce()}
}

// push is what a client saw, and when.
type push struct {
	kind  string
	names int
	after time.Duration
}

// watch takes and accepts what comes until that much time has passed.
func (b *bubble) watch(during time.Duration, answer bool) []push {
	var seen []push
	start, over := time.Now(), time.NewTimer(during)
	for {
		select {
		case r := <-b.toPeer:
			delta := r.(*discoveryv3.DeltaDiscoveryResponse)
			seen = append(seen, push{delta.GetTypeUrl(), len(delta.GetResources()), time.Since(start)})
			if answer {
				b.ackAs(r)
			}
		case <-over.C:
			return seen
		}
	}
}

// ended takes down what the bubble has.
func (b *bubble) end() {
	b.cancel()
	<-b.ended
}

// TestSeed65BurstsAreMerged: fifty events within 100 ms. The first goes at once;
// what comes meanwhile is one push, with the union of what changed.
func TestSeed65BurstsAreMerged(t *testing.T) {
	for name, c := range map[string]struct {
		between time.Duration // two events
		pushes  int           // at most
	}{"at once": {0, 2}, "over 100 ms": {2 * time.Millisecond, 6}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBubble(true, manyServices()...)
				defer b.end()
				b.askManyEndpoints()
				pass(time.Second)
				go func() {
					for i := range many {
						b.set(service(numbered(i), i+1, 200))
						if c.between > 0 {
							pass(c.between)
						}
					}
				}()
				seen, total := b.watch(time.Second, true), 0
				for _, p := range seen {
					total += p.names
				}
				if len(seen) == 0 || len(seen) > c.pushes || total != many || seen[0].after > 0 {
					t.Errorf("%d services changed, and the pushes are %v; want at most %d, the first at once", many, seen, c.pushes)
				}
			})
		})
	}
}

// TestSeed65BurstsWaitForASlowClient: a client that has not answered gets all of a
// burst as one.
func TestSeed65BurstsWaitForASlowClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(true, manyServices()...)
		defer b.end()
		b.askManyEndpoints()
		pass(time.Second)
		b.set(service(numbered(0), 1, 200))
		first := <-b.toPeer
		for i := 1; i < many; i++ {
			b.set(service(numbered(i), i+1, 200))
			pass(2 * time.Millisecond)
		}
		b.ackAs(first)
		if seen := b.watch(time.Second, true); len(seen) != 1 || seen[0].names != many-1 {
			t.Errorf("after the answer come %v, want one push with %d names", seen, many-1)
		}
	})
}

// TestSeed65OneFullChangeMakesThePushFull: of fifty events one is more than
// endpoints; then clusters are pushed too, once, and only then.
func TestSeed65OneFullChangeMakesThePushFull(t *testing.T) {
	for full, clusters := range map[bool]int{false: 0, true: 1} {
		t.Run(fmt.Sprintf("full %t", full), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBubble(true, manyServices()...)
				defer b.end()
				b.toHub <- &discoveryv3.DeltaDiscoveryRequest{Node: node("web-1"), TypeUrl: xdstest.CDS}
				b.ackAs(<-b.toPeer)
				b.askManyEndpoints()
				pass(time.Second)
				for i := range many {
					changed := service(numbered(i), i+1, 200)
					if full && i == many/2 {
						changed.Set[key(numbered(i))].Ports[0].Protocol = "GRPC"
					}
					b.set(changed)
				}
				byType := map[string]int{}
				for _, p := range b.watch(time.Second, true) {
					byType[p.kind]++
				}
				if byType[xdstest.CDS] != clusters || byType[xdstest.EDS] == 0 || byType[xdstest.EDS] > 2+clusters {
					t.Errorf("the pushes are %v", byType)
				}
			})
		})
	}
}

// TestSeed65AnUnendingStreamOfChangesIsPushed: every 20 ms to a client that
// answers, every second to one that does not.
func TestSeed65AnUnendingStreamOfChangesIsPushed(t *testing.T) {
	for answers, most := range map[bool]time.Duration{true: 21 * time.Millisecond, false: time.Second} {
		t.Run(fmt.Sprintf("answered %t", answers), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBubble(true, manyServices()...)
				defer b.end()
				b.askManyEndpoints()
				pass(time.Second)
				const during = 12 * time.Second
				go func() {
					for i := range int(during / time.Millisecond) {
						b.set(service(numbered(i%many), i%many+1, 200+i))
						pass(time.Millisecond)
					}
				}()
				var before, longest time.Duration
				seen := b.watch(during, answers)
				for _, p := range seen {
					longest, before = max(longest, p.after-before), p.after
				}
				longest = max(longest, during-before)
				if longest > most {
					t.Errorf("%d pushes, %s without one; want one every %s", len(seen), longest, most)
				}
			})
		})
	}
}
