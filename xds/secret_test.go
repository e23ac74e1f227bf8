package xds

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/transport"
	"isthmus.dev/isthmus/xds/xdstest"
)

const web = "kubernetes://web"

func TestX23SecretsArePushedOnRotation(t *testing.T) {
	bothVariants(t, func(t *testing.T, delta bool) {
		v := newSecretsHub(t, true).onSocket()
		v.secrets.keep(webSecret(false), "canary-one")
		c := v.client(xdstest.Options{Delta: delta, Node: ingress()})
		c.get(xdstest.Request{Type: xdstest.LDS})
		first := c.get(xdstest.Request{Type: xdstest.SDS, Names: []string{web}})
		if got := secretIn(t, first, web).GetTlsCertificate().GetPrivateKey().GetInlineBytes(); string(got) != "key canary-one" {
			t.Errorf("the key is %q", got)
		}
		v.secrets.keep(webSecret(true), "canary-authorities") // to which no listener refers
		v.secrets.keep(webSecret(false), "canary-number-two")
		second := c.accept(xdstest.SDS)
		if got := secretIn(t, second, web).GetTlsCertificate().GetCertificateChain().GetInlineBytes(); string(got) != "chain canary-number-two" {
			t.Errorf("the chain is %q", got)
		}
		if first.Version == second.Version || len(second.Resources) != 1 {
			t.Errorf("versions %s and %s, %q", first.Version, second.Version, second.Names())
		}
		v.secrets.keep(webSecret(false), "canary-number-two")
		v.secrets.keep(webSecret(false), "canary-the-third")
		if r := c.accept(xdstest.SDS); string(secretIn(t, r,
			web).GetTlsCertificate().GetPrivateKey().GetInlineBytes()) != "key canary-the-third" {
			t.Error("what was the same was sent again")
		}
		if strings.Contains(v.log.String(), "canary") {
			t.Errorf("the log tells secrets:\n%s", v.log)
		}
	})
}

func TestX23NamesOfOthersAreRefused(t *testing.T) {
	v := newSecretsHub(t, true).onSocket()
	v.secrets.keep(webSecret(false), "one")
	v.secrets.keep(webSecret(true), "authorities")
	v.secrets.keep(SecretRef{Cluster: "c1", Namespace: "shop", Name: "other"}, "other")
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

// TestG17GrantedSecretsAreForOneNamespace: with a grant, the credentials are Secrets of the
// namespace that it names, for proxies of the namespace that it names, and of no other.
func TestG17GrantedSecretsAreForOneNamespace(t *testing.T) {
	const granted = "kubernetes-ingress://store/web"
	v := newSecretsHub(t, true).onSocket()
	v.secrets.keep(webSecret(false), "own")
	v.secrets.keep(SecretRef{Cluster: "c1", Namespace: "store", Name: "web"}, "of a file")
	v.secrets.keep(SecretRef{Cluster: "c1", Namespace: "store", Name: "web", Granted: true}, "granted")
	grant := func(to string) {
		o, _ := v.aggregate.Latest().Object(federation.ObjectKey{
			Group: "networking.istio.io", Kind: "Gateway",
			Namespace: "infra", Name: "front",
		})
		with := *o
		with.Credentials = federation.CredentialGrant{From: "store", To: to}
		v.config.Update(federation.Edit{Objects: federation.Delta[federation.ObjectKey,
			*federation.Object]{Set: map[federation.ObjectKey]*federation.Object{o.Key: &with}}})
	}
	grant("shop")
	c := v.client(xdstest.Options{Delta: true, Node: ingress()})
	r := c.get(xdstest.Request{Type: xdstest.SDS, Names: []string{
		web, granted, "kubernetes-ingress://store/other",
		"kubernetes-ingress://shop/web",
	}})
	wantNames(t, r, granted)
	if got := secretIn(t, r, granted).GetTlsCertificate().GetPrivateKey().GetInlineBytes(); string(got) != "key granted" {
		t.Errorf("the key is %q", got)
	}
	grant("istio-system")
	if r := c.accept(xdstest.SDS); len(r.Resources) > 0 || !slices.Equal(r.Removed, []string{granted}) {
		t.Errorf("once the grant is for another namespace: %q, -%q", r.Names(), r.Removed)
	}
	other := v.client(xdstest.Options{Delta: true, Node: ingress()})
	if r := other.get(xdstest.Request{Type: xdstest.SDS, Names: []string{web, granted}}); len(r.Resources) > 0 {
		t.Errorf("a proxy of another namespace gets %q", r.Names())
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
			v := newSecretsHub(t, c.onSocket)
			v.secrets.keep(webSecret(false), "one")
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
		v := newSecretsHub(t, true).onSocket()
		v.secrets.keep(webSecret(false), "one")
		c := v.client(xdstest.Options{Delta: delta, Node: ingress()})
		c.get(xdstest.Request{Type: xdstest.SDS, Names: []string{web}})
		v.secrets.keep(webSecret(false), "number two")
		c.nack(c.next(xdstest.SDS), web+" is bad")
		repair := c.accept(xdstest.SDS)
		if len(repair.Resources)+len(repair.Removed) > 0 {
			t.Errorf("the repair has %q, -%q", repair.Names(), repair.Removed)
		}
		v.secrets.keep(webSecret(false), "third of them")
		if r := c.accept(xdstest.SDS); string(secretIn(t, r, web).GetTlsCertificate().GetPrivateKey().GetInlineBytes()) != "key third of them" {
			t.Error("another secret came")
		}
	})
}

// Only what is referred to is followed, for as long as somebody does.
func TestSecretsAreFollowedWhileReferredTo(t *testing.T) {
	v := newSecretsHub(t, true).onSocket()
	v.secrets.keep(webSecret(false), "one")
	c := v.client(xdstest.Options{Delta: true, Node: ingress()})
	c.get(xdstest.Request{Type: xdstest.SDS, Names: []string{web}})
	if n := v.secrets.follows(webSecret(false)); n != 1 {
		t.Errorf("followed %d times", n)
	}
	v.configure("")
	wantRemoved(t, c.accept(xdstest.SDS), web)
	v.configure("web")
	wantNames(t, c.accept(xdstest.SDS), web)
	c.Close()
	testbed.WaitFor(t, patience, "the secret to be let go", func() error {
		if n := v.secrets.follows(webSecret(false)); n != 0 {
			return fmt.Errorf("followed %d times", n)
		}
		return nil
	})
}

// A client that has the secret of that fingerprint is not sent it again.
func TestX10SecretsThatTheClientHasAreNotSent(t *testing.T) {
	v := newSecretsHub(t, true).onSocket()
	v.secrets.keep(webSecret(false), "one")
	c := v.client(xdstest.Options{Delta: true, Node: ingress()})
	r := c.get(xdstest.Request{Type: xdstest.SDS, Names: []string{web}})
	again := v.client(xdstest.Options{Delta: true, Node: ingress()})
	again.ask(xdstest.Request{Type: xdstest.SDS, Names: []string{web}, Initial: map[string]string{web: r.Versions[web]}})
	v.secrets.keep(webSecret(false), "number two")
	if r := again.accept(xdstest.SDS); string(secretIn(t, r, web).GetTlsCertificate().GetPrivateKey().GetInlineBytes()) != "key number two" {
		t.Error("what the client had came again")
	}
}

func TestSecretsPrintNothing(t *testing.T) {
	s := Secret{Fingerprint: "f", Material: transport.KeyMaterial{
		Chain: []byte("canary"), Key: []byte("canary"),
		Authorities: []byte("canary"),
	}}
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("secret", "s", s, "m", s.Material)
	text, _ := json.Marshal(s)
	hex := fmt.Sprintf("%x", "canary")
	for _, said := range []string{
		fmt.Sprint(s), fmt.Sprintf("%+v %#v %s %x %v %q", s, s, s.Material, s.Material, &s, s),
		string(text), log.String(),
	} {
		if strings.Contains(said, "canary") || strings.Contains(said, hex) || strings.Contains(said, "Y2FuYXJ5") ||
			strings.Contains(said, "99 97 110") {
			t.Errorf("a secret prints as %s", said)
		}
	}
}

// A push waits neither for a timer nor for a snapshot.
func TestX23RotationIsPushedWithinASecond(t *testing.T) {
	v := newSecretsHub(t, true).onSocket()
	v.secrets.keep(webSecret(false), "one")
	c := v.client(xdstest.Options{Delta: true, Node: ingress()})
	c.get(xdstest.Request{Type: xdstest.SDS, Names: []string{web}})
	number := "number i"
	testbed.Within(t, time.Second, func() time.Duration {
		start := time.Now()
		number += "i"
		v.secrets.keep(webSecret(false), number)
		c.accept(xdstest.SDS)
		return time.Since(start)
	})
}
