package envoy_test

import (
	"crypto/tls"
	"encoding/json"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/transport"
)

const secureGateway = `kind: MeshSettings
metadata: {name: default}
spec: {quicListeners: true}
---
kind: Gateway
metadata: {name: front, namespace: edge}
spec:
  selector: {istio: ingress}
  servers:
  - port: {number: 443, name: strict, protocol: HTTPS}
    hosts: [strict.example.com]
    tls: {mode: MUTUAL, serverCertificate: /web.crt, privateKey: /web.key, caCertificates: /ca.crt}
  - port: {number: 443, name: lenient, protocol: HTTPS}
    hosts: [lenient.example.com]
    tls: {mode: MUTUAL, serverCertificate: /web.crt, privateKey: /web.key, caCertificates: /ca.crt, insecureSkipVerify: true}
  - port: {number: 443, name: inline, protocol: HTTPS}
    hosts: [inline.example.com]
    tls: {mode: MUTUAL, serverCertificate: /web.crt, privateKey: /web.key, caCertificates: AUTHORITIES}
  - port: {number: 443, name: open, protocol: HTTPS}
    hosts: [open.example.com]
    tls: {mode: SIMPLE, serverCertificate: /web.crt, privateKey: /web.key}
  - {port: {number: 53, name: dns, protocol: UDP}, hosts: ["*"]}
---
kind: VirtualService
metadata: {name: web, namespace: shop}
spec:
  hosts: [open.example.com, strict.example.com, lenient.example.com, inline.example.com]
  gateways: [edge/front]
  http: [{route: [{destination: {host: web.shop.svc.cluster.local}}]}]
---
kind: VirtualService
metadata: {name: dns, namespace: shop}
spec:
  hosts: ["*"]
  gateways: [edge/front]
  tcp: [{route: [{destination: {host: web.shop.svc.cluster.local, port: {number: 5300}}}]}]
---
kind: AuthorizationPolicy
metadata: {name: front, namespace: edge}
spec:
  rules:
  - to: [{operation: {paths: [/open]}}]
  - from: [{source: {principals: [cluster.local/ns/shop/sa/web]}}]`

// secureFixture runs the gateway, with a server behind it, and a caller.
func secureFixture(t *testing.T) (caller *testbed.Namespace, authority *testbed.Authority) {
	t.Helper()
	network, authority := testbed.NewNetwork(t, "pods", "10.7.0.0/24"), testbed.NewAuthority(t, "known")
	server, _ := pod(t, network, "10.7.0.2", nil)
	testbed.StartEcho(t, testbed.EchoOptions{Name: "web", Namespace: server, HTTP: []int{8080}})
	echoDatagrams(t, server, "10.7.0.2:5353")
	backend := at("10.7.0.2", 8080)
	backend.Ports = append(backend.Ports, federation.EndpointPort{Name: "dns", Number: 5353})
	shard := web(backend)
	shard.Ports = append(shard.Ports, federation.Port{Name: "dns", Number: 5300, Protocol: federation.UDP})
	config := strings.Replace(secureGateway, "AUTHORITIES", strconv.Quote(string(authority.PEM)), 1)
	s := newFixture().attach("c1", "").say("c1", webKey, shard).config(t, config).snapshot
	startSecureGateway(t, network, "10.7.0.8", authority, s, "open.example.com", "strict.example.com",
		"lenient.example.com", "inline.example.com")
	caller, _ = pod(t, network, "10.7.0.9", nil)
	return caller, authority
}

// echoDatagrams answers each datagram with itself.
func echoDatagrams(t *testing.T, at *testbed.Namespace, address string) {
	t.Helper()
	var conn net.PacketConn
	err := at.Run(func() (err error) {
		conn, err = net.ListenPacket("udp", address)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	go func() {
		buffer := make([]byte, 512)
		for {
			n, from, err := conn.ReadFrom(buffer)
			if err != nil {
				return
			}
			_, _ = conn.WriteTo(buffer[:n], from)
		}
	}()
}

// datagramAnswered sends datagrams until one is answered.
func datagramAnswered(t *testing.T, from *testbed.Namespace, address, text string) string {
	t.Helper()
	conn, err := from.DialContext(t.Context(), "udp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	buffer := make([]byte, 512)
	for range 30 { // a datagram may be lost
		err = conn.SetDeadline(time.Now().Add(2 * time.Second))
		if err != nil {
			t.Fatal(err)
		}
		_, err = conn.Write([]byte(text))
		if err != nil {
			continue
		}
		n, err := conn.Read(buffer)
		if err == nil {
			return string(buffer[:n])
		}
	}
	return ""
}

// startSecureGateway runs the gateway with certificates of the authority, which clients have too.
func startSecureGateway(t *testing.T, network *testbed.Network, address string, authority *testbed.Authority,
	s *federation.Snapshot, hosts ...string,
) {
	t.Helper()
	ns := testbed.NewNamespace(t, "gateway")
	ns.Join(network, address)
	chain, key := authority.Issue(testbed.Subject{Hosts: hosts})
	config := withNamedSecrets(t, sidecarConfig(t, ingress(t, address), s), map[string]transport.KeyMaterial{
		"file-cert:/web.crt~/web.key": {Chain: chain, Key: key}, "file-root:/ca.crt": {Authorities: authority.PEM},
	})
	testbed.StartEnvoy(t, testbed.EnvoyOptions{Name: "gateway", Config: config, Namespace: ns}).WaitReady(time.Minute)
}

// askedAs sends a request with a certificate, whatever the server asks for; the server is trusted as
// authority says.
func askedAs(t *testing.T, from *testbed.Namespace, authority *testbed.Authority, as tls.Certificate, host, path string) (status int,
	answer testbed.EchoAnswer, err error,
) {
	t.Helper()
	certificate := func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &as, nil }
	client := from.Client(&tls.Config{RootCAs: authority.Pool(), ServerName: host, GetClientCertificate: certificate})
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://10.7.0.8"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Host = host
	response, err := client.Do(request)
	if err != nil {
		return 0, answer, err
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusOK {
		err = json.NewDecoder(response.Body).Decode(&answer)
	}
	return response.StatusCode, answer, err
}

// TestK56UnverifiedClientsHaveNoIdentity: a real gateway lets clients pass whose certificates it cannot verify, where the
// Gateway says so and nowhere else. Policies do not trust such a certificate, and backends get it to verify it.
func TestK56UnverifiedClientsHaveNoIdentity(t *testing.T) {
	caller, authority := secureFixture(t)
	who := testbed.Subject{Hosts: []string{"spiffe://cluster.local/ns/shop/sa/web"}}
	known, forged := authority.TLS(who).Certificates[0], testbed.NewAuthority(t, "unknown").TLS(who).Certificates[0]
	for _, c := range []struct {
		name, host, path string
		as               tls.Certificate
		want             int
	}{
		{"a verified client", "strict.example.com", "/secret", known, 200},
		{"a forged certificate", "strict.example.com", "/open", forged, 0},
		{"a forged certificate that is let through", "lenient.example.com", "/open", forged, 200},
		{"the name in a forged certificate", "lenient.example.com", "/secret", forged, 403},
		{"a verified client (G75)", "inline.example.com", "/secret", known, 200},
		{"a forged certificate (G75)", "inline.example.com", "/open", forged, 0},
		{"no certificate where one is demanded", "lenient.example.com", "/open", tls.Certificate{}, 0},
	} {
		status, answer, err := askedAs(t, caller, authority, c.as, c.host, c.path)
		if status != c.want {
			t.Errorf("%s: answered with %d, %v, want %d", c.name, status, err, c.want)
		}
		told := answer.Header.Get("X-Forwarded-Client-Cert")
		if c.want == 200 && !strings.Contains(told, "Cert=") {
			t.Errorf("%s: the backend does not get the certificate: %q", c.name, told)
		}
		if verified := c.host != "lenient.example.com"; c.want == 200 && verified != strings.Contains(told, "URI=") {
			t.Errorf("%s: the backend is told the name of the client: %t, want %t: %q", c.name, !verified, verified, told)
		}
	}
}

// http3Client is an Envoy that passes on by HTTP/3 what comes to port 8080, and has a server by name.
const http3Client = `
static_resources:
  listeners:
  - address: {socket_address: {address: 0.0.0.0, port_value: 8080}}
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: client
          route_config: {virtual_hosts: [{name: all, domains: ["*"], routes: [{match: {prefix: /}, route: {cluster: gateway, timeout: 60s}}]}]}
          http_filters: [{name: envoy.filters.http.router, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}]
  clusters:
  - name: gateway
    connect_timeout: 30s
    load_assignment: {cluster_name: gateway, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 10.7.0.8, port_value: 443}}}}]}]}
    typed_extension_protocol_options:
      envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
        "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
        explicit_http_config: {http3_protocol_options: {}}
    transport_socket:
      name: envoy.transport_sockets.quic
      typed_config:
        "@type": type.googleapis.com/envoy.extensions.transport_sockets.quic.v3.QuicUpstreamTransport
        upstream_tls_context: {sni: open.example.com, common_tls_context: {validation_context: {trusted_ca: {filename: $DIR/ca.pem}}}}
`

// TestK57GatewaysServeHTTP3: a real client of HTTP/3 reaches the backend through a real gateway, by the same routes and
// policies as over TCP, where responses say that HTTP/3 is there. Datagrams of another port reach the backend, too, and its
// answers the caller (G56).
func TestK57GatewaysServeHTTP3(t *testing.T) {
	caller, authority := secureFixture(t)
	client := testbed.StartEnvoy(t, testbed.EnvoyOptions{
		Name: "client", Config: []byte(http3Client), Namespace: caller, Files: map[string][]byte{"ca.pem": authority.PEM},
	})
	client.WaitReady(time.Minute)
	const proxied, host = "http://10.7.0.9:8080", "open.example.com"
	r := caller.Get(proxied+"/open", "Host", host)
	if r.Err != nil || r.Status != 200 || r.Echo(t).Name != "web" {
		t.Fatalf("over HTTP/3 the gateway answers %d %v %s", r.Status, r.Err, r.Body)
	}
	if got := client.Stat("cluster.gateway.upstream_cx_http3_total"); got == 0 {
		t.Error("the client has no connection of HTTP/3")
	}
	if got := caller.Get(proxied+"/secret", "Host", host).Status; got != 403 {
		t.Errorf("over HTTP/3, what no policy allows is answered with %d", got)
	}
	t.Run("G56 datagrams", func(t *testing.T) {
		if got := datagramAnswered(t, caller, "10.7.0.8:53", "hello"); got != "hello" {
			t.Errorf("the datagram is answered by %q", got)
		}
	})
	over := caller.Client(&tls.Config{RootCAs: authority.Pool(), ServerName: host})
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://10.7.0.8/open", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Host = host
	response, err := over.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if got, want := response.Header.Get("Alt-Svc"), `h3=":443"; ma=86400`; got != want || response.StatusCode != 200 {
		t.Errorf("over TCP: answered with %d, and alt-svc is %q, want %q", response.StatusCode, got, want)
	}
}
