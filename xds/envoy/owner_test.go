package envoy_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy"
)

// dup is a service of the shared hostname dup.example.com; n tells its VIP and its
// endpoint, and the lower it is, the older the service.
func dup(n byte, protocol federation.Protocol, exportTo ...string) *federation.Shard {
	address := "192.0.2." + string('0'+n)
	s := external(5432, protocol, address)
	s.VIPs, s.ExportTo = vips("198.51.100."+string('0'+n)+"/32"), exportTo
	s.Created = time.Date(2020, 1, int(n), 0, 0, 0, 0, time.UTC)
	return s
}

func inNamespace(namespace string) federation.ServiceKey {
	return federation.ServiceKey{Hostname: "dup.example.com", Namespace: namespace}
}

func sidecarIn(t *testing.T, namespace string) envoy.Node {
	return parse(t, "sidecar~10.0.0.9~client."+namespace+"~"+namespace+".svc.cluster.local",
		map[string]any{"CLUSTER_ID": "c1", "NAMESPACE": namespace})
}

// One hostname in several namespaces is, for each caller, the service of its own
// namespace, else the oldest that it sees.
func TestR22TheOwnNamespaceComesFirst(t *testing.T) {
	for _, protocol := range []federation.Protocol{federation.TCP, federation.HTTP} {
		w := newFixture().attach("c1", "").
			say("c1", inNamespace("other"), dup(2, protocol)).
			say("c1", inNamespace("shop"), dup(3, protocol)).
			say("c1", inNamespace("private"), dup(4, protocol, ".")).
			say("c1", inNamespace("shared"), dup(1, protocol, "guest"))
		for namespace, want := range map[string]string{
			"other": "192.0.2.2", "shop": "192.0.2.3", "private": "192.0.2.4", "guest": "192.0.2.1", "elsewhere": "192.0.2.2",
		} {
			built := build(t, envoy.EndpointType, sidecarIn(t, namespace), w.snapshot)
			a, _ := find[*endpointv3.ClusterLoadAssignment](t, built, "outbound|5432||dup.example.com")
			if got := list(a); !slices.Equal(got, []string{want + ":5432 HEALTHY"}) {
				t.Errorf("%s: callers in %s are sent to %q, want %s", protocol, namespace, got, want)
			}
		}
	}
}

// So it is for the gateways of a namespace, for which services whose callers choose the endpoint are built apart.
func TestR22TheOwnNamespaceComesFirstForGateways(t *testing.T) {
	everyones := dup(2, federation.TCP)
	everyones.Resolution = federation.Passthrough
	w := newFixture().attach("c1", "").
		say("c1", inNamespace("other"), everyones).
		say("c1", inNamespace("shop"), dup(3, federation.TCP, "."))
	for namespace, want := range map[string]string{"shop": "192.0.2.3", "elsewhere": "192.0.2.2"} {
		n := parse(t, "router~10.0.0.9~gw."+namespace+"~"+namespace+".svc.cluster.local",
			map[string]any{"CLUSTER_ID": "c1", "NAMESPACE": namespace})
		built := build(t, envoy.EndpointType, n, w.snapshot)
		a, _ := find[*endpointv3.ClusterLoadAssignment](t, built, "outbound|5432||dup.example.com")
		if got := list(a); !slices.Equal(got, []string{want + ":5432 HEALTHY"}) {
			t.Errorf("gateways of %s send to %q, want %s", namespace, got, want)
		}
	}
}

// The VIP of the service that a caller's own namespace replaces does not lead to the
// replacement; it goes on as if the service did not exist.
func TestR22VIPsOfReplacedServicesGoOn(t *testing.T) {
	w := newFixture().attach("c1", "").say("c1", inNamespace("other"), dup(2, federation.TCP)).say("c1",
		inNamespace("shop"), dup(3, federation.TCP, "."))
	for listener, want := range map[string]string{
		"198.51.100.3_5432": "outbound|5432||dup.example.com",
		"198.51.100.2_5432": "PassthroughCluster",
	} {
		if got := leadsTo(t, w.snapshot, sidecarIn(t, "shop"), listener); got != want {
			t.Errorf("in shop, %s leads to %s, want %s", listener, got, want)
		}
	}
	listeners := build(t, envoy.ListenerType, sidecarIn(t, "other"), w.snapshot)
	if got, _ := find[*listenerv3.Listener](t, listeners, "198.51.100.2_5432"); got == nil ||
		slices.Contains(namesOf(listeners), "198.51.100.3_5432") {
		t.Errorf("in other, there are the listeners %q", namesOf(listeners))
	}
}

// TestR22NoEntryTakesTheHostnameOfADiscoveredService: a ServiceEntry of another namespace
// does not, however old it is; one of the caller's own namespace still comes first.
func TestR22NoEntryTakesTheHostnameOfADiscoveredService(t *testing.T) {
	for _, protocol := range []federation.Protocol{federation.TCP, federation.HTTP} {
		w := newFixture().attach("c1", "").say("c1", inNamespace("shop"), dup(2, protocol)).apply(federation.Edit{
			Source: federation.ShardKey{Cluster: "hub", Provider: federation.External},
			Clusters: federation.Delta[federation.ClusterID,
				federation.ClusterSpec]{Set: map[federation.ClusterID]federation.ClusterSpec{"hub": {Provider: federation.External}}},
			Services: federation.Delta[federation.ServiceKey,
				*federation.Shard]{Set: map[federation.ServiceKey]*federation.Shard{inNamespace("other"): dup(1, protocol)}},
		})
		for namespace, want := range map[string]string{"shop": "192.0.2.2", "elsewhere": "192.0.2.2", "other": "192.0.2.1"} {
			a, reasons := find[*endpointv3.ClusterLoadAssignment](t, build(t, envoy.EndpointType, sidecarIn(t, namespace), w.snapshot),
				"outbound|5432||dup.example.com")
			if got := list(a); !slices.Equal(got, []string{want + ":5432 HEALTHY"}) {
				t.Errorf("%s: callers in %s are sent to %q, want %s", protocol, namespace, got, want)
			}
			if namespace == "elsewhere" && (len(reasons) != 1 || reasons[0].Service != inNamespace("other") ||
				!strings.Contains(reasons[0].Message, "a service of a cluster")) {
				t.Errorf("%s: the reasons are %v", protocol, reasons)
			}
		}
	}
}

// TestR22NoEntryTakesTheShortNamesOfAnothersServices: the callers of a namespace reach its services by the names that
// their resolver completes, whatever hosts the ServiceEntries of other namespaces have. Entries of the own namespace may
// have these names.
func TestR22NoEntryTakesTheShortNamesOfAnothersServices(t *testing.T) {
	w := newFixture().attach("c1", "").say("c1", webKey, httpOn(80, "10.1.0.1/32"))
	names := []federation.Hostname{"web", "web.shop", "Web.Shop.svc"}
	for _, name := range names {
		w.say("External", federation.ServiceKey{Hostname: name, Namespace: "evil"}, httpOn(80))
	}
	for _, name := range names {
		if got := routesTo(t, w, client(t), strings.ToLower(string(name))); got != webCluster {
			t.Errorf("requests to %s go to %q", name, got)
		}
	}
	w.say("External", federation.ServiceKey{Hostname: "web", Namespace: "shop"}, httpOn(80))
	if got := routesTo(t, w, client(t), "web"); got != "outbound|80||web" {
		t.Errorf("the namespace's own entry does not have its host: requests go to %q", got)
	}
}
