package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	grpcstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/xds/xdstest"
)

// consulMesh is a hub and two Consul datacenters, of which one may prove its workloads.
type consulMesh struct {
	t        *testing.T
	mesh     *testbed.Network
	at       *testbed.Namespace // of the hub and the datacenters
	dc1, dc2 *testbed.Consul
	hub      *testbed.Hub
}

const (
	consulWebAt    = "10.80.0.21"
	consulCallerAt = "10.80.0.22"
)

func startConsulMesh(t *testing.T) *consulMesh {
	t.Helper()
	w := &consulMesh{t: t, mesh: testbed.NewNetwork(t, "mesh", "10.80.0.0/24"), at: testbed.NewNamespace(t, "hub")}
	w.at.Join(w.mesh, "10.80.0.5")
	config, dir := "clusters:\n", t.TempDir()
	start := func(name, workloads string) *testbed.Consul {
		c := testbed.StartConsul(t, testbed.ConsulOptions{Name: "consul-" + name, Datacenter: name, ACL: true, TLS: true, Namespace: w.at})
		write(t, filepath.Join(dir, name+".crt"), string(c.CA))
		write(t, filepath.Join(dir, name+".token"), c.Token)
		config += fmt.Sprintf("- {id: %[1]s, provider: Consul, network: n1, consul: {address: %[2]q, tokenFile: %[3]s/%[1]s.token, tls: {ca: %[3]s/%[1]s.crt}%[4]s}}\n",
			name, c.URL, dir, workloads)
		return c
	}
	w.dc1 = start("dc1",
		", workloads: {tokens: true, certificates: true, namespace: shop, accounts: [{service: billing, namespace: bank, serviceAccount: ledger}, {role: jobs, namespace: jobs, serviceAccount: runner}]}")
	w.dc2 = start("dc2", "")
	for service, address := range map[string]string{"web": consulWebAt, "billing": "10.80.0.23"} {
		registerAt(w.dc1, service+"-1", service, address, 8080, "security.istio.io/tlsMode=istio")
	}
	w.hub = testbed.StartHub(t, testbed.HubOptions{Program: binary.Path(t), Namespace: w.at, Proven: true, Config: config})
	t.Cleanup(func() { noPanic(t, w.hub) })
	return w
}

// token is one of the datacenter, with what it is for.
func (w *consulMesh) token(of *testbed.Consul, what map[string]any) (secret, accessor string) {
	w.t.Helper()
	var made struct{ SecretID, AccessorID string }
	of.Put("/v1/acl/token", what).Decode(w.t, &made)
	return made.SecretID, made.AccessorID
}

func serviceIdentity(names ...string) map[string]any {
	var all []map[string]any
	for _, name := range names {
		all = append(all, map[string]any{"ServiceName": name})
	}
	return map[string]any{"ServiceIdentities": all}
}

// leaf is a certificate of Connect for a service.
func (w *consulMesh) leaf(of *testbed.Consul, service string) *tls.Certificate {
	w.t.Helper()
	var said struct{ CertPEM, PrivateKeyPEM string }
	of.Get("/v1/agent/connect/ca/leaf/"+service, &said)
	pair, err := tls.X509KeyPair([]byte(said.CertPEM), []byte(said.PrivateKeyPEM))
	if err != nil {
		w.t.Fatal(err)
	}
	return &pair
}

// consulCaller is what a proxy proves, and what it says.
type consulCaller struct {
	token    string
	leaf     *tls.Certificate
	id       string         // of the node; default web-sidecar-proxy
	says     map[string]any // of the node
	metadata []string       // of the call, besides the token
}

// open opens a stream of the caller; the error is why it ended.
func (w *consulMesh) open(c consulCaller) (*xdstest.Client, error) {
	w.t.Helper()
	config := &tls.Config{RootCAs: x509.NewCertPool(), ServerName: "10.80.0.5"}
	config.RootCAs.AppendCertsFromPEM(w.hub.CA)
	if c.leaf != nil {
		config.Certificates = []tls.Certificate{*c.leaf}
	}
	conn, err := grpc.NewClient("passthrough:///"+w.hub.XDS, grpc.WithTransportCredentials(credentials.NewTLS(config)),
		grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) { return w.at.DialContext(ctx, "tcp", addr) }))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = conn.Close() })
	said, err := structpb.NewStruct(c.says)
	if err != nil {
		w.t.Fatal(err)
	}
	node := &corev3.Node{Id: "web-sidecar-proxy", Metadata: said}
	if c.id != "" {
		node.Id = c.id
	}
	pairs := c.metadata
	if c.token != "" {
		pairs = append(pairs, "x-consul-token", c.token)
	}
	stream, err := xdstest.Open(metadata.AppendToOutgoingContext(w.t.Context(), pairs...), conn, xdstest.Options{Delta: true, Node: node})
	if err != nil {
		return nil, err
	}
	w.t.Cleanup(stream.Close)
	_ = stream.Send(xdstest.Request{Type: xdstest.CDS}) // a stream that is over says why below
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	_, err = stream.Receive(ctx)
	return stream, err
}

// TestU20WorkloadsProveThemselvesByTheirDatacenter has proxies as Consul starts them, which say
// neither cluster nor namespace, prove by a token or a certificate of Connect who they are. What
// another datacenter says, and what a proxy says about itself, proves nothing.
func TestU20WorkloadsProveThemselvesByTheirDatacenter(t *testing.T) {
	t.Parallel()
	w := startConsulMesh(t)
	w.dc1.Put("/v1/acl/role", map[string]any{"Name": "jobs", "Policies": []any{}})
	web, _ := w.token(w.dc1, serviceIdentity("web"))
	template, _ := w.token(w.dc1, map[string]any{"TemplatedPolicies": []any{map[string]any{
		"TemplateName":      "builtin/service",
		"TemplateVariables": map[string]string{"Name": "web"},
	}}})
	role, _ := w.token(w.dc1, map[string]any{"Roles": []any{map[string]string{"Name": "jobs"}}})
	elsewhere, _ := w.token(w.dc1, map[string]any{"ServiceIdentities": []any{map[string]any{
		"ServiceName": "web",
		"Datacenters": []string{"dc9"},
	}}})
	two, _ := w.token(w.dc1, serviceIdentity("web", "billing"))
	billing, _ := w.token(w.dc1, serviceIdentity("billing"))
	foreign, _ := w.token(w.dc2, serviceIdentity("web"))
	reader, _ := w.dc1.NewToken(`service_prefix "" { policy = "write" }`)
	testbed.WaitFor(t, patience, "the roots of Connect", func() error {
		_, err := w.open(consulCaller{leaf: w.leaf(w.dc1, "web")})
		return err
	})
	at := func(id, namespace string) map[string]any {
		return map[string]any{"CLUSTER_ID": id, "NAMESPACE": namespace}
	}
	for name, c := range map[string]struct {
		consulCaller
		code codes.Code
		want string // of the reason
	}{
		"a token":                   {consulCaller{token: web}, codes.OK, ""},
		"that names its datacenter": {consulCaller{token: web, metadata: []string{"clusterid", "dc1"}}, codes.OK, ""},
		"as a bearer":               {consulCaller{metadata: []string{"clusterid", "dc1", "authorization", "Bearer " + web}}, codes.OK, ""},
		"a templated token":         {consulCaller{token: template}, codes.OK, ""},
		"a role":                    {consulCaller{token: role, says: at("dc1", "jobs")}, codes.OK, ""},
		"a whole ID": {consulCaller{
			token: web, id: "sidecar~" + consulWebAt + "~web-1.shop~shop.svc.cluster.local",
			says: at("dc1", "shop"),
		}, codes.OK, ""},
		"a leaf and its token": {consulCaller{token: web, leaf: w.leaf(w.dc1, "web")}, codes.OK, ""},
		"an entry of accounts": {consulCaller{token: billing, says: at("dc1", "bank")}, codes.OK, ""},
		"another namespace than mapped": {
			consulCaller{token: billing, says: at("dc1", "shop")},
			codes.PermissionDenied, `proven to be of "bank"`,
		},
		"a leaf of another namespace": {
			consulCaller{leaf: w.leaf(w.dc1, "billing"), says: at("dc1", "shop")},
			codes.PermissionDenied, `proven to be of "bank"`,
		},
		"another's address": {
			consulCaller{token: web, says: map[string]any{"INSTANCE_IPS": "10.80.0.23"}},
			codes.PermissionDenied,
			"does not run as shop/web",
		},
		"another cluster":            {consulCaller{token: web, says: at("dc2", "shop")}, codes.PermissionDenied, `proven to be of "dc1"`},
		"another datacenter's token": {consulCaller{token: foreign}, codes.Unauthenticated, "does not accept the token"},
		"shown to its own, not opted in": {
			consulCaller{token: foreign, metadata: []string{"clusterid", "dc2"}},
			codes.Unauthenticated,
			"not a Consul datacenter whose tokens",
		},
		"a leaf of another trust domain": {
			consulCaller{leaf: w.leaf(w.dc2, "web")},
			codes.Unauthenticated,
			"show a client certificate",
		}, // clients keep it to themselves
		"a leaf and a token of two": {
			consulCaller{token: billing, leaf: w.leaf(w.dc1, "web")},
			codes.Unauthenticated, "different workloads",
		},
		"the anonymous token":            {consulCaller{token: "anonymous"}, codes.Unauthenticated, "anonymous"},
		"a token that only has rights":   {consulCaller{token: reader}, codes.Unauthenticated, "for no service"},
		"a token for another datacenter": {consulCaller{token: elsewhere}, codes.Unauthenticated, "for no service"},
		"a token of two workloads":       {consulCaller{token: two}, codes.Unauthenticated, "several accounts"},
		"the token of an operator":       {consulCaller{token: w.dc1.Token}, codes.Unauthenticated, "for no service"},
		"not a token of Consul":          {consulCaller{token: "x y"}, codes.Unauthenticated, "not a token of Consul"},
		"two tokens": {
			consulCaller{token: web, metadata: []string{"authorization", "Bearer " + web}},
			codes.Unauthenticated, "only one",
		},
		"a short ID and nothing shown":    {consulCaller{}, codes.Unauthenticated, "show a client certificate"},
		"an ID with control characters":   {consulCaller{token: web, id: "web\x01"}, codes.InvalidArgument, "control characters"},
		"a short ID without ~ but shaped": {consulCaller{token: web, id: "sidecar~" + consulWebAt + "~web"}, codes.InvalidArgument, "needs four"},
	} {
		_, err := w.open(c.consulCaller)
		if grpcstatus.Code(err) != c.code || c.want != "" && !strings.Contains(fmt.Sprint(err), c.want) {
			t.Errorf("%s: %v, want %v with %q", name, err, c.code, c.want)
		}
	}
	for _, secret := range []string{web, billing, foreign, reader, w.dc1.Token} {
		if strings.Contains(string(w.hub.Output()), secret) {
			t.Error("the log has a token")
		}
	}
	w.proxies(web)
}

// proxies has two real Envoys with such proofs call each other with mutual TLS.
func (w *consulMesh) proxies(web string) {
	w.t.Helper()
	caller, _ := w.token(w.dc1, serviceIdentity("caller"))
	server, client := w.sidecar("web", consulWebAt, web), w.sidecar("caller", consulCallerAt, caller)
	testbed.StartEcho(w.t, testbed.EchoOptions{Name: "web", Namespace: server, HTTP: []int{8080}})
	proxy, _ := url.Parse("http://127.0.0.1:15080")
	through := &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(proxy), DisableKeepAlives: true, DialContext: client.DialContext}}
	testbed.WaitFor(w.t, patience, "an answer of web", func() error {
		body, err := get(w.t.Context(), through, "http://web.service.consul:8080/")
		if err != nil {
			return err
		}
		var answer testbed.EchoAnswer
		if err := json.Unmarshal([]byte(body), &answer); err != nil {
			return err
		}
		if seen := answer.Header.Get("X-Forwarded-Client-Cert"); !strings.Contains(seen, "URI=spiffe://cluster.local/ns/shop/sa/caller") {
			return fmt.Errorf("the server sees the caller %q", seen)
		}
		return nil
	})
}

// sidecar is a workload with an Envoy as Consul starts one: its ID is a name, and its token
// is in the metadata of its streams.
func (w *consulMesh) sidecar(name, address, token string) *testbed.Namespace {
	w.t.Helper()
	at := testbed.NewNamespace(w.t, name)
	at.Join(w.mesh, address)
	at.Capture(testbed.ProxyUID)
	host, port, _ := net.SplitHostPort(w.hub.XDS)
	config := fmt.Sprintf(`
node: {id: %[1]s-sidecar-proxy, cluster: %[1]s, metadata: {namespace: default, IDENTITY_SOURCE: ads, HTTP_PROXY_PORT: "15080"}}
dynamic_resources:
  ads_config: {api_type: DELTA_GRPC, transport_api_version: V3, grpc_services: {initial_metadata: [{key: x-consul-token, value: %[2]q}], envoy_grpc: {cluster_name: hub}}}
  cds_config: {ads: {}, resource_api_version: V3}
  lds_config: {ads: {}, resource_api_version: V3}
static_resources:
  clusters:
  - name: hub
    connect_timeout: 5s
    type: STATIC
    load_assignment: {cluster_name: hub, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: %[3]s, port_value: %[4]s}}}}]}]}
    typed_extension_protocol_options:
      envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
        "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
        explicit_http_config: {http2_protocol_options: {}}
    transport_socket:
      name: tls
      typed_config:
        "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext
        common_tls_context: {validation_context: {trusted_ca: {filename: %[5]s/hub.crt}}}
`, name, token, host, port, testbed.DirPlaceholder)
	testbed.StartEnvoy(w.t, testbed.EnvoyOptions{
		Name: name, Namespace: at, Config: []byte(config),
		Files: map[string][]byte{"hub.crt": w.hub.CA},
	}).WaitReady(patience)
	return at
}
