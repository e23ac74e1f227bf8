package envoy_test

import (
	"bufio"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/transport"
)

const (
	farName   = "outbound_.80_._.web.shop.svc.cluster.local"
	farServer = "spiffe://cluster.local/ns/shop/sa/web"
	farClient = "spiffe://cluster.local/ns/shop/sa/client"
	gateway   = "192.168.100.3"
)

// bridge is two networks with the same addresses: a client with its sidecar in
// the one, in the other a server with its sidecar behind a router in sni-dnat
// mode, and a network between that only the client and the router are in.
type bridge struct {
	t         *testing.T
	authority *testbed.Authority
	wan       *testbed.Network
	client    *testbed.Namespace
	server    *testbed.Namespace
	far       *testbed.Wire // what the server's pod sees, its loopback included
	between   *testbed.Wire // what the router sees
	router    *testbed.Envoy
	sidecar   *testbed.Envoy // the server's
}

func newBridge(t *testing.T) *bridge {
	b := &bridge{t: t, authority: testbed.NewAuthority(t, "mesh"), wan: testbed.NewNetwork(t, "wan", "192.168.100.0/24")}
	near, far := testbed.NewNetwork(t, "near", "10.1.0.0/24"), testbed.NewNetwork(t, "far", "10.1.0.0/24")
	decoy := testbed.NewNamespace(t, "decoy")
	decoy.Join(near, "10.1.0.2")
	testbed.StartEcho(t, testbed.EchoOptions{Name: "decoy", Namespace: decoy, HTTP: []int{8080, 8081}, TCP: []int{9000}})

	b.server = testbed.NewNamespace(t, "server")
	b.server.Join(far, "10.1.0.2")
	testbed.StartEcho(t, testbed.EchoOptions{Name: "server", Namespace: b.server, HTTP: []int{8080, 8081}, TCP: []int{9000}})
	b.sidecar = b.start(b.server, "sidecar~10.1.0.2~web.shop~shop.svc.cluster.local", "c2", farServer)
	b.server.Capture(testbed.ProxyUID)
	b.far = b.server.Sniff()

	pod := testbed.NewNamespace(t, "router")
	pod.Join(far, "10.1.0.8")
	pod.Join(b.wan, gateway)
	b.between = pod.Sniff()
	b.router = b.start(pod, "router~10.1.0.8~gw.istio-system~istio-system.svc.cluster.local", "c2",
		"spiffe://cluster.local/ns/istio-system/sa/gw")

	b.client = testbed.NewNamespace(t, "client")
	b.client.Join(near, "10.1.0.9")
	b.client.Join(b.wan, "192.168.100.9")
	b.start(b.client, "sidecar~10.1.0.9~client.shop~shop.svc.cluster.local", "c1", farClient)
	b.client.Capture(testbed.ProxyUID)
	return b
}

// fixture is the mesh as proxies of one cluster see it: those of c1 see the
// gateway in the place of the far endpoint.
func bridgeFixture(t *testing.T, cluster federation.ClusterID) *federation.Snapshot {
	endpoint := federation.Endpoint{
		Address: federation.IPAddress(netip.MustParseAddr("10.1.0.2")), Network: "n2", TLSMode: federation.MutualTLS, ServiceAccount: "shop/web",
		Ports: []federation.EndpointPort{{Name: "http", Number: 8080}, {Name: "http2", Number: 8081}, {Name: "tcp", Number: 9000}},
	}
	if cluster == "c1" {
		endpoint.Address, endpoint.Network = federation.IPAddress(netip.MustParseAddr(gateway)), "n1"
		for i := range endpoint.Ports {
			endpoint.Ports[i].Number = 15443
		}
	}
	shard := &federation.Shard{
		Ports: []federation.Port{
			{Name: "http", Number: 80, Protocol: federation.HTTP},
			{Name: "http2", Number: 81, Protocol: federation.HTTP2},
			{Name: "tcp", Number: 90, Protocol: federation.TCP},
		},
		VIPs:      vips("10.96.0.1/32"),
		Endpoints: []federation.Endpoint{endpoint},
	}
	return newFixture().attach("c1", "n1").attach("c2", "n2").config(t, eastWest).say("c2", webKey, shard).snapshot
}

func (b *bridge) start(ns *testbed.Namespace, id string, cluster federation.ClusterID, identity string) *testbed.Envoy {
	n := parse(b.t, id, map[string]any{
		"CLUSTER_ID": string(cluster), "IDENTITY_SOURCE": "ads", "ROUTER_MODE": "sni-dnat", "LABELS": map[string]any{"istio": "eastwest"},
	})
	chain, key := b.authority.Issue(testbed.Subject{Hosts: []string{identity}})
	config := withSecrets(b.t, sidecarConfig(b.t, n, bridgeFixture(b.t, cluster)), transport.KeyMaterial{
		Chain: chain, Key: key,
		Bundles: map[string][]byte{"cluster.local": b.authority.PEM, "other": b.authority.PEM},
	})
	proxy := testbed.StartEnvoy(b.t, testbed.EnvoyOptions{
		Name:   strings.ReplaceAll(id[:12], "~", "-") + string(cluster),
		Config: config, Namespace: ns,
	})
	proxy.WaitReady(time.Minute)
	return proxy
}

// withSecrets gives the proxy what it would ask the hub for.
func withSecrets(t *testing.T, config []byte, k transport.KeyMaterial) []byte {
	t.Helper()
	bundle := k
	bundle.Key = nil
	return withNamedSecrets(t, config, map[string]transport.KeyMaterial{transport.OwnCertificate: k, transport.OwnRoots: bundle})
}

// withNamedSecrets has the bootstrap hold the secrets, which proxies else ask for.
func withNamedSecrets(t *testing.T, config []byte, all map[string]transport.KeyMaterial) []byte {
	t.Helper()
	var root map[string]any
	if err := json.Unmarshal(config, &root); err != nil {
		t.Fatal(err)
	}
	forgetSource(root)
	var secrets []any
	for name, material := range all {
		secrets = append(secrets, jsonOf(t, transport.NewSecret(name, material)))
	}
	root["staticResources"].(map[string]any)["secrets"] = secrets
	out, err := json.Marshal(root)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// forgetSource has secrets be those of the bootstrap.
func forgetSource(at any) {
	switch v := at.(type) {
	case []any:
		for _, e := range v {
			forgetSource(e)
		}
	case map[string]any:
		if name, _ := v["name"].(string); transport.IsOwn(name) || transport.IsFile(name) {
			delete(v, "sdsConfig")
		}
		for _, e := range v {
			forgetSource(e)
		}
	}
}

// A request crosses from one network into another with the same addresses, in
// every protocol, and nobody between can read it.
func TestRequestsCrossTheBridge(t *testing.T) {
	b := newBridge(t)
	const marker = "a-word-that-nobody-may-read"
	for url, protocol := range map[string]string{"http://10.96.0.1/" + marker: "HTTP/1.1", "http://10.96.0.1:81/" + marker: "HTTP/2.0"} {
		response := b.client.Get(url)
		if response.Err != nil || response.Status != 200 {
			t.Fatalf("%s: %d %v %s", url, response.Status, response.Err, response.Body)
		}
		answer := response.Echo(t)
		if answer.Name != "server" || answer.Protocol != protocol {
			t.Errorf("%s is answered by %s over %s, want the server over %s", url, answer.Name, answer.Protocol, protocol)
		}
		if caller := answer.Header.Get("X-Forwarded-Client-Cert"); !strings.Contains(caller, farClient) {
			t.Errorf("the server sees the caller %q", caller)
		}
	}
	if got := sayLine(t, b.client, "10.96.0.1:90"); got != "server hello\n" {
		t.Errorf("the TCP service answers %q", got)
	}
	if !b.far.Saw(marker) {
		t.Error("the sniffer of the server's pod did not see the request on its loopback: it sees nothing at all")
	}
	if b.between.Saw(marker) || b.between.Saw("server hello") {
		t.Error("the router saw a request in plain text")
	}
	if n := b.router.Stat("listener.0.0.0.0_15443.no_filter_chain_match"); n != 0 {
		t.Errorf("%d connections found no chain", n)
	}
}

// stranger is a caller at the gateway.
type stranger struct {
	config  *tls.Config // nil: plain text
	counted string      // the statistic that rises, at the router or the server's sidecar
}

func (b *bridge) strangers(marker string) map[string]stranger {
	const noChain, sidecar = "listener.0.0.0.0_15443.no_filter_chain_match", "listener.0.0.0.0_15006.ssl."
	foreign := testbed.NewAuthority(b.t, "foreign")
	as := func(a *testbed.Authority, name string, subject testbed.Subject) *tls.Config {
		config := a.TLS(subject)
		config.ServerName, config.InsecureSkipVerify, config.NextProtos = name, true, []string{"istio"}
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { // whatever the server asks for
			return &config.Certificates[0], nil
		}
		return config
	}
	mine := testbed.Subject{Hosts: []string{farClient}}
	old := testbed.Subject{Hosts: []string{farClient}, NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(-time.Hour)}
	nobody := as(b.authority, farName, mine)
	nobody.Certificates, nobody.GetClientCertificate = nil, nil
	other := as(b.authority, farName, mine)
	other.NextProtos = []string{"http/1.1"}
	all := map[string]stranger{
		"plain text":          {nil, noChain},
		"no SNI":              {as(b.authority, "", mine), noChain},
		"ALPN of no mesh":     {other, noChain},
		"a foreign authority": {as(foreign, farName, mine), sidecar + "fail_verify_error"},
		"a foreign trust domain": {
			as(b.authority, farName, testbed.Subject{Hosts: []string{"spiffe://other/ns/shop/sa/client"}}),
			sidecar + "fail_verify_san",
		},
		"an old certificate": {as(b.authority, farName, old), sidecar + "fail_verify_error"},
		"no certificate":     {nobody, sidecar + "fail_verify_no_cert"},
	}
	for _, name := range []string{
		"outbound_.80_._.none.shop.svc.cluster.local", "outbound_.81_.v9_.web.shop.svc.cluster.local", "passthroughcluster", "blackholecluster",
		"hub", "outbound|80||web.shop.svc.cluster.local", "web.shop.svc.cluster.local", "*.local",
	} {
		all["SNI "+name] = stranger{as(b.authority, name, mine), noChain}
	}
	return all
}

// A client that does not belong to the mesh, or asks for what the Gateway does not
// admit, is refused and counted, and the workload does not see a byte of it.
func TestStrangersAreRefusedAtTheGateway(t *testing.T) {
	b := newBridge(t)
	outside := testbed.NewNamespace(t, "outside")
	outside.Join(b.wan, "192.168.100.66")
	welcome := b.authority.TLS(testbed.Subject{Hosts: []string{farClient}})
	welcome.ServerName, welcome.InsecureSkipVerify, welcome.NextProtos = farName, true, []string{"istio"}
	if got := b.call(outside, welcome, "welcome"); !strings.HasPrefix(got, "HTTP/1.1 200") {
		t.Fatalf("a caller of the mesh is answered %q", got)
	}
	if !b.far.Saw("welcome") {
		t.Fatal("the request of a caller of the mesh was not seen at the workload")
	}
	for name, s := range b.strangers("stranger") {
		t.Run(name, func(t *testing.T) {
			before := b.router.Stat(s.counted) + b.sidecar.Stat(s.counted)
			if got := b.call(outside, s.config, "stranger"); got != "" {
				t.Errorf("it is answered %q", got)
			}
			testbed.WaitFor(t, time.Minute, s.counted+" to rise", func() error {
				if now := b.router.Stat(s.counted) + b.sidecar.Stat(s.counted); now <= before {
					return fmt.Errorf("it is %d", now)
				}
				return nil
			})
		})
	}
	if b.far.Saw("stranger") {
		t.Error("bytes of a stranger came to the workload's pod")
	}
}

// call sends a request for the path and returns the first line of the answer,
// nothing where the connection fails.
func (b *bridge) call(from *testbed.Namespace, config *tls.Config, path string) string {
	b.t.Helper()
	conn, err := from.DialContext(b.t.Context(), "tcp", net.JoinHostPort(gateway, "15443"))
	if err != nil {
		b.t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		b.t.Fatal(err)
	}
	if config != nil {
		conn = tls.Client(conn, config)
	}
	request, err := http.NewRequest(http.MethodGet, "http://web.shop.svc.cluster.local/"+path, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	if request.Write(conn) != nil {
		return ""
	}
	line, _ := bufio.NewReader(conn).ReadString('\n')
	return line
}

func jsonOf(t *testing.T, m proto.Message) any {
	t.Helper()
	text, err := protojson.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		t.Fatal(err)
	}
	return value
}
