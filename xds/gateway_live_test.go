package xds

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/xds/envoy/transport"
)

const gatewayIP = "10.7.0.9"

// edge is an ingress Envoy in a namespace with the servers behind it, and the
// hub on a unix socket that it gets everything from.
type edge struct {
	*real
	secrets   *fakeSecrets
	authority *testbed.Authority
	namespace *testbed.Namespace
	config    []byte
	operator  *federation.Writer // of the Gateway and its routes
	snapshots *federation.Aggregate
	partners  *x509.Certificate // of a service that demands one of its callers
}

func newEdge(t *testing.T, how ...*builder) *edge {
	dir, err := os.MkdirTemp("", "edge")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	os.Chmod(dir, 0o755)
	a := federation.NewAggregate(nil)
	e := &edge{
		real:    &real{t: t, writer: a.Open(source1), fleet: fleet.New(), socket: filepath.Join(dir, "hub")},
		secrets: newFakeSecrets(), authority: testbed.NewAuthority(t, "edge"), namespace: testbed.NewNamespace(t, "edge"),
		snapshots: a,
	}
	e.namespace.AddLocal(gatewayIP)
	e.behind()
	e.operator = a.Open(federation.ShardKey{Provider: federation.Operator})
	e.gateways(e.operator)
	o := Options{
		Snapshots: a, Fleet: e.fleet, Metrics: e, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Secrets: e.secrets, SecretsOnSocket: true,
	}
	for _, b := range how {
		o.builder = b
	}
	e.server = New(o)
	e.serve()
	t.Cleanup(func() { e.stop() })
	config := strings.NewReplacer("NODE", router().Id, "API", "DELTA_GRPC", "SOCKET", e.socket, "INTERCEPTION_MODE: REDIRECT",
		"LABELS: {istio: ingress}").Replace(bootstrap)
	e.config = []byte(config)
	e.envoy = testbed.StartEnvoy(t, testbed.EnvoyOptions{Name: "edge", Config: e.config, Namespace: e.namespace})
	e.envoy.WaitReady(3 * patience)
	return e
}

// behind starts the services: web speaks HTTP, vault ends TLS itself.
func (e *edge) behind() {
	at := netip.MustParseAddr(gatewayIP)
	own := e.authority.TLS(testbed.Subject{Name: "vault", Hosts: []string{"vault.example.com"}})
	plain := testbed.StartEcho(e.t, testbed.EchoOptions{Name: "web", Namespace: e.namespace, Address: at, HTTP: []int{0}})
	secure := testbed.StartEcho(e.t, testbed.EchoOptions{Name: "vault", Namespace: e.namespace, Address: at, HTTP: []int{0}, TLS: own})
	demanding := own.Clone()
	e.partners = own.Certificates[0].Leaf
	demanding.ClientAuth, demanding.ClientCAs = tls.RequireAndVerifyClientCert, e.authority.Pool()
	partners := testbed.StartEcho(e.t, testbed.EchoOptions{
		Name: "partners", Namespace: e.namespace, Address: at,
		HTTP: []int{0}, TLS: demanding,
	})
	for name, port := range map[string]uint16{
		"web": plain.HTTP[0].Port(), "vault": secure.HTTP[0].Port(),
		"partners": partners.HTTP[0].Port(),
	} {
		protocol := federation.HTTP
		if name == "vault" {
			protocol = federation.TLS
		}
		e.set(serviceDelta{Set: map[federation.ServiceKey]*federation.Shard{key(name): {
			Ports: []federation.Port{{Name: "p", Number: 80, Protocol: protocol}},
			Endpoints: []federation.Endpoint{{
				Address: federation.IPAddress(at), Health: federation.Healthy, Ports: []federation.EndpointPort{{Name: "p", Number: port}},
			}},
		}}})
	}
}

func (e *edge) gateways(to *federation.Writer) {
	server := func(number uint32, protocol, host string, tls *networking.ServerTLSSettings) *networking.Server {
		return &networking.Server{Port: &networking.Port{Number: number, Name: host, Protocol: protocol}, Hosts: []string{host}, Tls: tls}
	}
	const simple, mutual = networking.ServerTLSSettings_SIMPLE, networking.ServerTLSSettings_MUTUAL
	front := &networking.Gateway{Selector: map[string]string{"istio": "ingress"}, Servers: []*networking.Server{
		server(8080, "HTTP", "shop.example.com", &networking.ServerTLSSettings{HttpsRedirect: true}),
		server(8080, "HTTP", "plain.example.com", nil),
		server(8443, "HTTPS", "shop.example.com", &networking.ServerTLSSettings{Mode: simple, CredentialName: "web"}),
		server(8443, "HTTPS", "partners.example.com", &networking.ServerTLSSettings{Mode: mutual, CredentialName: "web"}),
		server(8443, "TLS", "vault.example.com", &networking.ServerTLSSettings{}),
	}}
	routes := &networking.VirtualService{
		Hosts: []string{"*.example.com"}, Gateways: []string{"shop/front"},
		Http: []*networking.HTTPRoute{{Route: []*networking.HTTPRouteDestination{{Destination: &networking.Destination{Host: "web"}}}}},
		Tls: []*networking.TLSRoute{{
			Match: []*networking.TLSMatchAttributes{{SniHosts: []string{"vault.example.com"}}},
			Route: []*networking.RouteDestination{{Destination: &networking.Destination{Host: "vault"}}},
		}},
	}
	objects := map[federation.ObjectKey]*federation.Object{}
	for _, o := range []*federation.Object{
		{Key: federation.ObjectKey{Kind: "Gateway", Name: "front"}, Spec: front, ProxyLabels: []string{"istio"}},
		{Key: federation.ObjectKey{Kind: "VirtualService", Name: "routes"}, Spec: routes, Names: []string{"*.example.com", "gateway:shop/front"}},
	} {
		o.Key.Group, o.Key.Namespace, o.Digest = "networking.istio.io", "shop", "1"
		objects[o.Key] = o
	}
	to.Update(federation.Edit{Objects: federation.Delta[federation.ObjectKey, *federation.Object]{Set: objects}})
}

// rotate gives the gateway a new certificate.
func (e *edge) rotate(fingerprint string, more ...string) {
	chain, key := e.authority.Issue(testbed.Subject{Name: fingerprint, Hosts: append(more, "shop.example.com", "partners.example.com")})
	e.secrets.mu.Lock()
	e.secrets.byRef[webSecret(false)] = Secret{Fingerprint: fingerprint, Material: transport.KeyMaterial{Chain: chain, Key: key}}
	e.secrets.byRef[webSecret(true)] = Secret{Fingerprint: "ca", Material: transport.KeyMaterial{Authorities: e.authority.PEM}}
	close(e.secrets.changed)
	e.secrets.changed = make(chan struct{})
	e.secrets.mu.Unlock()
}

// caller is a TLS connection to the gateway that stays open.
type caller struct {
	conn *tls.Conn
	host string
	read *bufio.Reader
}

func (e *edge) dial(host string, certificates ...tls.Certificate) (*caller, error) {
	conn, err := e.namespace.DialContext(context.Background(), "tcp", gatewayIP+":8443")
	if err != nil {
		return nil, err
	}
	e.t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(patience))
	secure := tls.Client(conn, &tls.Config{ServerName: host, RootCAs: e.authority.Pool(), Certificates: certificates})
	return &caller{secure, host, bufio.NewReader(secure)}, secure.Handshake()
}

// get returns the status and the body of the answer.
func (c *caller) get() (string, error) {
	if _, err := fmt.Fprintf(c.conn, "GET / HTTP/1.1\r\nHost: %s\r\n\r\n", c.host); err != nil {
		return "", err
	}
	answer, err := http.ReadResponse(c.read, nil)
	if err != nil {
		return "", err
	}
	body, err := io.ReadAll(answer.Body)
	return fmt.Sprintf("%d %s", answer.StatusCode, body), err
}

func (e *edge) ask(host string, certificates ...tls.Certificate) (string, error) {
	c, err := e.dial(host, certificates...)
	if err != nil {
		return "", err
	}
	return c.get()
}

// An Envoy does what a Gateway says, with secrets that it has by SDS.
func TestX23GatewayServesAndSecretsRotate(t *testing.T) {
	e := newEdge(t)
	e.rotate("one")
	e.await("the gateway to serve", func() error {
		answer, err := e.ask("shop.example.com")
		if err == nil && !strings.HasPrefix(answer, "200 ") {
			err = fmt.Errorf("%s", answer)
		}
		return err
	})
	e.await("everything to be accepted", e.inSync)
	redirected := e.namespace.Get("http://"+gatewayIP+":8080/a?b=c", "Host", "shop.example.com")
	if redirected.Status != http.StatusMovedPermanently || redirected.Header.Get("Location") != "https://shop.example.com/a?b=c" {
		t.Errorf("plaintext is answered with %d %s %v", redirected.Status, redirected.Header.Get("Location"), redirected.Err)
	}
	if plain := e.namespace.Get("http://"+gatewayIP+":8080/", "Host", "plain.example.com"); plain.Status != http.StatusOK {
		t.Errorf("a host without redirect is answered with %d %v", plain.Status, plain.Err)
	}
	if other := e.namespace.Get("http://"+gatewayIP+":8080/", "Host", "other.example.org"); other.Status != http.StatusNotFound {
		t.Errorf("a host that nobody has is answered with %d %v", other.Status, other.Err)
	}
	if answer, err := e.ask("partners.example.com"); err == nil {
		t.Errorf("a caller without certificate gets %s", answer)
	}
	partner := e.authority.TLS(testbed.Subject{Name: "partner", Hosts: []string{"spiffe://example.com/partner"}}).Certificates[0]
	if answer, err := e.ask("partners.example.com", partner); err != nil || !strings.Contains(answer, "spiffe://example.com/partner") {
		t.Errorf("a caller with a certificate gets %s, %v", answer, err)
	}
	stranger := testbed.NewAuthority(t, "stranger").TLS(testbed.Subject{Name: "partner"}).Certificates[0]
	if answer, err := e.ask("partners.example.com", stranger); err == nil {
		t.Errorf("a caller with a stranger's certificate gets %s", answer)
	}
	if answer, err := e.ask("vault.example.com"); err != nil || !strings.Contains(answer, `"name":"vault"`) ||
		!strings.Contains(answer, `"serverName":"vault.example.com"`) {
		t.Errorf("what is passed through is answered with %s, %v", answer, err)
	}
	if _, err := e.dial("nobody.example.com"); err == nil {
		t.Error("a server that nobody has ends TLS")
	}
	e.checkRotation(t)
	t.Run("K54 credentials of a DestinationRule", e.checkCredential)
}

// checkCredential has the gateway call a service that demands a certificate, with one of a Secret:
// nothing is sent before the Secret exists.
func (e *edge) checkCredential(t *testing.T) {
	host := "partners.shop.svc.cluster.local"
	e.objects(secured(host, nil), tenantGateway("out", simpleTLS()), &federation.Object{
		Key: tenantKey("VirtualService", "out"), Names: []string{"out.example.com", "gateway:shop/out"},
		Spec: &networking.VirtualService{Hosts: []string{"out.example.com"}, Gateways: []string{"shop/out"}, Http: []*networking.HTTPRoute{
			{Route: []*networking.HTTPRouteDestination{{Destination: &networking.Destination{Host: host}}}},
		}},
	})
	get := func() testbed.Response {
		return e.namespace.Get("http://"+gatewayIP+":8081/", "Host", "out.example.com")
	}
	e.await("a gateway without the Secret to refuse", func() error {
		if r := get(); r.Err != nil || r.Status != http.StatusServiceUnavailable {
			return fmt.Errorf("it answers %d %q %w", r.Status, r.Body, r.Err)
		}
		return nil
	})
	chain, private := e.authority.Issue(testbed.Subject{Name: "gateway", Hosts: []string{"spiffe://example.com/gateway"}})
	e.secrets.put(partnerSecret("shop", false), transport.KeyMaterial{Chain: chain, Key: private})
	e.secrets.put(partnerSecret("shop", true), transport.KeyMaterial{Authorities: e.authority.PEM})
	e.await("the gateway to call with the certificate", func() error {
		r := get()
		if r.Err != nil || r.Status != http.StatusOK || !strings.Contains(string(r.Body), "spiffe://example.com/gateway") {
			return fmt.Errorf("it answers %d %q %w", r.Status, r.Body, r.Err)
		}
		return nil
	})
	e.secrets.put(partnerSecret("shop", true), transport.KeyMaterial{Authorities: e.authority.PEM, CRL: e.authority.Revoke(e.partners)})
	e.await("the gateway to refuse a server whose certificate the Secret revokes", func() error {
		if r := get(); r.Err != nil || r.Status != http.StatusServiceUnavailable {
			return fmt.Errorf("it answers %d %q %w", r.Status, r.Body, r.Err)
		}
		return nil
	})
}

func (e *edge) checkRotation(t *testing.T) {
	t.Helper()
	old, err := e.dial("shop.example.com")
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	e.rotate("two")
	e.await("the new certificate", func() error {
		c, err := e.dial("shop.example.com")
		if err != nil {
			t.Errorf("during the rotation: %v", err)
			return nil
		}
		if name := c.conn.ConnectionState().PeerCertificates[0].Subject.CommonName; name != "two" {
			return fmt.Errorf("it is still %s", name)
		}
		return nil
	})
	t.Logf("the new certificate is presented after %s", time.Since(start))
	if answer, err := old.get(); err != nil || !strings.HasPrefix(answer, "200 ") {
		t.Errorf("the connection from before the rotation is answered with %s, %v", answer, err)
	}
	if n := e.envoy.Stat("listener_manager.listener_modified"); n != 0 {
		t.Errorf("%d listeners were changed by the rotation", n)
	}
	e.secrets.mu.Lock()
	secret := string(e.secrets.byRef[webSecret(false)].Material.Key)
	e.secrets.mu.Unlock()
	if dump, err := e.envoy.Admin("/config_dump"); err != nil || strings.Contains(string(dump), strings.Split(secret, "\n")[1]) {
		t.Errorf("Envoy's own dump shows the key, or cannot be had: %v", err)
	}
}
