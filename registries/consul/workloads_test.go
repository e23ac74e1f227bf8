package consul

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/registries/registrytest"
)

// proving is a registry whose workloads prove who they are.
func proving(t *testing.T, r *rig, s WorkloadsSection) *Registry {
	t.Helper()
	r.options.Workloads, r.options.Token = &s, func() (string, error) { return r.Token, nil }
	registry, err := New(r.options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { registry.workloads.client.http.CloseIdleConnections() })
	return registry
}

// refused is the reason for which a proof does not count; definite where asking again is in vain.
func refused(err error) (why string, definite bool) {
	var proof *ProofError
	if !errors.As(err, &proof) {
		return "", false
	}
	return proof.Why, proof.Definite
}

// TestU21TokensAndLeavesCountForAsLongAsConsulSaysSo shows what a real Consul knows: a token that is
// revoked or has ended proves nothing any more, nor does what another Consul says.
func TestU21TokensAndLeavesCountForAsLongAsConsulSaysSo(t *testing.T) {
	t.Parallel()
	r := startRig(t, testbed.ConsulOptions{ACL: true}, Options{Wait: time.Second})
	r.register("web", "web-1", "10.20.30.1", 8080)
	registry := proving(t, r, WorkloadsSection{Tokens: true, Certificates: true, Namespace: "shop"})
	w := registry.workloads
	v := heardOf(t, registry).Wait(t, "the catalog", func(v registrytest.View) bool { return len(v.Services) > 0 })
	for _, shard := range v.Services {
		if got := shard.Endpoints[0].ServiceAccount; got != "shop/web" {
			t.Errorf("an endpoint of web has the account %q", got)
		}
	}
	ctx := t.Context()
	if err := w.guard.prove(ctx, false); err != nil {
		t.Fatal(err)
	}
	uid := w.guard.identity().String()
	var made struct{ SecretID, AccessorID string }
	r.Put("/v1/acl/token", map[string]any{
		"ServiceIdentities": []any{map[string]any{"ServiceName": "web"}},
		"ExpirationTTL":     "2h",
	}).Decode(t, &made)
	account, ends, err := w.AccountOf(ctx, uid, made.SecretID)
	if err != nil || account != (Account{"shop", "web"}) || time.Until(ends) > 2*time.Hour || time.Until(ends) < time.Hour {
		t.Fatalf("it is %v until %v, %v", account, ends, err)
	}
	if why, definite := refused(second(w.AccountOf(ctx, "dc1/another", made.SecretID))); definite || !strings.Contains(why, "another Consul") {
		t.Errorf("for another Consul: %q", why)
	}
	r.Do(http.MethodDelete, "/v1/acl/token/"+made.AccessorID, nil)
	if why, definite := refused(second(w.AccountOf(ctx, uid, made.SecretID))); !definite || !strings.Contains(why, "does not accept") {
		t.Errorf("a revoked token: %q, definite %v", why, definite)
	}
	r.leaf(t, w, uid)
	r.Cut(t)
	if err := second(w.AccountOf(ctx, uid, made.SecretID)); err == nil || errors.As(err, new(*ProofError)) {
		t.Errorf("without an answer: %v", err)
	}
	if len(w.Roots()) == 0 {
		t.Error("the roots are gone with the link")
	}
}

func second(_ Account, _ time.Time, err error) error { return err }

// leaf shows a certificate of Connect.
func (r *rig) leaf(t *testing.T, w *Workloads, uid string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); w.watch(ctx) }()
	defer func() { cancel(); <-ended }()
	testbed.WaitFor(t, 5*time.Minute, "the roots", func() error {
		if len(w.Roots()) == 0 {
			return errors.New("there are none")
		}
		return nil
	})
	var said struct{ CertPEM, PrivateKeyPEM string }
	r.Get("/v1/agent/connect/ca/leaf/web", &said)
	pair, err := tls.X509KeyPair([]byte(said.CertPEM), []byte(said.PrivateKeyPEM))
	if err != nil {
		t.Fatal(err)
	}
	if account, known, err := w.Leaf(uid, []*x509.Certificate{pair.Leaf}); !known || err != nil || account != (Account{"shop", "web"}) {
		t.Errorf("the leaf is of %v, known %v, %v", account, known, err)
	}
	if _, known, err := w.Leaf("dc1/another", []*x509.Certificate{pair.Leaf}); !known || err == nil {
		t.Errorf("with another Consul attached: known %v, %v", known, err)
	}
	forged := testbed.NewAuthority(t, "other").TLS(testbed.Subject{
		Name:  "web",
		Hosts: []string{pair.Leaf.URIs[0].String()},
	}).Certificates[0].Leaf
	if _, known, err := w.Leaf(uid, []*x509.Certificate{forged}); !known || err == nil {
		t.Errorf("a leaf that others signed: known %v, %v", known, err)
	}
	roots := *w.roots.Load()
	if err := roots.verify([]*x509.Certificate{pair.Leaf}, pair.Leaf.NotAfter.Add(time.Minute)); err == nil {
		t.Error("a leaf counts after its end")
	}
	if err := roots.verify(roots.roots, time.Now()); err == nil {
		t.Error("a root counts as a leaf")
	}
}

// TestU21SettingsOfAccounts: what the section says must be complete.
func TestU21SettingsOfAccounts(t *testing.T) {
	t.Parallel()
	entry := func(e AccountEntry) WorkloadsSection {
		return WorkloadsSection{Tokens: true, Namespace: "shop", Accounts: []AccountEntry{e}}
	}
	for name, c := range map[string]struct {
		section WorkloadsSection
		address string
		want    string
	}{
		"nothing proves":         {WorkloadsSection{}, "", "set tokens or certificates"},
		"namespace":              {WorkloadsSection{Tokens: true, Namespace: "No"}, "", "workloads.namespace"},
		"neither":                {entry(AccountEntry{ServiceAccount: "a"}), "", "either service or role"},
		"both":                   {entry(AccountEntry{Service: "a", Role: "b"}), "", "either service or role"},
		"no namespace":           {WorkloadsSection{Tokens: true, Accounts: []AccountEntry{{Service: "a"}}}, "", "namespace"},
		"account":                {entry(AccountEntry{Service: "a", ServiceAccount: "a/b"}), "", "serviceAccount"},
		"name is not an account": {entry(AccountEntry{Service: "a_b"}), "", "serviceAccount"},
		"twice": {WorkloadsSection{Tokens: true, Namespace: "shop", Accounts: []AccountEntry{
			{Service: "a"},
			{Service: "a", ServiceAccount: "b"},
		}}, "", "twice"},
		"tokens in plain text":  {WorkloadsSection{Tokens: true}, "http://192.0.2.1:8500", "plain text"},
		"leaves over http":      {WorkloadsSection{Certificates: true}, "http://192.0.2.1:8500", ""},
		"account with an entry": {entry(AccountEntry{Service: "a_b", ServiceAccount: "a.b"}), "", ""},
	} {
		o := Options{Cluster: "c1", Address: "https://192.0.2.1:8501", Workloads: &c.section}
		if c.address != "" {
			o.Address = c.address
		}
		if _, err := New(o); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// TestU21AnAnswerAboutAnotherTokenProvesNothing: an agent uses a token of its own where something on
// the way drops that of the request.
func TestU21AnAnswerAboutAnotherTokenProvesNothing(t *testing.T) {
	t.Parallel()
	s := &scripted{asked: map[string]int{}, index: 100}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.URL.Path == tokenPath {
			_, _ = fmt.Fprint(w, `{"AccessorID":"a","SecretID":"of-the-agent","ServiceIdentities":[{"ServiceName":"web"}]}`)
			return
		}
		s.ServeHTTP(w, q)
	}))
	t.Cleanup(front.Close)
	registry, err := New(Options{Cluster: "c1", Address: front.URL, Workloads: &WorkloadsSection{Tokens: true, Namespace: "shop"}})
	if err != nil {
		t.Fatal(err)
	}
	w := registry.workloads
	defer w.client.http.CloseIdleConnections()
	if err := w.guard.prove(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	why, definite := refused(second(w.AccountOf(t.Context(), w.guard.identity().String(), "of-the-workload")))
	if definite || !strings.Contains(why, "another token") {
		t.Errorf("it says %q, definite %v", why, definite)
	}
}
