package xds

import (
	"slices"
	"testing"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy"
)

// fullDrive has accepted everything of the service web.
func fullDrive(t *testing.T, delta bool) *drive {
	d := newDrive(t, delta, sidecarNode(t))
	d.set(service("web", 1))
	d.start(everyType...)
	return d
}

func TestX24PushesGoInOrder(t *testing.T) {
	bothVariants(t, func(t *testing.T, delta bool) {
		d := fullDrive(t, delta)
		both := tcpService("db", 5) // a cluster, a listener
		both.Set[key("web")] = httpShard(1, 2)
		d.set(both)
		got := kinds(d.due())
		if want := []envoy.Type{envoy.ClusterType, envoy.EndpointType}; !slices.Equal(got, want) {
			t.Errorf("got %v, want %v; listeners wait for their clusters", got, want)
		}
		all := d.after(5 * time.Second)
		if got := kinds(all); !slices.Equal(got, []envoy.Type{envoy.ListenerType}) {
			t.Errorf("after 5 s: %v", got)
		}
	})
}

func TestX24FirstResponsesGoInOrderWhateverWasAskedFirst(t *testing.T) {
	bothVariants(t, func(t *testing.T, delta bool) {
		d := newDrive(t, delta, sidecarNode(t))
		d.set(service("web", 1))
		for _, q := range slices.Backward(everyType) {
			d.state.handle(q, d.now)
		}
		if got := kinds(d.due()); !slices.Equal(got, envoyOrder) {
			t.Errorf("got %v", got)
		}
	})
}

func TestListenersAndRoutesWaitForTheirClusters(t *testing.T) {
	bothVariants(t, func(t *testing.T, delta bool) {
		d := fullDrive(t, delta)
		d.set(service("new", 2)) // a cluster, and a virtual host for it
		clusters := d.one(d.due(), envoy.ClusterType)
		d.none(d.after(4 * time.Second))
		r := d.one(d.ack(clusters), envoy.RouteType)
		if !r.resources[0].refs.hasCluster(cluster("new")) {
			t.Error("the route does not lead to the new cluster")
		}
	})
}

func TestRoutesGoWithoutTheClustersAnswerInTheEnd(t *testing.T) {
	d := fullDrive(t, true)
	d.set(service("new", 2))
	d.one(d.due(), envoy.ClusterType)
	d.none(d.after(4900 * time.Millisecond))
	d.one(d.after(100*time.Millisecond), envoy.RouteType)
}

func TestX29EndpointsDoNotWaitForClusters(t *testing.T) {
	bothVariants(t, func(t *testing.T, delta bool) {
		d := fullDrive(t, delta)
		d.set(service("new", 2))
		d.one(d.due(), envoy.ClusterType)
		names := []string{cluster("web"), cluster("new")}
		r := d.one(d.ask(request{kind: envoy.EndpointType, names: names, nonce: d.state.subs[envoy.EndpointType].responses.lastNonce}),
			envoy.EndpointType)
		if !r.has(cluster("new")) {
			t.Error("the endpoints of the new cluster are missing")
		}
	})
}

// changedCluster changes web's cluster but not its endpoints.
func changedCluster() serviceDelta {
	d := service("web", 1)
	d.Set[key("web")].Ports[0].Protocol = federation.HTTP2
	return d
}

func TestX27EndpointsGoUnaskedAfterTheirCluster(t *testing.T) {
	bothVariants(t, func(t *testing.T, delta bool) {
		d := fullDrive(t, delta)
		d.set(changedCluster())
		all := d.due()
		if got := kinds(all); !slices.Equal(got[:2], []envoy.Type{envoy.ClusterType, envoy.EndpointType}) || !all[1].has(cluster("web")) {
			t.Fatalf("got %v", got)
		}
	})
}

func TestX28RepeatedRequestIsAnsweredAfterTheClusterWasSent(t *testing.T) {
	d := fullDrive(t, false)
	eds := d.state.subs[envoy.EndpointType]
	repeat := func() request {
		return request{kind: envoy.EndpointType, names: []string{cluster("web")}, nonce: eds.responses.lastNonce}
	}
	d.none(d.ask(repeat())) // nothing was sent: an ACK too many
	d.set(changedCluster())
	for _, r := range d.due() {
		if r.kind == envoy.EndpointType {
			d.ack(r)
		}
	}
	d.one(d.ask(repeat()), envoy.EndpointType)
	d.ask(repeat())
	d.none(d.ask(repeat())) // once
}

func TestX30RoutesAreAnsweredForARecreatedListener(t *testing.T) {
	t.Run("sotw", func(t *testing.T) {
		d := fullDrive(t, false)
		rds := d.state.subs[envoy.RouteType]
		d.none(d.ask(request{kind: envoy.RouteType, nonce: rds.responses.lastNonce}))
		d.one(d.ask(request{kind: envoy.RouteType, names: []string{"80"}, nonce: rds.responses.lastNonce}), envoy.RouteType)
	})
	t.Run("delta", func(t *testing.T) {
		d := fullDrive(t, true)
		d.one(d.ask(request{kind: envoy.RouteType, unsubscribe: []string{"80"}, names: []string{"80"}}), envoy.RouteType)
	})
}

// removalDrive has a TCP service with a listener and takes it away.
func removalDrive(t *testing.T, delta bool) (d *drive, listeners *response) {
	d = newDrive(t, delta, sidecarNode(t))
	d.set(service("web", 1), tcpService("db", 5))
	d.start(everyType...)
	d.set(gone("db"))
	return d, d.one(d.due(), envoy.ListenerType)
}

const dbCluster = "outbound|9000||db.shop.svc.cluster.local"

func isGone(r *response, delta bool) bool {
	return delta && slices.Contains(r.removed, dbCluster) || !delta && !r.has(dbCluster)
}

func TestX26ClusterGoesWhenItsListenerIsGone(t *testing.T) {
	bothVariants(t, func(t *testing.T, delta bool) {
		d, listeners := removalDrive(t, delta)
		d.none(d.after(14 * time.Second))
		if r := d.one(d.ack(listeners), envoy.ClusterType); !isGone(r, delta) {
			t.Error("the cluster is still there")
		}
	})
}

func TestClusterGoesWithoutAnAnswerInTheEnd(t *testing.T) {
	bothVariants(t, func(t *testing.T, delta bool) {
		d, _ := removalDrive(t, delta)
		d.none(d.after(14900 * time.Millisecond))
		if r := d.one(d.after(100*time.Millisecond), envoy.ClusterType); !isGone(r, delta) {
			t.Error("the cluster is still there")
		}
	})
}

func TestClusterStaysAfterARefusal(t *testing.T) {
	bothVariants(t, func(t *testing.T, delta bool) {
		d, listeners := removalDrive(t, delta)
		repair := d.one(d.nack(listeners, "no"), envoy.ListenerType)
		d.none(d.after(time.Hour))
		if r := d.one(d.ack(repair), envoy.ClusterType); !isGone(r, delta) {
			t.Error("the cluster is still there")
		}
	})
}

// A type is built from snapshots, or streams know where its resources come from.
func TestK84EveryTypeHasASupply(t *testing.T) {
	for _, row := range envoy.Types() {
		if of, supplied := supplies[row.Type]; supplied == row.Has(envoy.Built) || supplied && of.open == nil {
			t.Errorf("%s is built: %t; it has a supply: %t", row.Type, row.Has(envoy.Built), supplied)
		}
	}
}
