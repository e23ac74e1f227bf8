package xds

import (
	"testing"

	"isthmus.dev/isthmus/xds/envoy"
)

// versions is what a client says that it has after these responses.
func versions(all ...*response) map[string]string {
	have := map[string]string{}
	for _, r := range all {
		for _, res := range r.resources {
			have[res.name] = res.version
		}
	}
	return have
}

// A client that comes back asks for all types at once. Where its cluster changed
// meanwhile, it warms the new one until endpoints come: also where it has the
// right ones already.
func TestX11X27ReconnectAfterAClusterChangedGetsItsEndpoints(t *testing.T) {
	before := newDrive(t, true, sidecarNode(t))
	before.set(service("web", 1), service("other", 2))
	names := []string{cluster("web"), cluster("other")}
	clusters := versions(before.one(before.ask(request{kind: envoy.ClusterType}), envoy.ClusterType))
	endpoints := versions(before.one(before.ask(request{kind: envoy.EndpointType, names: names}), envoy.EndpointType))

	for name, order := range map[string][2]envoy.Type{
		"clusters first":  {envoy.ClusterType, envoy.EndpointType},
		"endpoints first": {envoy.EndpointType, envoy.ClusterType},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDrive(t, true, sidecarNode(t))
			d.set(service("other", 2), changedCluster())
			ask := map[envoy.Type]request{
				envoy.ClusterType:  {kind: envoy.ClusterType, initial: clusters},
				envoy.EndpointType: {kind: envoy.EndpointType, names: names, initial: endpoints},
			}
			all := append(d.ask(ask[order[0]]), d.ask(ask[order[1]])...)
			if got := kinds(all); len(got) != 2 || got[0] != envoy.ClusterType || got[1] != envoy.EndpointType {
				t.Fatalf("got %v", got)
			}
			if r := all[1]; len(r.resources) != 1 || !r.has(cluster("web")) {
				t.Errorf("endpoints of %d clusters came, want those of web alone", len(r.resources))
			}
		})
	}
}

// A cluster that goes and comes back at once is new to the client.
func TestRoutesWaitForAClusterThatIsBackFromRemoval(t *testing.T) {
	bothVariants(t, func(t *testing.T, delta bool) {
		d := fullDrive(t, delta)
		d.set(service("brief", 2))
		d.accept()
		d.set(gone("brief"))
		d.one(d.ack(d.one(d.due(), envoy.RouteType)), envoy.ClusterType) // the removal: no answer comes
		d.set(service("brief", 2))
		back := d.one(d.after(d.state.timing.unanswered), envoy.ClusterType)
		if !back.has(cluster("brief")) {
			t.Fatal("the cluster is not back")
		}
		if routes := d.one(d.ack(back), envoy.RouteType); !routes.resources[0].refs.hasCluster(cluster("brief")) {
			t.Error("the route is not back")
		}
	})
}

func TestX14RequestThatOnlyUnsubscribesIsNoLegacyWildcard(t *testing.T) {
	d := newDrive(t, true, routerNode(t))
	d.set(service("web", 1))
	d.none(d.ask(request{kind: envoy.ClusterType, unsubscribe: []string{"nobody"}}))
}
