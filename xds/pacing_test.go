package xds

import (
	"testing"
	"time"

	"isthmus.dev/isthmus/xds/envoy"
)

// endpointDrive has accepted the endpoints of web.
func endpointDrive(t *testing.T, delta bool) *drive {
	d := newDrive(t, delta, sidecarNode(t))
	d.set(service("web", 1))
	d.start(request{kind: envoy.EndpointType, names: []string{cluster("web")}})
	return d
}

func TestPushesArePacedAndWaitForAnswers(t *testing.T) {
	bothVariants(t, func(t *testing.T, delta bool) {
		d := endpointDrive(t, delta)
		d.set(service("web", 1, 2))
		first := d.one(d.due(), envoy.EndpointType) // at once
		d.none(d.ack(first))
		d.set(service("web", 1, 2, 3))
		d.none(d.due())
		if w := d.wakes(); w != 20*time.Millisecond {
			t.Errorf("looks again after %s", w)
		}
		d.none(d.after(19 * time.Millisecond))
		second := d.one(d.after(time.Millisecond), envoy.EndpointType)
		d.set(service("web", 1, 2, 3, 4))
		d.none(d.after(999 * time.Millisecond)) // not answered
		third := d.one(d.after(time.Millisecond), envoy.EndpointType)
		d.set(service("web", 1))
		d.none(d.after(100 * time.Millisecond))
		d.none(d.ack(second)) // the third is on its way
		d.one(d.ack(third), envoy.EndpointType)
	})
}

func TestRefusalCountsAsAnswer(t *testing.T) {
	d := endpointDrive(t, true)
	d.set(service("web", 1, 2))
	first := d.one(d.due(), envoy.EndpointType)
	d.set(service("web", 1, 2, 3))
	d.none(d.after(30 * time.Millisecond))
	d.one(d.nack(first, "no"), envoy.EndpointType)
}

func TestAnswersAreNotPaced(t *testing.T) {
	bothVariants(t, func(t *testing.T, delta bool) {
		d := endpointDrive(t, delta)
		d.set(service("web", 1, 2), service("b", 3), service("c", 4))
		r := d.one(d.due(), envoy.EndpointType)
		names := []string{cluster("web")}
		for _, added := range []string{cluster("b"), cluster("c")} {
			q := request{kind: envoy.EndpointType, names: []string{added}, nonce: r.nonce}
			names = append(names, added)
			if !delta {
				q.names = names
			}
			r = d.one(d.ask(q), envoy.EndpointType)
			if len(r.resources) != 1 || !r.has(added) {
				t.Errorf("the answer for %s has %d resources", added, len(r.resources))
			}
		}
	})
}

// emptied is a set that loses the last service, and what is in it anyway.
var emptied = map[string]struct {
	node func(testing.TB) envoy.Node
	kind envoy.Type
	left []string
}{
	"a router's clusters":   {routerNode, envoy.ClusterType, nil},
	"a sidecar's clusters":  {sidecarNode, envoy.ClusterType, fixedClusters},
	"a sidecar's listeners": {sidecarNode, envoy.ListenerType, []string{"virtualInbound", "virtualOutbound"}},
}

func TestX21EmptySetsNeedASecondProof(t *testing.T) {
	proofs := map[string]func(d *drive) []*response{
		"a later snapshot": func(d *drive) []*response { d.set(serviceDelta{Set: hidden()}); return d.due() },
		"time":             func(d *drive) []*response { return d.after(5 * time.Second) },
	}
	bothVariants(t, func(t *testing.T, delta bool) {
		for what, c := range emptied {
			emptiedDrive := func() *drive {
				d := newDrive(t, delta, c.node(t))
				d.set(service("web", 1), tcpService("db", 5))
				d.start(request{kind: c.kind})
				d.set(gone("web", "db"))
				d.none(d.due())
				return d
			}
			for proof, prove := range proofs {
				t.Run(what+"/"+proof, func(t *testing.T) {
					d := emptiedDrive()
					d.none(d.after(3900 * time.Millisecond))
					if d.events[EmptyHeld] == 0 {
						t.Error("nobody counted it")
					}
					r := d.one(prove(d), c.kind)
					if !delta && len(r.resources) != len(c.left) || delta && (len(r.resources) != 0 || len(r.removed) != 2) {
						t.Errorf("got %d resources, %q removed", len(r.resources), r.removed)
					}
				})
			}
			t.Run(what+"/refuted", func(t *testing.T) {
				d := emptiedDrive()
				d.set(service("web", 1), tcpService("db", 5))
				d.none(d.after(time.Minute)) // as if nothing had been
			})
		}
	})
}

func TestX34SlowClientGetsTheLastStateOnly(t *testing.T) {
	bothVariants(t, func(t *testing.T, delta bool) {
		d := endpointDrive(t, delta)
		d.set(service("web", 1, 2))
		first := d.one(d.due(), envoy.EndpointType)
		for i := range 100 {
			d.set(service("web", 1, 2, 10+i))
		}
		d.set(service("web", 7))
		if n := d.state.subs[envoy.EndpointType].queue.size(); n != 1 {
			t.Errorf("%d names wait", n)
		}
		d.now = d.now.Add(time.Second / 2)
		last := d.one(d.ack(first), envoy.EndpointType)
		d.none(d.after(time.Minute))
		d.set(service("web", 8))
		d.set(service("web", 7))
		d.none(d.ack(last)) // and back before anybody looked: no change
	})
}

func TestX43UnsubscribeWhileAPushIsInFlight(t *testing.T) {
	t.Run("delta", func(t *testing.T) {
		d := endpointDrive(t, true)
		d.set(service("web", 1, 2))
		r := d.one(d.due(), envoy.EndpointType)
		d.none(d.ask(request{kind: envoy.EndpointType, unsubscribe: []string{cluster("web")}}))
		d.none(d.ack(r))
		d.set(service("web", 1, 2, 3))
		d.none(d.after(time.Minute))
		d.one(d.ask(request{kind: envoy.EndpointType, names: []string{cluster("web")}}), envoy.EndpointType)
	})
	t.Run("sotw", func(t *testing.T) {
		d := endpointDrive(t, false)
		old := d.state.subs[envoy.EndpointType].responses.lastNonce
		d.set(service("web", 1, 2))
		r := d.one(d.due(), envoy.EndpointType)
		d.none(d.ask(request{kind: envoy.EndpointType, nonce: old})) // stale: sent before the push came
		d.none(d.ask(request{kind: envoy.EndpointType, nonce: r.nonce}))
		d.set(service("web", 1, 2, 3))
		d.none(d.after(time.Minute))
	})
}
