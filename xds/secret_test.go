package xds

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/structpb"
	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy"
	"isthmus.dev/isthmus/xds/xdstest"
)

// vault gives secrets by name, to whatever cluster and namespace.
type vault struct {
	mu       sync.Mutex
	secrets  map[SecretRef]Secret
	followed map[SecretRef]int
	changed  chan struct{}
}

func newVault() *vault {
	return &vault{secrets: map[SecretRef]Secret{}, followed: map[SecretRef]int{}, changed: make(chan struct{})}
}

func webSecret(authorities bool) SecretRef {
	return SecretRef{Cluster: "c1", Namespace: "shop", Name: "web", Authorities: authorities}
}

// keep stores content under the reference.
func (v *vault) keep(ref SecretRef, content string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	s := Secret{Fingerprint: fmt.Sprintf("%x", len(content)) + content[:1], Material: envoy.KeyMaterial{Chain: []byte("chain " + content), Key: []byte("key " + content)}}
	if ref.Authorities {
		s.Material = envoy.KeyMaterial{Authorities: []byte("ca " + content)}
	}
	v.secrets[ref] = s
	close(v.changed)
	v.changed = make(chan struct{})
}

func (v *vault) Follow(ref SecretRef) (done func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.followed[ref]++
	return func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.followed[ref]--
	}
}

func (v *vault) Secret(ref SecretRef) (Secret, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	s, ok := v.secrets[ref]
	return s, ok
}

func (v *vault) Changed() <-chan struct{} {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.changed
}

func (v *vault) follows(ref SecretRef) int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.followed[ref]
}

// tally counts events.
type tally struct {
	uncounted
	mu     sync.Mutex
	events map[Event]int
}

func (c *tally) Count(e Event, _ envoy.Type) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.events[e]++
}

func (c *tally) of(e Event) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.events[e]
}

// locked is a log that several goroutines write.
type locked struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *locked) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// vaultHub is a hub with a Gateway whose listener refers to kubernetes://web.
type vaultHub struct {
	*hub
	vault  *vault
	counts *tally
	log    *locked
	config *federation.Writer
}

func newVaultHub(t *testing.T, onSocket bool) *vaultHub {
	v := &vaultHub{vault: newVault(), counts: &tally{events: map[Event]int{}}, log: &locked{}}
	v.hub = newHub(t, func(o *Options) {
		o.Secrets, o.SecretsOnSocket, o.Metrics = v.vault, onSocket, v.counts
		o.Logger = slog.New(slog.NewTextHandler(v.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	v.config = v.aggregate.Open(federation.ShardKey{Provider: federation.Operator})
	v.configure("web")
	return v
}

// configure makes the Gateway refer to the credential; empty: there is none.
func (v *vaultHub) configure(credential string) {
	o := &federation.Object{
		Key:    federation.ObjectKey{Group: "networking.istio.io", Kind: "Gateway", Namespace: "infra", Name: "front"},
		Digest: credential, ProxyLabels: []string{"istio"},
		Spec: &networking.Gateway{Selector: map[string]string{"istio": "ingress"}, Servers: []*networking.Server{{
			Port: &networking.Port{Number: 443, Name: "https", Protocol: "HTTPS"}, Hosts: []string{"*"},
			Tls: &networking.ServerTLSSettings{Mode: networking.ServerTLSSettings_SIMPLE, CredentialName: credential},
		}}},
	}
	objects := federation.Delta[federation.ObjectKey, *federation.Object]{Set: map[federation.ObjectKey]*federation.Object{o.Key: o}}
	if credential == "" {
		objects = federation.Delta[federation.ObjectKey, *federation.Object]{Gone: []federation.ObjectKey{o.Key}}
	}
	v.config.Update(federation.Edit{Objects: objects})
}

// listenAt serves the hub there and has further clients dial it.
func (v *vaultHub) listenAt(network, address string, server, client credentials.TransportCredentials) {
	v.t.Helper()
	l, err := new(net.ListenConfig).Listen(context.Background(), network, address)
	if err != nil {
		v.t.Fatal(err)
	}
	g := grpc.NewServer(append(v.server.ServerOptions(), grpc.Creds(server))...)
	v.server.Register(g)
	served := make(chan error, 1)
	go func() { served <- g.Serve(l) }()
	v.t.Cleanup(func() { g.Stop(); <-served })
	target := "passthrough:///" + l.Addr().String()
	if network == "unix" {
		target = "unix:" + l.Addr().String()
	}
	if v.conn, err = grpc.NewClient(target, grpc.WithTransportCredentials(client)); err != nil {
		v.t.Fatal(err)
	}
	conn := v.conn
	v.clients = 0
	v.t.Cleanup(func() { conn.Close() })
}

func (v *vaultHub) onSocket() *vaultHub {
	v.t.Helper()
	v.listenAt("unix", filepath.Join(v.t.(*testing.T).TempDir(), "hub"), insecure.NewCredentials(), insecure.NewCredentials())
	return v
}

func ingress() *corev3.Node {
	n := router()
	n.Metadata.Fields["LABELS"] = structpb.NewStructValue(&structpb.Struct{Fields: map[string]*structpb.Value{"istio": structpb.NewStringValue("ingress")}})
	return n
}

// secretIn reads a secret out of a response.
func secretIn(t *testing.T, r xdstest.Response, name string) *tlsv3.Secret {
	t.Helper()
	var s tlsv3.Secret
	if r.Resources[name] == nil {
		t.Fatalf("%s has %q, -%q, not %s", r.Type, r.Names(), r.Removed, name)
	}
	if err := r.Resources[name].UnmarshalTo(&s); err != nil {
		t.Fatal(err)
	}
	return &s
}

const web = "kubernetes://web"

func TestX23SecretsArePushedOnRotation(t *testing.T) {
	bothVariants(t, func(t *testing.T, delta bool) {
		v := newVaultHub(t, true).onSocket()
		v.vault.keep(webSecret(false), "canary-one")
		c := v.client(xdstest.Options{Delta: delta, Node: ingress()})
		c.get(xdstest.Request{Type: xdstest.LDS})
		first := c.get(xdstest.Request{Type: xdstest.SDS, Names: []string{web}})
		if got := secretIn(t, first, web).GetTlsCertificate().GetPrivateKey().GetInlineBytes(); string(got) != "key canary-one" {
			t.Errorf("the key is %q", got)
		}
		v.vault.keep(webSecret(true), "canary-authorities") // to which no listener refers
		v.vault.keep(webSecret(false), "canary-number-two")
		second := c.accept(xdstest.SDS)
		if got := secretIn(t, second, web).GetTlsCertificate().GetCertificateChain().GetInlineBytes(); string(got) != "chain canary-number-two" {
			t.Errorf("the chain is %q", got)
		}
		if first.Version == second.Version || len(second.Resources) != 1 {
			t.Errorf("versions %s and %s, %q", first.Version, second.Version, second.Names())
		}
		v.vault.keep(webSecret(false), "canary-number-two")
		v.vault.keep(webSecret(false), "canary-the-third")
		if r := c.accept(xdstest.SDS); string(secretIn(t, r, web).GetTlsCertificate().GetPrivateKey().GetInlineBytes()) != "key canary-the-third" {
			t.Error("what was the same was sent again")
		}
		if strings.Contains(v.log.String(), "canary") {
			t.Errorf("the log tells secrets:\n%s", v.log)
		}
	})
}

func TestX23NamesOfOthersAreRefused(t *testing.T) {
	v := newVaultHub(t, true).onSocket()
	v.vault.keep(webSecret(false), "one")
	v.vault.keep(webSecret(true), "authorities")
	v.vault.keep(SecretRef{Cluster: "c1", Namespace: "shop", Name: "other"}, "other")
	names := []string{"kubernetes://other", "kubernetes://web-cacert", "web", "file:///etc/shadow", "kubernetes://../web"}
	c := v.client(xdstest.Options{Delta: true, Node: ingress()})
	r := c.get(xdstest.Request{Type: xdstest.SDS, Names: append(slices.Clone(names), web)})
	wantNames(t, r, web)
	wantRemoved(t, r, names...)
	if got := v.counts.of(SecretRefused); got != len(names) {
		t.Errorf("%d refusals are counted, want %d", got, len(names))
	}
	sotw := v.client(xdstest.Options{Node: ingress()})
	wantNames(t, sotw.get(xdstest.Request{Type: xdstest.SDS, Names: append(slices.Clone(names), web)}), web)
	for what, n := range map[string]*corev3.Node{"a sidecar": node("web-1"), "a router that no Gateway selects": router()} {
		other := v.client(xdstest.Options{Delta: true, Node: n})
		if r := other.get(xdstest.Request{Type: xdstest.SDS, Names: []string{web}}); len(r.Resources) > 0 {
			t.Errorf("%s gets %q", what, r.Names())
		}
	}
	v.configure("other")
	if r := c.accept(xdstest.SDS); !slices.Equal(r.Names(), []string{"kubernetes://other"}) || !slices.Equal(r.Removed, []string{web}) {
		t.Errorf("after the listener refers to another: %q, -%q", r.Names(), r.Removed)
	}
}

func TestX23SecretsGoToProvenClientsOnly(t *testing.T) {
	authority := testbed.NewAuthority(t, "hub")
	server := authority.TLS(testbed.Subject{Name: "hub", Hosts: []string{"127.0.0.1"}})
	server.ClientAuth = tls.VerifyClientCertIfGiven
	server.NextProtos = []string{"h2"}
	proven := authority.TLS(testbed.Subject{Name: "proxy"})
	anonymous := &tls.Config{RootCAs: authority.Pool()}
	for name, c := range map[string]struct {
		onSocket       bool
		network, at    string
		server, client credentials.TransportCredentials
		want           bool
	}{
		"mutual TLS":                 {false, "tcp", "127.0.0.1:0", credentials.NewTLS(server), credentials.NewTLS(proven), true},
		"TLS without certificate":    {true, "tcp", "127.0.0.1:0", credentials.NewTLS(server), credentials.NewTLS(anonymous), false},
		"plaintext TCP on loopback":  {true, "tcp", "127.0.0.1:0", insecure.NewCredentials(), insecure.NewCredentials(), false},
		"a unix socket":              {true, "unix", "", insecure.NewCredentials(), insecure.NewCredentials(), true},
		"a unix socket that may not": {false, "unix", "", insecure.NewCredentials(), insecure.NewCredentials(), false},
	} {
		t.Run(name, func(t *testing.T) {
			v := newVaultHub(t, c.onSocket)
			v.vault.keep(webSecret(false), "one")
			if c.at == "" {
				c.at = filepath.Join(t.TempDir(), "hub")
			}
			v.listenAt(c.network, c.at, c.server, c.client)
			r := v.client(xdstest.Options{Delta: true, Node: ingress()}).get(xdstest.Request{Type: xdstest.SDS, Names: []string{web}})
			if got := len(r.Resources) == 1; got != c.want {
				t.Errorf("got %q, removed %q", r.Names(), r.Removed)
			}
			if refused := v.counts.of(SecretRefused) == 1; refused == c.want {
				t.Errorf("%d refusals are counted", v.counts.of(SecretRefused))
			}
		})
	}
}

// A refused secret is not sent again; the client keeps what it has.
func TestX23RefusedSecretIsNotRepeated(t *testing.T) {
	bothVariants(t, func(t *testing.T, delta bool) {
		v := newVaultHub(t, true).onSocket()
		v.vault.keep(webSecret(false), "one")
		c := v.client(xdstest.Options{Delta: delta, Node: ingress()})
		c.get(xdstest.Request{Type: xdstest.SDS, Names: []string{web}})
		v.vault.keep(webSecret(false), "number two")
		c.nack(c.next(xdstest.SDS), web+" is bad")
		repair := c.accept(xdstest.SDS)
		if len(repair.Resources)+len(repair.Removed) > 0 {
			t.Errorf("the repair has %q, -%q", repair.Names(), repair.Removed)
		}
		v.vault.keep(webSecret(false), "third of them")
		if r := c.accept(xdstest.SDS); string(secretIn(t, r, web).GetTlsCertificate().GetPrivateKey().GetInlineBytes()) != "key third of them" {
			t.Error("another secret came")
		}
	})
}

// Only what is referred to is followed, for as long as somebody does.
func TestSecretsAreFollowedWhileReferredTo(t *testing.T) {
	v := newVaultHub(t, true).onSocket()
	v.vault.keep(webSecret(false), "one")
	c := v.client(xdstest.Options{Delta: true, Node: ingress()})
	c.get(xdstest.Request{Type: xdstest.SDS, Names: []string{web}})
	if n := v.vault.follows(webSecret(false)); n != 1 {
		t.Errorf("followed %d times", n)
	}
	v.configure("")
	wantRemoved(t, c.accept(xdstest.SDS), web)
	v.configure("web")
	wantNames(t, c.accept(xdstest.SDS), web)
	c.Close()
	testbed.WaitFor(t, patience, "the secret to be let go", func() error {
		if n := v.vault.follows(webSecret(false)); n != 0 {
			return fmt.Errorf("followed %d times", n)
		}
		return nil
	})
}

// A client that has the secret of that fingerprint is not sent it again.
func TestX10SecretsThatTheClientHasAreNotSent(t *testing.T) {
	v := newVaultHub(t, true).onSocket()
	v.vault.keep(webSecret(false), "one")
	c := v.client(xdstest.Options{Delta: true, Node: ingress()})
	r := c.get(xdstest.Request{Type: xdstest.SDS, Names: []string{web}})
	again := v.client(xdstest.Options{Delta: true, Node: ingress()})
	again.ask(xdstest.Request{Type: xdstest.SDS, Names: []string{web}, Initial: map[string]string{web: r.Versions[web]}})
	v.vault.keep(webSecret(false), "number two")
	if r := again.accept(xdstest.SDS); string(secretIn(t, r, web).GetTlsCertificate().GetPrivateKey().GetInlineBytes()) != "key number two" {
		t.Error("what the client had came again")
	}
}

func TestSecretsPrintNothing(t *testing.T) {
	s := Secret{Fingerprint: "f", Material: envoy.KeyMaterial{Chain: []byte("canary"), Key: []byte("canary"), Authorities: []byte("canary")}}
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("secret", "s", s, "m", s.Material)
	text, _ := json.Marshal(s)
	hex := fmt.Sprintf("%x", "canary")
	for _, said := range []string{fmt.Sprint(s), fmt.Sprintf("%+v %#v %s %x %v %q", s, s, s.Material, s.Material, &s, s), string(text), log.String()} {
		if strings.Contains(said, "canary") || strings.Contains(said, hex) || strings.Contains(said, "Y2FuYXJ5") || strings.Contains(said, "99 97 110") {
			t.Errorf("a secret prints as %s", said)
		}
	}
}

// A push waits neither for a timer nor for a snapshot.
func TestX23RotationIsPushedWithinASecond(t *testing.T) {
	v := newVaultHub(t, true).onSocket()
	v.vault.keep(webSecret(false), "one")
	c := v.client(xdstest.Options{Delta: true, Node: ingress()})
	c.get(xdstest.Request{Type: xdstest.SDS, Names: []string{web}})
	start := time.Now()
	v.vault.keep(webSecret(false), "number two")
	c.accept(xdstest.SDS)
	if took := time.Since(start); took > time.Second {
		t.Errorf("it took %s", took)
	}
}
