package authority

import (
	"bytes"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"
)

// memory is a store that several replicas share.
type memory struct {
	mu       sync.Mutex
	value    []byte
	revision int64
	fails    error
}

func (m *memory) Load(context.Context) ([]byte, int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.value, m.revision, m.fails
}

func (m *memory) Save(_ context.Context, value []byte, revision int64) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fails != nil || m.revision != revision {
		return false, m.fails
	}
	m.value, m.revision = value, revision+1
	return true, nil
}

// xor is a sealer for tests: its result differs by place.
type xor byte

var errOtherPlace = errors.New("sealed for another place")

func (x xor) Seal(secret []byte, place string) ([]byte, error) {
	out := append([]byte(place+"\x00"), secret...)
	for i := range out {
		out[i] ^= byte(x)
	}
	return out, nil
}

func (x xor) Open(sealed []byte, place string) ([]byte, error) {
	out := bytes.Clone(sealed)
	for i := range out {
		out[i] ^= byte(x)
	}
	at, secret, _ := bytes.Cut(out, []byte{0})
	if string(at) != place {
		return nil, errOtherPlace
	}
	return secret, nil
}

// rig is an authority whose time the test tells.
type rig struct {
	t     *testing.T
	now   time.Time
	store *memory
	log   bytes.Buffer
	*Authority
}

func newRig(t *testing.T, change func(*Options)) *rig {
	t.Helper()
	r := &rig{t: t, now: time.Now().Truncate(time.Second), store: &memory{}}
	r.Authority = r.replica(change)
	return r
}

func (r *rig) options() Options {
	return Options{
		TrustDomain: "mesh.example", Store: r.store, Keys: xor(90), Now: func() time.Time { return r.now },
		Policy: Policy{Leaf: time.Hour, Overlap: 2 * time.Hour, Root: 300 * time.Hour}, Logger: slog.New(slog.NewTextHandler(&r.log, nil)),
	}
}

// replica opens another authority over the same store.
func (r *rig) replica(change func(*Options)) *Authority {
	r.t.Helper()
	o := r.options()
	if change != nil {
		change(&o)
	}
	a, err := Open(r.t.Context(), o)
	if err != nil {
		r.t.Fatal(err)
	}
	return a
}

// pass lets time go by, with a look at its end.
func (r *rig) pass(d time.Duration) {
	r.t.Helper()
	r.now = r.now.Add(d)
	if err := r.reload(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) issue(o Order) *x509.Certificate {
	r.t.Helper()
	if o.Key == nil {
		o.Key = newKey(r.t).Public()
	}
	if o.Workload == (Workload{}) {
		o.Workload = web
	}
	leaf, err := r.Sign(o)
	if err != nil {
		r.t.Fatal(err)
	}
	return certificates(r.t, leaf.Chain)[0]
}

var web = Workload{"mesh.example", "shop", "web"}

func newKey(t testing.TB) crypto.Signer {
	t.Helper()
	key, _, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func certificates(t testing.TB, text []byte) []*x509.Certificate {
	t.Helper()
	all, err := ParseCertificates("test", text)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// requestPEM makes a certificate signing request.
func requestPEM(t testing.TB, template x509.CertificateRequest, key crypto.Signer) []byte {
	t.Helper()
	der, err := x509.CreateCertificateRequest(rand.Reader, &template, key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
}
