package graph_test

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/fleet"
)

const (
	cds = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
	eds = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"
	lds = "type.googleapis.com/envoy.config.listener.v3.Listener"

	sidecarID = "sidecar~10.0.0.1~web-1.shop~shop.svc.cluster.local"
	routerID  = "router~10.9.0.1~gw-1.edge~edge.svc.cluster.local"
)

var (
	first  = federation.ShardKey{Cluster: "c1", Provider: federation.Kubernetes}
	second = federation.ShardKey{Cluster: "c2", Provider: federation.Kubernetes}
	web    = federation.ServiceKey{Hostname: "web.shop.svc.cluster.local", Namespace: "shop"}
)

func shard(vip string, endpoints ...federation.Endpoint) *federation.Shard {
	return &federation.Shard{
		Ports: []federation.Port{{Name: "http", Number: 80, Protocol: federation.HTTP}},
		VIPs:  []netip.Prefix{netip.MustParsePrefix(vip)}, Endpoints: endpoints,
	}
}

// endpoint is in the zone that the last digit of its address names.
func endpoint(network federation.NetworkID, address string) federation.Endpoint {
	return federation.Endpoint{
		Address: federation.IPAddress(netip.MustParseAddr(address)), Ports: []federation.EndpointPort{{Name: "http", Number: 8080}},
		Network: network, Locality: federation.Locality{Region: "r1", Zone: "z" + address[len(address)-1:]}, Health: federation.Healthy,
	}
}

func labelled(endpoint federation.Endpoint, version string) federation.Endpoint {
	endpoint.Labels, endpoint.ServiceAccount = map[string]string{"app": "web", "v": version}, "spiffe://shop/web"
	return endpoint
}

// services are shop/web in two clusters on two networks with different VIPs and
// protocols, one of the same name in another namespace, and 120 more in the second.
func services() (ofFirst, ofSecond map[federation.ServiceKey]*federation.Shard) {
	draining := labelled(endpoint("n2", "10.0.1.1"), "2")
	draining.Health, draining.Weight = federation.Draining, 3
	ofFirst = map[federation.ServiceKey]*federation.Shard{
		web: shard("10.1.0.1/32", labelled(endpoint("n1", "10.0.0.1"), "1"), labelled(endpoint("n1", "10.0.0.2"), "1")),
	}
	ofSecond = map[federation.ServiceKey]*federation.Shard{
		web:                                     shard("10.2.0.0/24", draining),
		{Hostname: web.Hostname, Namespace: ""}: shard("10.2.9.9/32"),
	}
	ofSecond[web].Ports[0].Protocol = federation.TCP
	for i := range 120 {
		key := federation.ServiceKey{Hostname: federation.Hostname(fmt.Sprintf("s%03d.load.svc.cluster.local", i)), Namespace: "load"}
		ofSecond[key] = shard(fmt.Sprintf("10.3.0.%d/32", i), endpoint("n2", fmt.Sprintf("10.0.2.%d", i)))
	}
	return ofFirst, ofSecond
}

func fixture(t testing.TB) *federation.Snapshot {
	t.Helper()
	since := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	ofFirst, ofSecond := services()
	portRange := federation.Problem{Code: "PORT_RANGE", Object: "Service load/x", Field: "spec.ports[0]", Message: "port 70000"}
	snapshot := federation.Empty()
	for _, edit := range []federation.Edit{
		{Clusters: federation.Delta[federation.ClusterID, federation.ClusterSpec]{Set: map[federation.ClusterID]federation.ClusterSpec{
			"c1": {Provider: federation.Kubernetes, Network: "n1", Precedence: 10}, "c2": {Provider: federation.Kubernetes, Network: "n2"},
		}}},
		{
			Source: first, Services: federation.Delta[federation.ServiceKey, *federation.Shard]{Full: true, Set: ofFirst},
			Status: &federation.RegistryStatus{Phase: federation.Ready, Since: since},
		},
		{
			Source: second, Services: federation.Delta[federation.ServiceKey, *federation.Shard]{Full: true, Set: ofSecond},
			Status:   &federation.RegistryStatus{Phase: federation.Stale, Since: since, Message: "the link is lost", LastKnownGood: since},
			Problems: federation.Delta[string, federation.Problem]{Set: map[string]federation.Problem{"a": portRange}},
		},
	} {
		snapshot, _ = federation.Next(snapshot, edit)
	}
	return snapshot
}

// proxies are a sidecar that has refused its endpoints, and a router that is
// connected twice and has asked for nothing yet.
func proxies() *fleet.Fleet {
	connected := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	all := fleet.New()
	sidecar := all.Connect(fleet.Proxy{
		NodeID: sidecarID, Type: "sidecar", RouterMode: "standard", Cluster: "c1", Addresses: []netip.Addr{netip.MustParseAddr("10.0.0.1")},
		Namespace: "shop", Labels: map[string]string{"app": "web"}, UserAgent: "envoy", Version: "1.40.0", Protocol: fleet.Delta,
		ConnectedAt: connected, HTTPProxyPort: 15080,
	})
	later := connected.Add(time.Second)
	sidecar.Report(cds, fleet.Sync{State: fleet.Synced, VersionSent: "a1", VersionAcked: "a1", Since: later})
	sidecar.Report(eds, fleet.Sync{State: fleet.Nacked, VersionSent: "b2", VersionAcked: "b1", LastError: "port 0", Since: later})
	sidecar.Report(lds, fleet.Sync{State: fleet.Pending, VersionSent: "c1", Since: later})
	router := fleet.Proxy{
		NodeID: routerID, Type: "router", RouterMode: "sni-dnat", Cluster: "c2", Network: "edge",
		Locality: federation.Locality{Region: "r2", Zone: "z1"}, Protocol: fleet.SotW, ConnectedAt: connected,
	}
	all.Connect(router)
	router.ConnectedAt = later
	all.Connect(router)
	return all
}
