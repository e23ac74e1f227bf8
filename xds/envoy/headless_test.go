package envoy_test

import (
	"slices"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

const (
	databaseHost    = "db.shop.svc.cluster.local"
	databaseCluster = "outbound|9000||" + databaseHost
)

// database is a headless service with a TCP port and an HTTP port; its pods have
// the account shop/db and take mutual TLS.
func database(pods ...string) *federation.Shard {
	shard := &federation.Shard{
		Resolution: federation.Passthrough,
		Ports: []federation.Port{
			{Name: "tcp-db", Number: 9000, Protocol: federation.TCP},
			{Name: "http", Number: 8080, Protocol: federation.HTTP},
		},
	}
	for _, text := range pods {
		name, address, _ := strings.Cut(text, "=")
		e := at(address, 8080)
		e.Ports = append(e.Ports, federation.EndpointPort{Name: "tcp-db", Number: 9000})
		e.Hostname, e.Workload = name, "shop/"+name
		e.ServiceAccount, e.TLSMode = "shop/db", federation.MutualTLS
		shard.Endpoints = append(shard.Endpoints, e)
	}
	return shard
}

// in puts all pods into the network.
func in(network federation.NetworkID, shard *federation.Shard) *federation.Shard {
	for i := range shard.Endpoints {
		shard.Endpoints[i].Network = network
	}
	return shard
}

// meshClient is a sidecar with an identity in cluster c1.
func meshClient(t testing.TB) envoy.Node {
	return parse(t, "sidecar~10.0.0.9~client.shop~shop.svc.cluster.local", map[string]any{
		"CLUSTER_ID": "c1", "NAMESPACE": "shop", "IDENTITY_SOURCE": "ads", "DNS_CAPTURE": "true",
	})
}

// databaseTLS is the cluster's TLS towards the pods, nil where there is none.
func databaseTLS(t *testing.T, w *fixture, n envoy.Node) (*tlsv3.UpstreamTlsContext, []envoy.Reason) {
	t.Helper()
	c, reasons := find[*clusterv3.Cluster](t, build(t, envoy.ClusterType, n, w.snapshot), databaseCluster)
	if c.GetType() != clusterv3.Cluster_ORIGINAL_DST {
		t.Errorf("the cluster's type is %s", c.GetType())
	}
	if c.GetTransportSocket() == nil {
		return nil, reasons
	}
	socket := &tlsv3.UpstreamTlsContext{}
	if err := c.GetTransportSocket().GetTypedConfig().UnmarshalTo(socket); err != nil {
		t.Fatal(err)
	}
	return socket, reasons
}

// TestR81HeadlessServicesAreCalledByMutualTLS: callers of a headless service hold
// its pods to the accounts of the service.
func TestR81HeadlessServicesAreCalledByMutualTLS(t *testing.T) {
	w := newFixture().attach("c1", "").say("c1", key(databaseHost), database("db-0=10.0.0.1", "db-1=10.0.0.2"))
	socket, _ := databaseTLS(t, w, meshClient(t))
	if socket == nil {
		t.Fatal("connections are plain text")
	}
	names := socket.GetCommonTlsContext().GetCombinedValidationContext().GetDefaultValidationContext().GetMatchTypedSubjectAltNames()
	if len(names) != 1 || names[0].GetMatcher().GetExact() != "spiffe://cluster.local/ns/shop/sa/db" {
		t.Errorf("the pods may be %v", names)
	}
	if want := "outbound_.9000_._." + databaseHost; socket.GetSni() != want {
		t.Errorf("connections ask for %q, want %q", socket.GetSni(), want)
	}
	if socket, _ := databaseTLS(t, w, client(t)); socket != nil {
		t.Error("a proxy without an identity uses TLS")
	}
}

// TestR81AHeadlessServiceWithoutPodsStaysMutual: a StatefulSet that is restarted
// does not turn its callers to plain text.
func TestR81AHeadlessServiceWithoutPodsStaysMutual(t *testing.T) {
	w := newFixture().attach("c1", "").say("c1", key(databaseHost), database("db-0=10.0.0.1")).say("c1", key(databaseHost), database())
	if socket, _ := databaseTLS(t, w, meshClient(t)); socket == nil {
		t.Error("connections are plain text as soon as no pod is ready")
	}
}

// TestR81OnePlainPodMakesAHeadlessServicePlain: Envoy cannot tell dialed pods
// apart. A reason says so, and a DestinationRule decides otherwise.
func TestR81OnePlainPodMakesAHeadlessServicePlain(t *testing.T) {
	shard := database("db-0=10.0.0.1", "db-1=10.0.0.2")
	shard.Endpoints[1].TLSMode = ""
	w := newFixture().attach("c1", "").say("c1", key(databaseHost), shard)
	socket, reasons := databaseTLS(t, w, meshClient(t))
	if socket != nil {
		t.Error("a pod that does not take mutual TLS is called with it")
	}
	if len(reasons) != 1 || reasons[0].Code != resource.ReasonNoMutualTLS || !strings.Contains(reasons[0].Message, "10.0.0.2") {
		t.Errorf("the reasons are %v", reasons)
	}
	w.config(t, "kind: DestinationRule\nmetadata: {name: db, namespace: shop}\nspec: {host: "+databaseHost+
		", trafficPolicy: {tls: {mode: ISTIO_MUTUAL}}}")
	if socket, _ := databaseTLS(t, w, meshClient(t)); socket == nil {
		t.Error("a DestinationRule with ISTIO_MUTUAL is not heeded")
	}
}

// TestR81EachPodHasAListenerForTCP: at the port where the pod listens; those of
// a network behind a gateway have none, since the address is another machine's.
func TestR81EachPodHasAListenerForTCP(t *testing.T) {
	shard := database("db-0=10.0.0.1", "db-1=10.0.0.2")
	shard.Endpoints[1].Ports[1].Number = 9001
	n := parse(t, "sidecar~10.0.0.9~client.shop~shop.svc.cluster.local", map[string]any{"CLUSTER_ID": "c1"})
	w := newFixture().attach("c1", "n1").attach("c2", "n2").attach("c3", "n3").network("n2", gatewaysAt("192.0.2.1")).
		say("c1", key(databaseHost), in("n1", shard)).
		say("c2", key(databaseHost), in("n2", database("db-0=10.2.0.1"))).
		say("c3", key(databaseHost), in("n3", database("db-0=10.3.0.1")))
	expectListeners(t, w.snapshot, n, "0.0.0.0_8080", "10.0.0.1_9000", "10.0.0.2_9001", "10.3.0.1_9000")
	if got := leadsTo(t, w.snapshot, n, "10.0.0.2_9001"); got != databaseCluster {
		t.Errorf("the pod's listener leads to %s", got)
	}
}

// TestR81OneListenerForTwoHeadlessServicesOfAPod: the first has it.
func TestR81OneListenerForTwoHeadlessServicesOfAPod(t *testing.T) {
	w := newFixture().attach("c1", "").say("c1", key(databaseHost), database("db-0=10.0.0.1")).
		say("c1", key("peers.shop.svc.cluster.local"), database("db-0=10.0.0.1"))
	if got := leadsTo(t, w.snapshot, client(t), "10.0.0.1_9000"); got != databaseCluster {
		t.Errorf("the pod's listener leads to %s", got)
	}
}

// TestR81NoListenerForPodsAtLoopback: connections there stay within the workload, and
// the address is that of the sidecar's own listeners.
func TestR81NoListenerForPodsAtLoopback(t *testing.T) {
	w := newFixture().attach("c1", "").say("c1", key(databaseHost), database("db-0=127.0.0.1", "db-1=10.0.0.2"))
	expectListeners(t, w.snapshot, client(t), "0.0.0.0_8080", "10.0.0.2_9000")
}

// TestR81PodsOfHeadlessServicesHaveNames: in routes under every name of the
// service, and for proxies that answer DNS requests.
func TestR81PodsOfHeadlessServicesHaveNames(t *testing.T) {
	w := newFixture().attach("c1", "").say("c1", key(databaseHost), database("db-0=10.0.0.1", "db-1=10.0.0.2"))
	got := domainsOf(t, w.snapshot, client(t), "8080")[databaseHost+":8080"]
	for _, name := range []string{"db", "db.shop", "db.shop.svc", databaseHost} {
		if !slices.Contains(got, name) || !slices.Contains(got, "*."+name) {
			t.Errorf("%s or its pods have no route: %q", name, got)
		}
	}
	if got, want := answered(t, w, "c1"), "db-0."+databaseHost+" 10.0.0.1, db-1."+databaseHost+" 10.0.0.2, "+
		databaseHost+" 10.0.0.1"; got != want {
		t.Errorf("DNS answers %s, want %s", got, want)
	}
}

// TestR81MorePodsThanEnvoyAnswersWith: peers that find each other by DNS need all
// of them, which the cluster's own DNS knows.
func TestR81MorePodsThanEnvoyAnswersWith(t *testing.T) {
	var pods []string
	for _, n := range "123456789" {
		pods = append(pods, "db-"+string(n)+"=10.0.0."+string(n))
	}
	w := newFixture().attach("c1", "").say("c1", key(databaseHost), database(pods...))
	if got := answered(t, w, "c1"); strings.Contains(got, " "+databaseHost+" ") || !strings.Contains(got, "db-9."+databaseHost+" 10.0.0.9") {
		t.Errorf("DNS answers %s", got)
	}
}
