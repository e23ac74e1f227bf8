package identity

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"isthmus.dev/isthmus/internal/identity/authority"
)

// shared is a store of one replica.
type shared struct {
	value    []byte
	revision int64
}

func (s *shared) Load(context.Context) ([]byte, int64, error) { return s.value, s.revision, nil }

func (s *shared) Save(_ context.Context, value []byte, revision int64) (bool, error) {
	s.value, s.revision = value, revision+1
	return true, nil
}

// plain seals nothing.
type plain struct{}

func (plain) Seal(secret []byte, _ string) ([]byte, error) { return secret, nil }
func (plain) Open(sealed []byte, _ string) ([]byte, error) { return sealed, nil }

// mesh is a real authority with what proxies have of it.
type mesh struct {
	t         *testing.T
	authority *authority.Authority
	trust     *authority.Trust
	secrets   *Secrets
	log       bytes.Buffer
	mu        sync.Mutex
	fails     error
	ahead     atomic.Int64 // nanoseconds, of the machine's clock
}

// now is the machine's clock.
func (m *mesh) now() time.Time { return time.Now().Add(time.Duration(m.ahead.Load())) }

// set moves the machine's clock, and waits until the hub has looked at it.
func (m *mesh) set(by time.Duration) {
	m.ahead.Add(int64(by))
	<-time.NewTimer(2 * lookEvery).C
	synctest.Wait()
}

// Sign is part of Issuer.
func (m *mesh) Sign(o authority.Order) (authority.Leaf, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fails != nil {
		return authority.Leaf{}, m.fails
	}
	return m.authority.Sign(o)
}

func (m *mesh) fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fails = err
}

// inMesh runs the test in a bubble of its own time, with everything running.
func inMesh(t *testing.T, test func(*mesh)) {
	synctest.Test(t, func(t *testing.T) {
		m := &mesh{t: t}
		logger := slog.New(slog.NewTextHandler(&m.log, nil))
		var err error
		m.authority, err = authority.Open(t.Context(), authority.Options{
			TrustDomain: "mesh.example", Store: &shared{}, Keys: plain{}, Logger: logger, Now: m.now,
			Policy: authority.Policy{Leaf: 2 * time.Hour, Overlap: time.Hour, Proof: 3 * time.Hour},
		})
		if err != nil {
			t.Fatal(err)
		}
		m.trust, err = authority.OpenTrust(authority.TrustOptions{Authority: m.authority, Logger: logger, Now: m.now})
		if err != nil {
			t.Fatal(err)
		}
		m.secrets = New(Options{Issuer: m, Roots: m.trust, Logger: logger, Now: m.now})
		ctx, cancel := context.WithCancel(t.Context())
		var group sync.WaitGroup
		for _, run := range []func(context.Context) error{m.authority.Run, m.trust.Run, m.secrets.Run} {
			group.Go(func() { _ = run(ctx) })
		}
		test(m)
		cancel()
		group.Wait()
		if strings.Contains(m.log.String(), "PRIVATE") {
			t.Error("the log has a key")
		}
	})
}

func ownRef(node string) Ref {
	return Ref{Cluster: "c1", Namespace: "shop", Workload: "spiffe://mesh.example/ns/shop/sa/web", Node: node}
}

// leaf is the certificate of the secret, which must go with its key.
func (m *mesh) leaf(ref Ref) *x509.Certificate {
	m.t.Helper()
	s, ok := m.secrets.Secret(ref)
	if !ok {
		m.t.Fatal("there is no certificate")
	}
	pair, err := tls.X509KeyPair(s.Material.Chain, s.Material.Key)
	if err != nil {
		m.t.Fatal(err)
	}
	if _, err := m.trust.Verify([]*x509.Certificate{pair.Leaf}); err != nil {
		m.t.Error(err)
	}
	return pair.Leaf
}

func TestCertificatesAreRenewedAtHalfTheirLife(t *testing.T) {
	inMesh(t, func(m *mesh) {
		defer m.secrets.Follow(ownRef("one"))()
		first := m.leaf(ownRef("one"))
		time.Sleep(time.Hour - lookEvery) //nolint:forbidigo // the clock is that of the test
		if !m.leaf(ownRef("one")).Equal(first) {
			t.Error("it is renewed before half of its life is over")
		}
		changed := m.secrets.Changed()
		time.Sleep(2 * lookEvery) //nolint:forbidigo // the clock is that of the test
		select {
		case <-changed:
		default:
			t.Error("the channel is not closed")
		}
		if next := m.leaf(ownRef("one")); next.Equal(first) || bytes.Equal(next.RawSubjectPublicKeyInfo, first.RawSubjectPublicKeyInfo) {
			t.Error("after half of its life it is the same, or has the same key")
		}
	})
}

// TestU54CertificatesFollowTheClock: when the clock of the machine is set forward, or it slept, proxies get certificates that are
// valid now, and also when it is set back to before theirs. A small correction changes nothing.
func TestU54CertificatesFollowTheClock(t *testing.T) {
	inMesh(t, func(m *mesh) {
		defer m.secrets.Follow(ownRef("one"))()
		before := m.leaf(ownRef("one"))
		for _, step := range []struct {
			by      time.Duration
			renewed bool
		}{{-10 * time.Second, false}, {10 * time.Second, false}, {3 * time.Hour, true}, {-2 * time.Hour, true}, {-time.Second, false}} {
			m.set(step.by)
			now := m.leaf(ownRef("one")) // and it is verified at this time
			if now.Equal(before) == step.renewed {
				t.Errorf("after %v the certificate of %s to %s is followed by one of %s to %s", step.by, before.NotBefore, before.NotAfter,
					now.NotBefore, now.NotAfter)
			}
			before = now
		}
		// A machine that slept has no more of the monotonic clock, by which Go compares where it can.
		if c := m.secrets.own.certificates[ownRef("one")]; c.renew != c.renew.Round(0) {
			t.Errorf("the time of renewal is not of the clock that others see: %s", c.renew)
		}
	})
}

func TestEachNodeHasAKeyOfItsOwnWhileItIsThere(t *testing.T) {
	inMesh(t, func(m *mesh) {
		gone := m.secrets.Follow(ownRef("one"))
		defer m.secrets.Follow(ownRef("two"))()
		if bytes.Equal(m.leaf(ownRef("one")).RawSubjectPublicKeyInfo, m.leaf(ownRef("two")).RawSubjectPublicKeyInfo) {
			t.Error("two nodes have one key")
		}
		gone()
		if _, ok := m.secrets.Secret(ownRef("one")); ok {
			t.Error("the key of a node that has gone is kept")
		}
		if _, ok := m.secrets.Secret(ownRef("three")); ok {
			t.Error("a key is made for one whom nobody follows")
		}
		foreign := ownRef("four")
		foreign.Workload = "spiffe://other.example/ns/shop/sa/web"
		defer m.secrets.Follow(foreign)()
		if _, ok := m.secrets.Secret(foreign); ok {
			t.Error("a workload of another trust domain has a certificate of this one")
		}
	})
}

// While nobody can sign, the last certificate stays, and it is tried again.
func TestRenewalIsTriedAgain(t *testing.T) {
	inMesh(t, func(m *mesh) {
		defer m.secrets.Follow(ownRef("one"))()
		first := m.leaf(ownRef("one"))
		m.fail(errors.New("no signer"))
		defer m.secrets.Follow(ownRef("late"))()
		time.Sleep(90 * time.Minute) //nolint:forbidigo // the clock is that of the test
		if !m.leaf(ownRef("one")).Equal(first) {
			t.Error("the certificate went with the signer")
		}
		if _, ok := m.secrets.Secret(ownRef("late")); ok {
			t.Error("a certificate without a signer")
		}
		m.fail(nil)
		time.Sleep(retryEvery + lookEvery) //nolint:forbidigo // the clock is that of the test
		if m.leaf(ownRef("one")).Equal(first) {
			t.Error("it is not tried again")
		}
		m.leaf(ownRef("late"))
	})
}

func TestNewRootsReachProxies(t *testing.T) {
	inMesh(t, func(m *mesh) {
		roots := ownRef("one")
		roots.Authorities = true
		defer m.secrets.Follow(roots)()
		before, ok := m.secrets.Secret(roots)
		if !ok || before.Material.Key != nil || before.Material.Bundles != nil {
			t.Fatalf("the roots are %v, %t", before, ok)
		}
		changed := m.secrets.Changed()
		if err := m.authority.Rotate(t.Context(), false); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		select {
		case <-changed:
		default:
			t.Error("the channel is not closed")
		}
		after, _ := m.secrets.Secret(roots)
		if n := bytes.Count(after.Material.Authorities, []byte("BEGIN CERTIFICATE")); n != 2 || after.Fingerprint == before.Fingerprint {
			t.Errorf("%d roots", n)
		}
	})
}

func TestRootsOfSeveralTrustDomainsStayApart(t *testing.T) {
	one, two := []byte("one"), []byte("two")
	for name, c := range map[string]struct {
		bundles map[string][]byte
		want    string
	}{
		"none":         {nil, ""},
		"another's":    {map[string][]byte{"b.example": two}, ""},
		"its own":      {map[string][]byte{"a.example": one}, "one"},
		"both":         {map[string][]byte{"a.example": one, "b.example": two}, "a.example=one b.example=two"},
		"both changed": {map[string][]byte{"a.example": one, "b.example": one}, "a.example=one b.example=one"},
	} {
		s := rootsFor("a.example", c.bundles)
		got := string(s.Material.Authorities)
		if len(s.Material.Bundles) > 0 {
			got = fmt.Sprintf("a.example=%s b.example=%s", s.Material.Bundles["a.example"], s.Material.Bundles["b.example"])
		}
		if got != c.want || (s.Fingerprint == "") != (c.want == "") {
			t.Errorf("%s: %q", name, got)
		}
	}
	if rootsFor("a.example", map[string][]byte{"a.example": one, "b.example": two}).Fingerprint == rootsFor("a.example",
		map[string][]byte{"a.example": one, "b.example": one}).Fingerprint {
		t.Error("another domain's roots make no difference")
	}
}

// TestR12SecretsOfOldProofs: a proxy that proved who it is long ago, by its certificate alone since then, keeps the certificate that it
// has and gets no other one; with a new proof it does.
func TestR12SecretsOfOldProofs(t *testing.T) {
	inMesh(t, func(m *mesh) {
		began := time.Now()
		done := m.secrets.FollowProven(ownRef("one"), func() time.Time { return began })
		first := m.leaf(ownRef("one"))
		time.Sleep(2 * time.Hour) //nolint:forbidigo // the clock is that of the test
		synctest.Wait()           // for what is due at this very moment
		last := m.leaf(ownRef("one"))
		if last.Equal(first) {
			t.Fatal("it is not renewed")
		}
		time.Sleep(2 * time.Hour) //nolint:forbidigo // the clock is that of the test
		synctest.Wait()           // for what is due at this very moment
		s, _ := m.secrets.Secret(ownRef("one"))
		if s.Expires.After(began.Add(5 * time.Hour)) {
			t.Errorf("4 h after its last proof it has a certificate until %s", s.Expires)
		}
		if !strings.Contains(m.log.String(), "identity.maxProofAge") {
			t.Error("the log does not say why")
		}
		defer m.secrets.FollowProven(ownRef("one"), time.Now)()
		done()
		time.Sleep(time.Hour + 2*retryEvery) //nolint:forbidigo // the clock is that of the test
		m.leaf(ownRef("one"))
		if s, _ := m.secrets.Secret(ownRef("one")); !s.Expires.After(time.Now()) {
			t.Error("a new proof does not count")
		}
	})
}
