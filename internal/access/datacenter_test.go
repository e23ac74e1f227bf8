package access

import (
	"context"
	"crypto/x509"
	"errors"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/identity/authority"
)

// fakeDatacenter knows one token of shop/web, and leaves by their common name.
type fakeDatacenter struct {
	good   Token
	asked  int
	fails  error
	leaves map[string]Account
}

func (d *fakeDatacenter) Account(_ context.Context, _ string, token Token) (Account, error) {
	d.asked++
	switch {
	case d.fails != nil:
		return Account{}, d.fails
	case token != d.good:
		return Account{}, Refuse("Consul does not accept the token")
	}
	return Account{Namespace: "shop", Name: "web"}, nil
}

func (d *fakeDatacenter) Leaf(_ string, presented []*x509.Certificate) (account Account, known bool, err error) {
	account, known = d.leaves[presented[0].Subject.CommonName]
	return account, known, nil
}

func (d *fakeDatacenter) Roots() []*x509.Certificate { return nil }

const consulToken = Token("0b3e9aee-6ee9-4c4b-8f0d-31b3b1a5a3a1")

// consulCall shows a token as proxies of Consul do.
func consulCall(t *testing.T, token Token, cluster string) context.Context {
	t.Helper()
	return call{cluster: cluster, more: map[string][]string{"x-consul-token": {string(token)}}}.context(t)
}

// TestU20ATokenIsShownToItsOwnDatacenterOnly: where it is not known which that is, nobody is asked.
func TestU20ATokenIsShownToItsOwnDatacenterOnly(t *testing.T) {
	w := newFixture(map[federation.ClusterID]AttachState{"dc1": {Attached: true, UID: "a"}, "dc2": {Attached: true, UID: "b"}})
	one, two := &fakeDatacenter{good: consulToken}, &fakeDatacenter{good: consulToken}
	refuses := func(token Token, cluster, want string) {
		t.Helper()
		if _, err := w.Identify(consulCall(t, token, cluster)); status.Code(err) != codes.Unauthenticated ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", cluster, err, want)
		}
	}
	refuses(consulToken, "", "of no Consul datacenter")
	w.tokens.AttachDatacenter("dc1", one)
	if who, err := w.Identify(consulCall(t, consulToken, "")); err != nil || !who.Datacenter ||
		who.Workload != workload("shop", "web") || !who.Ends.IsZero() {
		t.Errorf("of the only one: %+v, %v", who, err)
	}
	detach := w.tokens.AttachDatacenter("dc2", two)
	refuses(consulToken, "", "which of several")
	refuses(consulToken, "dc3", "not a Consul datacenter whose tokens")
	if one.asked != 1 || two.asked != 0 {
		t.Errorf("they were asked %d and %d times", one.asked, two.asked)
	}
	detach()
	refuses(consulToken, "dc2", "not a Consul datacenter whose tokens")
}

// TestU21TokensOfConsulAreBounded: the bounds are those of reviews; a workload with a bad token locks out
// no other behind its address, and a datacenter that is silent refuses nobody.
func TestU21TokensOfConsulAreBounded(t *testing.T) {
	w, d := newFixture(map[federation.ClusterID]AttachState{"dc1": {Attached: true, UID: "a"}, "new": {Attached: true}}),
		&fakeDatacenter{good: consulToken}
	w.tokens.AttachDatacenter("dc1", d)
	w.tokens.AttachDatacenter("new", d)
	fails := func(token Token, cluster string) codes.Code {
		_, err := w.Identify(consulCall(t, token, cluster))
		return status.Code(err)
	}
	for range failures {
		fails("bad", "dc1")
	}
	if got := fails("bad", "dc1"); got != codes.ResourceExhausted || d.asked != 1 {
		t.Errorf("a bad token again and again: %v after %d questions", got, d.asked)
	}
	if got := fails(consulToken, "dc1"); got != codes.OK {
		t.Errorf("another workload behind the address: %v", got)
	}
	for _, odd := range []Token{"with space", Token(strings.Repeat("x", maxConsulToken+1)), "\x01"} {
		if got := fails(odd, "dc1"); got != codes.Unauthenticated || d.asked != 2 {
			t.Errorf("an odd token: %v after %d questions", got, d.asked)
		}
	}
	if got := fails(consulToken, "new"); got != codes.Unavailable || d.asked != 2 {
		t.Errorf("before it is known which datacenter it is: %v", got)
	}
	who, err := w.Identify(consulCall(t, consulToken, "dc1"))
	if err != nil {
		t.Fatal(err)
	}
	d.fails = NoAnswer("its Consul does not answer")
	for i := range breakAfter + 2 {
		if got := fails(Token(strings.Repeat("y", i+1)), "dc1"); got != codes.Unavailable {
			t.Errorf("without an answer: %v", got)
		}
	}
	if d.asked != 2+breakAfter {
		t.Errorf("a silent datacenter was asked %d times", d.asked-2)
	}
	if err := w.Allow(who, Node{Name: "web.shop", Cluster: "dc1", Namespace: "shop"}); err != nil {
		t.Errorf("an open stream meanwhile: %v", err)
	}
}

// TestU20ALeafIsOfOneDatacenter: certificates of Connect prove workloads of their own cluster only, and those
// of the mesh are verified as before.
func TestU20ALeafIsOfOneDatacenter(t *testing.T) {
	w := newFixture(map[federation.ClusterID]AttachState{
		"dc1": {Attached: true, UID: "a", TrustDomain: "one.example"},
		"dc2": {Attached: true, UID: "b"},
	})
	leaves := NewLeaves(w, w)
	w.proofs["mesh"] = authority.Proof{Workload: workload("shop", "mesh"), Ends: time.Now().Add(time.Hour)}
	leaf := func(name string) []*x509.Certificate {
		c := &x509.Certificate{}
		c.Subject.CommonName = name
		return []*x509.Certificate{c}
	}
	of := &fakeDatacenter{leaves: map[string]Account{"web": {Namespace: "shop", Name: "web"}, "bad": {Namespace: "sh/op", Name: "web"}}}
	detach := leaves.Attach("dc1", of)
	if got, err := leaves.Verify(leaf("web")); err != nil || !got.Datacenter ||
		got.Workload.String() != "spiffe://one.example/ns/shop/sa/web" || len(got.Clusters) != 1 || got.Clusters[0] != "dc1" {
		t.Errorf("it proves %+v, %v", got, err)
	}
	if got, err := leaves.Verify(leaf("mesh")); err != nil || got.Datacenter {
		t.Errorf("one of the mesh: %+v, %v", got, err)
	}
	leaves.Attach("dc2", of)
	_, several := leaves.Verify(leaf("web"))
	_, odd := leaves.Verify(leaf("bad"))
	detach()
	if got, err := leaves.Verify(leaf("web")); err != nil || got.Clusters[0] != "dc2" {
		t.Errorf("after the other was detached: %+v, %v", got, err)
	}
	if err := errors.Join(several, odd); several == nil || odd == nil || !strings.Contains(several.Error(), "several clusters") {
		t.Errorf("of two clusters, and of no account: %v", err)
	}
}
