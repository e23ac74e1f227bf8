package xds

import (
	"fmt"
	"testing"

	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/xds/envoy"
	"isthmus.dev/isthmus/xds/xdstest"
)

func TestX24EnvoyIsServedInOrder(t *testing.T) {
	bothVariants(t, func(t *testing.T, delta bool) {
		r := newReal(t, delta, service("web", 1), tcpService("db", 5))
		r.await("everything to be accepted", r.inSync)
		last := -1
		for _, kind := range envoyOrder {
			at := r.first(Sent, kind)
			if at <= last {
				t.Errorf("the first %s is event %d, what comes before it event %d", kind, at, last)
			}
			last = at
		}
	})
}

// changed waits until Envoy uses a changed cluster.
func (r *real) changed(since uint64) func() error {
	return func() error {
		if r.changes() == since {
			return fmt.Errorf("no cluster changed")
		}
		return r.inSync()
	}
}

// A changed cluster warms until its endpoints come: X27 delta, X28 SotW. Envoy
// holds the answer about the cluster back until then: X29.
func TestX27X28X29EnvoyWarmsChangedClustersAtOnce(t *testing.T) {
	bothVariants(t, func(t *testing.T, delta bool) {
		r := newReal(t, delta, service("web", 1))
		r.await("everything to be accepted", r.inSync)
		before := r.changes()
		r.forget()
		r.set(changedCluster())
		r.await("the change to be in force", r.changed(before))
		endpoints, answer := r.first(Sent, envoy.EndpointType), r.first(Acked, envoy.ClusterType)
		if endpoints < 0 || answer < endpoints {
			t.Errorf("endpoints were sent as event %d, the cluster accepted as event %d: Envoy did not wait", endpoints, answer)
		}
		r.set(service("web", 1), service("new", 2))
		r.await("the new cluster", r.hasClusters(cluster("web"), cluster("new")))
		r.await("everything to be accepted", r.inSync)
	})
}

// The same where the cluster changed while the hub was away.
func TestX11X27EnvoyWarmsClustersThatChangedWhileItWasAlone(t *testing.T) {
	bothVariants(t, func(t *testing.T, delta bool) {
		r := newReal(t, delta, service("web", 1), service("other", 2))
		r.await("everything to be accepted", r.inSync)
		before := r.changes()
		r.stop()
		r.set(changedCluster())
		r.serve()
		r.await("the change to be in force", r.changed(before))
	})
}

func TestX30EnvoyGetsRoutesForARecreatedListener(t *testing.T) {
	bothVariants(t, func(t *testing.T, delta bool) {
		r := newReal(t, delta, service("web", 1), tcpService("db", 5))
		r.await("everything to be accepted", r.inSync)
		for range 2 {
			r.set(gone("web"))
			r.await("the listener to go", func() error { return r.listeners(3) })
			r.await("the cluster to go", r.hasClusters(dbCluster))
			r.set(service("web", 1))
			r.await("the listener to be back", func() error { return r.listeners(4) })
			r.await("everything to be accepted", r.inSync)
		}
	})
}

func TestX03EnvoyHasNoZombieAfterARefusal(t *testing.T) {
	r := newReal(t, true, service("web", 1))
	r.await("everything to be accepted", r.inSync)
	d := service("bad", 2)
	d.Set[key("good")] = httpShard(3)
	r.set(d)
	r.await("the refusal to be shown", r.state(fleet.Nacked))
	r.await("the good cluster", r.hasClusters(cluster("web"), cluster("good")))
	r.await("the repair to be accepted", r.accepted(xdstest.CDS))
	r.stop()
	r.set(gone("good", "bad"))
	r.serve()
	r.await("the zombie to go", r.hasClusters(cluster("web")))
	r.await("everything to be accepted", r.inSync)
}

func TestX04EnvoyAndHubAgreeAfterARefusal(t *testing.T) {
	r := newReal(t, false, service("web", 1), service("old", 2))
	r.await("everything to be accepted", r.inSync)
	d := service("bad", 2)
	d.Gone = gone("old").Gone
	d.Set[key("good")] = httpShard(3)
	r.set(d)
	r.await("the refusal to be shown", r.state(fleet.Nacked))
	r.await("the old cluster to go", r.hasClusters(cluster("web"), cluster("good")))
	r.await("the repair to be accepted", r.accepted(xdstest.CDS))
	r.set(gone("bad"))
	r.await("everything to be accepted", r.inSync)
}
