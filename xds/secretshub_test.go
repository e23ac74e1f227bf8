package xds

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
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
	"isthmus.dev/isthmus/xds/envoy/transport"
	"isthmus.dev/isthmus/xds/xdstest"
)

// fakeSecrets gives secrets by name, to whatever cluster and namespace.
type fakeSecrets struct {
	mu       sync.Mutex
	byRef    map[SecretRef]Secret
	followed map[SecretRef]int
	changed  chan struct{}
}

func newFakeSecrets() *fakeSecrets {
	return &fakeSecrets{byRef: map[SecretRef]Secret{}, followed: map[SecretRef]int{}, changed: make(chan struct{})}
}

func webSecret(authorities bool) SecretRef {
	return SecretRef{Cluster: "c1", Namespace: "shop", Name: "web", Authorities: authorities}
}

// keep stores content under the reference.
func (v *fakeSecrets) keep(ref SecretRef, content string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	s := Secret{Fingerprint: fmt.Sprintf("%x", len(content)) + content[:1], Material: transport.KeyMaterial{
		Chain: []byte("chain " + content),
		Key:   []byte("key " + content),
	}}
	if ref.Authorities {
		s.Material = transport.KeyMaterial{Authorities: []byte("ca " + content)}
	}
	v.store(ref, s)
}

// put stores what a real proxy can use.
func (v *fakeSecrets) put(ref SecretRef, material transport.KeyMaterial) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.store(ref, Secret{Fingerprint: fmt.Sprint(len(v.byRef), len(material.CRL)), Material: material})
}

func (v *fakeSecrets) store(ref SecretRef, s Secret) {
	v.byRef[ref] = s
	close(v.changed)
	v.changed = make(chan struct{})
}

func (v *fakeSecrets) Follow(ref SecretRef, _ func() time.Time) (done func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.followed[ref]++
	return func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.followed[ref]--
	}
}

func (v *fakeSecrets) Secret(ref SecretRef) (Secret, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	s, ok := v.byRef[ref]
	return s, ok
}

func (v *fakeSecrets) Changed() <-chan struct{} {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.changed
}

func (v *fakeSecrets) follows(ref SecretRef) int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.followed[ref]
}

// eventCounts counts events.
type eventCounts struct {
	uncounted
	mu     sync.Mutex
	events map[Event]int
}

func (c *eventCounts) Count(e Event, _ envoy.Type) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.events[e]++
}

func (c *eventCounts) of(e Event) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.events[e]
}

// secretsHub is a hub with a Gateway whose listener refers to kubernetes://web.
type secretsHub struct {
	*hub
	secrets *fakeSecrets
	counts  *eventCounts
	log     *testbed.LogText
	config  *federation.Writer
}

func newSecretsHub(t *testing.T, onSocket bool) *secretsHub {
	v := &secretsHub{secrets: newFakeSecrets(), counts: &eventCounts{events: map[Event]int{}}, log: &testbed.LogText{}}
	v.hub = newHub(t, func(o *Options) {
		o.Secrets, o.SecretsOnSocket, o.Metrics = v.secrets, onSocket, v.counts
		o.Logger = slog.New(slog.NewTextHandler(v.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	v.config = v.aggregate.Open(federation.ShardKey{Provider: federation.Operator})
	v.configure("web")
	return v
}

// configure makes the Gateway refer to the credential; empty: there is none.
func (v *secretsHub) configure(credential string) {
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
func (v *secretsHub) listenAt(network, address string, server, client credentials.TransportCredentials) {
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
	v.conn, err = grpc.NewClient(target, grpc.WithTransportCredentials(client))
	if err != nil {
		v.t.Fatal(err)
	}
	conn := v.conn
	v.clients = 0
	v.t.Cleanup(func() { conn.Close() })
}

func (v *secretsHub) onSocket() *secretsHub {
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
