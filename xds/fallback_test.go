package xds

import (
	"fmt"
	"strings"
	"testing"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/xds/envoy"
)

// picky is a client that refuses every response with a route to a bad service, as
// Envoy does: as a whole, and without a word about where.
type picky struct {
	*drive
	hosts    map[string]*routev3.VirtualHost // that it has
	refusals int
}

// take answers responses until none is due.
func (p *picky) take(queue []*response) {
	for ; len(queue) > 0; queue = queue[1:] {
		r, hosts, bad := queue[0], map[string]*routev3.VirtualHost{}, false
		for _, one := range r.resources {
			c := &routev3.RouteConfiguration{}
			if err := proto.Unmarshal(one.value(), c); err != nil {
				p.t.Fatal(err)
			}
			for _, host := range c.GetVirtualHosts() {
				hosts[host.GetName()] = host
				bad = bad || strings.Contains(host.GetRoutes()[0].GetRoute().GetCluster(), "||bad")
			}
		}
		if !bad {
			p.hosts = hosts
			queue = append(queue, p.ack(r)...)
			continue
		}
		p.refusals++
		queue = append(queue, p.nack(r, "no")...)
	}
}

// However many virtual hosts are new, the bad ones are found in few rounds, and the
// good ones get through.
func TestR05BadVirtualHostsAreFoundAmongMany(t *testing.T) {
	bothVariants(t, func(t *testing.T, delta bool) {
		p := &picky{drive: newDrive(t, delta, sidecarNode(t))}
		p.set(service("first", 1))
		p.take(p.ask(request{kind: envoy.RouteType, names: []string{"80"}}))
		const good, bad = 60, 3
		for i := range good {
			p.set(service(fmt.Sprintf("good%d", i), 2+i))
		}
		for i := range bad {
			p.set(service(fmt.Sprintf("bad%d", i), 100+i))
		}
		p.take(p.after(defaultTiming.pace))
		for i := range good {
			if p.hosts[fmt.Sprintf("good%d.shop.svc.cluster.local:80", i)].GetRoutes()[0].GetRoute() == nil {
				t.Errorf("good%d is missing", i)
			}
		}
		for i := range bad {
			if got := p.hosts[fmt.Sprintf("bad%d.shop.svc.cluster.local:80", i)].GetRoutes()[0].GetDirectResponse().GetStatus(); got != 503 {
				t.Errorf("bad%d, which was never accepted, is answered with %d", i, got)
			}
		}
		if p.refusals > 8*bad {
			t.Errorf("%d refusals for %d bad hosts among %d", p.refusals, bad, good+bad)
		}
		if sync := p.state.subs[envoy.RouteType].sync; sync.State != fleet.Nacked || sync.LastError != "no" {
			t.Errorf("the type is %s: %q", sync.State, sync.LastError)
		}
		for i := range bad {
			p.set(gone(fmt.Sprintf("bad%d", i)))
		}
		p.take(p.after(defaultTiming.pace))
		if sub := p.state.subs[envoy.RouteType]; sub.sync.State != fleet.Synced || !sub.nacks.repair.idle() {
			t.Errorf("after the bad ones are gone, the type is %s", sub.sync.State)
		}
	})
}

// A client that refuses everything is left alone in the end.
func TestR05ASearchEnds(t *testing.T) {
	p := &picky{drive: newDrive(t, true, sidecarNode(t))}
	for i := range 40 {
		p.set(service(fmt.Sprintf("bad%d", i), 1+i))
	}
	queue := p.ask(request{kind: envoy.RouteType, names: []string{"80"}})
	for ; len(queue) > 0; queue = queue[1:] {
		p.refusals++
		if p.refusals > 2*maxRounds {
			t.Fatalf("refused %d times, and no end", p.refusals)
		}
		queue = append(queue, p.nack(queue[0], "no")...)
	}
}

// A client that refuses what it accepted before is left alone in the end, whatever changes beside it (X44).
func TestX44RefusalsOfWhatWasAcceptedEnd(t *testing.T) {
	bothVariants(t, func(t *testing.T, delta bool) {
		p := &picky{drive: newDrive(t, delta, sidecarNode(t))}
		p.set(service("first", 1), service("second", 2))
		p.take(p.ask(request{kind: envoy.RouteType, names: []string{"80"}}))
		p.set(service("new", 3))
		p.answerAtWill(p.after(defaultTiming.pace), 10, func(*response) string { return "no" })
	})
}

// Whatever a client accepts and refuses, and in whatever order, what changed once is sent a bounded number of times.
func TestX44PropertyAnswersAtWillEnd(t *testing.T) {
	bothVariants(t, func(t *testing.T, delta bool) {
		rapid.Check(t, func(r *rapid.T) {
			p := &picky{drive: newDrive(t, delta, sidecarNode(t))}
			const types = 3
			p.set(service("first", 1), service("second", 2))
			var queue []*response
			queue = append(queue, p.ask(request{kind: envoy.ClusterType})...)
			queue = append(queue, p.ask(request{kind: envoy.ListenerType})...)
			queue = append(queue, p.ask(request{kind: envoy.RouteType, names: []string{"80"}})...)
			for i := range 6 {
				refusesAll := rapid.Bool().Draw(r, "refuses all")
				p.answerAtWill(queue, types*40, func(got *response) string {
					texts := []string{"no", ""}
					if refusesAll {
						return texts[0]
					}
					for _, one := range got.resources {
						texts = append(texts, one.name+": no")
					}
					return rapid.SampledFrom(texts).Draw(r, "refusal")
				})
				p.set(service(fmt.Sprintf("new%d", rapid.IntRange(0, 3).Draw(r, "service")), 3+i))
				queue = p.after(defaultTiming.pace)
			}
		})
	})
}

// answerAtWill answers until nothing is due, which must be after the number of answers. A response without a refusal is accepted.
func (p *picky) answerAtWill(queue []*response, most int, refusal func(*response) string) {
	p.t.Helper()
	for answers := 0; len(queue) > 0; queue = queue[1:] {
		answers++
		if answers > most {
			p.t.Fatalf("%d answers, and no end", answers)
		}
		if text := refusal(queue[0]); text == "" {
			queue = append(queue, p.ack(queue[0])...)
		} else {
			queue = append(queue, p.nack(queue[0], text)...)
		}
	}
}
