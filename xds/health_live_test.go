package xds

import (
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/xds/envoy/transport"
)

// bridge is a router in one network that probes, two gateways of another, and a
// workload behind them that ends mutual TLS.
type bridge struct {
	*real
	found    *reports
	link     *testbed.Network
	gateways map[string]*remote // by address
}

// remote is a gateway of the other network.
type remote struct {
	*testbed.Envoy
	namespace *testbed.Namespace
}

const probedName = "outbound_.80_._.web.shop.svc.cluster.local"

// passing is a gateway that passes connections for the name on to the workload.
const passing = `
static_resources:
  listeners:
  - name: entry
    address: {socket_address: {address: 0.0.0.0, port_value: 15443}}
    listener_filters: [{name: envoy.filters.listener.tls_inspector, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.listener.tls_inspector.v3.TlsInspector}}]
    filter_chains:
    - filter_chain_match: {transport_protocol: tls, server_names: ["SNI"], application_protocols: [istio]}
      filters: [{name: envoy.filters.network.tcp_proxy, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy, stat_prefix: entry, cluster: behind}}]
  clusters:
  - name: behind
    load_assignment: {cluster_name: behind, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: WORKLOAD, port_value: PORT}}}}]}]}
`

func newBridge(t *testing.T) *bridge {
	dir, err := os.MkdirTemp("", "bridge")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	os.Chmod(dir, 0o755)
	a := federation.NewAggregate(nil)
	v := newFakeSecrets()
	b := &bridge{
		real: &real{
			t: t, writer: a.Open(federation.ShardKey{Cluster: "c2", Provider: federation.Kubernetes}), fleet: fleet.New(),
			socket: filepath.Join(dir, "hub"),
		},
		found: newReports(), link: testbed.NewNetwork(t, "bridge", "192.0.2.0/24"), gateways: map[string]*remote{},
	}
	authority := testbed.NewAuthority(t, "mesh")
	for _, who := range []bool{false, true} {
		ref := SecretRef{Cluster: "c1", Namespace: "shop", Authorities: who, Workload: "spiffe://mesh.example/ns/shop/sa/", Node: router().Id}
		chain, key := authority.Issue(testbed.Subject{Name: "gateway", Hosts: []string{"spiffe://mesh.example/ns/shop/sa/gateway"}})
		v.byRef[ref] = (Secret{Fingerprint: "1", Material: transport.KeyMaterial{Chain: chain, Key: key}})
		if who {
			v.byRef[ref] = Secret{Fingerprint: "1", Material: transport.KeyMaterial{Authorities: authority.PEM}}
		}
	}
	b.behind(authority)
	(&hub{aggregate: a}).gatewaysIn("shop")
	operator := a.Open(federation.ShardKey{Provider: federation.Operator})
	operator.Update(federation.Edit{Clusters: federation.Delta[federation.ClusterID, federation.ClusterSpec]{
		Set: map[federation.ClusterID]federation.ClusterSpec{"c1": {Provider: federation.Kubernetes, Network: "n1"}},
	}})
	operator.Close()
	network := (&hub{aggregate: a}).gatewaysOf
	network("n2", "192.0.2.11", "192.0.2.12")
	b.server = New(Options{
		Snapshots: a, Fleet: b.fleet, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Probes: b.found, Secrets: v, SecretsOnSocket: true, Access: &gatekeeper{},
	})
	b.serve()
	t.Cleanup(func() { b.stop() })
	b.prober()
	return b
}

// behind starts the workload, which wants certificates of the mesh, and the
// gateways in front of it.
func (b *bridge) behind(authority *testbed.Authority) {
	inside := testbed.NewNetwork(b.t, "inside", "10.2.0.0/24")
	pod := testbed.NewNamespace(b.t, "web")
	at := pod.Join(inside, "10.2.0.9")
	own := authority.TLS(testbed.Subject{Name: "web", Hosts: []string{"spiffe://mesh.example/ns/shop/sa/web"}})
	own.ClientAuth, own.ClientCAs, own.NextProtos = tls.RequireAndVerifyClientCert, authority.Pool(), []string{"istio", "http/1.1"}
	echo := testbed.StartEcho(b.t, testbed.EchoOptions{Name: "web", Namespace: pod, Address: at, HTTP: []int{0}, TLS: own})
	shard := httpShard()
	shard.Endpoints = []federation.Endpoint{{
		Address: federation.IPAddress(at), Network: "n2", Health: federation.Healthy, TLSMode: federation.MutualTLS,
		Ports: []federation.EndpointPort{{Name: "http", Number: echo.HTTP[0].Port()}},
	}}
	b.set(serviceDelta{Set: map[federation.ServiceKey]*federation.Shard{key("web"): shard}})
	config := strings.NewReplacer("SNI", probedName, "WORKLOAD", at.String(), "PORT", fmt.Sprint(echo.HTTP[0].Port())).Replace(passing)
	for i, address := range []string{"192.0.2.11", "192.0.2.12"} {
		r := &remote{namespace: testbed.NewNamespace(b.t, fmt.Sprint("gateway", i))}
		r.namespace.Join(b.link, address)
		r.namespace.Join(inside, fmt.Sprint("10.2.0.", i+21))
		r.Envoy = testbed.StartEnvoy(b.t, testbed.EnvoyOptions{Name: fmt.Sprint("gateway", i), Config: []byte(config), Namespace: r.namespace})
		r.WaitReady(patience)
		b.gateways[address] = r
	}
}

// prober starts the router that probes.
func (b *bridge) prober() {
	at := testbed.NewNamespace(b.t, "prober")
	at.Join(b.link, "192.0.2.21")
	config := strings.NewReplacer("NODE", router().Id, "API", "DELTA_GRPC", "SOCKET", b.socket,
		"INTERCEPTION_MODE: REDIRECT", "NETWORK: n1, IDENTITY_SOURCE: ads").Replace(bootstrap)
	config += "hds_config: {api_type: GRPC, transport_api_version: V3, grpc_services: [{envoy_grpc: {cluster_name: hub}}]}\n"
	b.envoy = testbed.StartEnvoy(b.t, testbed.EnvoyOptions{Name: "prober", Config: []byte(config), Namespace: at})
	b.envoy.WaitReady(3 * patience)
}

// sees waits until the gateways are found so, and returns how long it took.
func (b *bridge) sees(first, second bool) time.Duration {
	b.t.Helper()
	clock, start := testbed.StartClock(b.t), time.Now()
	reached := map[netip.AddrPort]bool{netip.MustParseAddrPort("192.0.2.11:15443"): first, netip.MustParseAddrPort("192.0.2.12:15443"): second}
	b.found.await(b.t, 1, fmt.Sprintf("n1 %v", reached))
	return clock.Since(start)
}

// TestF85EnvoyFindsDeadGateways: killed, behind a link that swallows everything,
// and accepting without passing anything on; and that they are back. The bounds
// are those of the whole way to EDS, 3 s and 6 s.
func TestF85EnvoyFindsDeadGateways(t *testing.T) {
	b := newBridge(t)
	b.sees(true, true)
	within := func(what string, took, bound time.Duration) {
		t.Helper()
		t.Logf("%s: found after %s", what, took.Round(10*time.Millisecond))
		if took > bound {
			t.Errorf("%s: found after %s, want at most %s", what, took, bound)
		}
	}
	one, two := b.gateways["192.0.2.11"], b.gateways["192.0.2.12"]
	one.Kill()
	within("killed", b.sees(false, true), 2500*time.Millisecond)
	one.Restart()
	b.sees(true, true)
	two.namespace.Cut(b.link)
	within("black hole", b.sees(true, false), 5500*time.Millisecond)
	two.namespace.Mend(b.link)
	within("mended", b.sees(true, true), 5*time.Second)
	two.Pause()
	within("accepts and does not pass on", b.sees(true, false), 5500*time.Millisecond)
	two.Resume()
	b.sees(true, true)
	b.stop() // the hub is gone for a while: the gateway goes on where it was
	b.serve()
	one.Kill()
	b.sees(false, true)
}
