package authority

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"isthmus.dev/isthmus/internal/kube/listwatch"
	"isthmus.dev/isthmus/internal/kube/listwatch/listwatchtest"
	"isthmus.dev/isthmus/internal/pemtext"
)

// outer is someone else's root with an intermediate.
type outer struct {
	root generation
	at   time.Time
}

func newOuter(t *testing.T, at time.Time) outer {
	t.Helper()
	root, err := newRoot("mesh.example", at, 1000*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	root.chain[0].MaxPathLen, root.chain[0].MaxPathLenZero = -1, false
	template := *root.chain[0]
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, root.key.Public(), root.key)
	if err != nil {
		t.Fatal(err)
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	root.chain, root.roots = []*x509.Certificate{c}, []*x509.Certificate{c}
	return outer{root, at}
}

// files is a new intermediate of the root.
func (o outer) files(t *testing.T, change func(*x509.Certificate)) Files {
	t.Helper()
	key := newKey(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "intermediate"},
		NotBefore: o.at.Add(-time.Hour), NotAfter: o.at.Add(500 * time.Hour),
		KeyUsage: x509.KeyUsageCertSign, IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
	}
	if change != nil {
		change(template)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, o.root.chain[0], key.Public(), o.root.key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, root := encodeCertificate(der), encodeAll(o.root.roots)
	return Files{
		Certificate: certificate, Root: root, Chain: append(append([]byte{}, certificate...), root...),
		Key: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
	}
}

// fixed is a source that the test changes.
type fixed struct {
	files Files
	err   error
}

func (f *fixed) Read(context.Context) (Files, error) { return f.files, f.err }

func TestAnIntermediateOfSomeoneElseSigns(t *testing.T) {
	o := newOuter(t, time.Now())
	source := &fixed{files: o.files(t, nil)}
	r := newRig(t, func(o *Options) { o.Source = source })
	leaf, err := r.Sign(Order{Workload: web, Key: newKey(t).Public()})
	if err != nil {
		t.Fatal(err)
	}
	chain := certificates(t, leaf.Chain)
	if len(chain) != 2 || chain[1].Subject.CommonName != "intermediate" {
		t.Errorf("the chain has %d certificates", len(chain))
	}
	if _, err := chain[0].Verify(x509.VerifyOptions{Roots: pemtext.Pool(o.root.roots), Intermediates: pemtext.Pool(chain[1:])}); err != nil {
		t.Error(err)
	}
	if r.Rotate(t.Context(), false) == nil {
		t.Error("a root of someone else was rotated")
	}
	source.files = o.files(t, nil) // of the root that is trusted for long
	r.pass(3 * time.Hour)
	if next := r.issue(Order{}); next.CheckSignatureFrom(chain[1]) == nil {
		t.Error("a new intermediate of a trusted root waits")
	}
	source.files = newOuter(t, r.now).files(t, nil)
	r.pass(time.Minute)
	if len(r.Roots()) != 2 || r.issue(Order{}).CheckSignatureFrom(certificates(t, source.files.Certificate)[0]) == nil {
		t.Error("an intermediate signs before its root is trusted everywhere")
	}
	r.pass(2 * time.Hour)
	if err := r.issue(Order{}).CheckSignatureFrom(certificates(t, source.files.Certificate)[0]); err != nil {
		t.Errorf("after the overlap: %v", err)
	}
	r.pass(2 * time.Hour)
	if len(r.Roots()) != 1 {
		t.Errorf("%d roots are trusted after the last certificate of the old one has ended", len(r.Roots()))
	}
}

// TestU100TheRootOfTheSignerEnds: of several roots that are trusted it is the one to which the signer leads; if that was renewed
// with its key, the last counts. A root of the hub's own is the signer itself.
func TestU100TheRootOfTheSignerEnds(t *testing.T) {
	at := time.Now()
	o, other := newOuter(t, at), newOuter(t, at.Add(50*time.Hour))
	renewed := *o.root.chain[0]
	renewed.NotAfter = at.Add(2000 * time.Hour).Truncate(time.Second)
	der, err := x509.CreateCertificate(rand.Reader, &renewed, &renewed, o.root.key.Public(), o.root.key)
	if err != nil {
		t.Fatal(err)
	}
	ends := o.root.signer().NotAfter
	for name, c := range map[string]struct {
		roots []byte // besides the first
		want  time.Time
	}{
		"one root":  {nil, ends},
		"two roots": {encodeAll(other.root.roots), ends},
		"renewed":   {encodeCertificate(der), renewed.NotAfter},
	} {
		files := o.files(t, nil)
		files.Root = append(append([]byte{}, files.Root...), c.roots...)
		s := newRig(t, func(o *Options) { o.Source = &fixed{files: files} }).Status()
		if !s.RootEnds.Equal(c.want) || !s.RootEnds.After(s.Ends) {
			t.Errorf("%s: the root ends at %v, want %v; the signer ends at %v", name, s.RootEnds, c.want, s.Ends)
		}
	}
	if s := newRig(t, nil).Status(); s.Ends.IsZero() || !s.RootEnds.Equal(s.Ends) {
		t.Errorf("the hub's own root ends at %v, as its signer at %v", s.RootEnds, s.Ends)
	}
}

func TestIntermediatesThatCannotBeUsed(t *testing.T) {
	o := newOuter(t, time.Now())
	good, other := o.files(t, nil), o.files(t, nil)
	for name, c := range map[string]struct {
		files Files
		want  string
	}{
		"no certificate": {Files{Key: good.Key, Root: good.Root}, "ca-cert.pem holds no PEM"},
		"no key":         {Files{Certificate: good.Certificate, Root: good.Root}, "ca-key.pem is not a PEM key"},
		"no root":        {Files{Certificate: good.Certificate, Key: good.Key}, "root-cert.pem holds no PEM"},
		"another's key":  {Files{Certificate: good.Certificate, Key: other.Key, Root: good.Root}, "not the key of"},
		"another's root": {
			Files{Certificate: good.Certificate, Key: good.Key, Root: newOuter(t, o.at).files(t, nil).Root},
			"does not lead to a root",
		},
		"a leaf": {o.files(t, func(c *x509.Certificate) {
			c.IsCA, c.MaxPathLenZero, c.KeyUsage = false, false, x509.KeyUsageDigitalSignature
		}), "may not sign"},
		"one that has ended": {o.files(t, func(c *x509.Certificate) { c.NotAfter = o.at.Add(-time.Minute) }), "does not lead to a root"},
		"key in certificate": {Files{Certificate: good.Key, Key: good.Key, Root: good.Root}, "something that is not a certificate"},
	} {
		_, err := Open(t.Context(), (&rig{t: t, now: o.at, store: &memory{}}).withSource(&fixed{files: c.files}))
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "BEGIN") {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func (r *rig) withSource(s Source) Options {
	o := r.options()
	o.Source = s
	return o
}

// What is stored signs while the source is away, also after a restart.
func TestASourceThatGoesAway(t *testing.T) {
	source := &fixed{files: newOuter(t, time.Now()).files(t, nil)}
	r := newRig(t, func(o *Options) { o.Source = source })
	source.err = errors.New("the Secret is gone")
	r.Authority = r.replica(func(o *Options) { o.Source = source })
	r.issue(Order{})
	if s := r.Status(); s.Trouble == nil {
		t.Error("the trouble is not shown")
	}
}

func TestAnIntermediateOfAFolder(t *testing.T) {
	dir, files := t.TempDir(), newOuter(t, time.Now()).files(t, nil)
	write := func(name string, text []byte, mode os.FileMode) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), text, mode); err != nil {
			t.Fatal(err)
		}
	}
	write(certificatePart, files.Certificate, 0o644)
	write(rootPart, files.Root, 0o644)
	if _, err := Folder(dir).Read(t.Context()); err == nil || !strings.Contains(err.Error(), keyPart) {
		t.Errorf("without a key: %v", err)
	}
	write(keyPart, files.Key, 0o644)
	if _, err := Folder(dir).Read(t.Context()); err == nil || !strings.Contains(err.Error(), "0600") {
		t.Errorf("with a key for everybody: %v", err)
	}
	if err := os.Chmod(filepath.Join(dir, keyPart), 0o600); err != nil {
		t.Fatal(err)
	}
	newRig(t, func(o *Options) { o.Source = Folder(dir) }).issue(Order{})
}

// caSecret is the Secret with an intermediate.
func caSecret(files Files) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "istio-system", Name: "cacerts"},
		Data:       map[string][]byte{certificatePart: files.Certificate, keyPart: files.Key, rootPart: files.Root, chainPart: files.Chain},
	}
}

// The cluster with the Secret may come after the start, and go.
func TestAnIntermediateOfASecret(t *testing.T) {
	source := NewSecret("istio-system", "cacerts")
	r := newRig(t, func(o *Options) { o.Source, o.Late = source, true })
	if _, err := r.Sign(Order{Workload: web, Key: newKey(t).Public()}); !errors.Is(err, ErrNoSigner) {
		t.Errorf("before the cluster is attached: %v", err)
	}
	server := listwatchtest.New("u1")
	server.Put(caSecret(newOuter(t, time.Now()).files(t, nil)))
	cluster := listwatchtest.Probed(t, server.Client(t), listwatch.ClusterOptions{})
	detach := source.Attach(cluster)
	r.pass(time.Second)
	r.issue(Order{})
	detach()
	if err := r.reload(t.Context()); err == nil {
		t.Error("nothing is wrong when the cluster is gone")
	}
	r.issue(Order{})
	server.Delete("istio-system", "cacerts")
	source.Attach(cluster)
	if err := r.reload(t.Context()); err == nil || !strings.Contains(err.Error(), "there is no Secret istio-system/cacerts") {
		t.Errorf("a Secret that is not there: %v", err)
	}
}

// TestR08AnotherClusterBringsNoIntermediate: another cluster answers at the address
// of the one with the Secret, before or while it is read. Its intermediate signs
// nothing, and the known one stays in use.
func TestR08AnotherClusterBringsNoIntermediate(t *testing.T) {
	known, strange := newOuter(t, time.Now()), newOuter(t, time.Now())
	server := listwatchtest.New("u1")
	server.Put(caSecret(known.files(t, nil)))
	source := NewSecret("istio-system", "cacerts")
	source.Attach(listwatchtest.Probed(t, server.Client(t), listwatch.ClusterOptions{}))
	r := newRig(t, func(o *Options) { o.Source, o.Late = source, true })
	before := r.issue(Order{})
	server.Put(caSecret(strange.files(t, nil)))
	server.Wrong(func(request *http.Request) (*http.Response, error) {
		if strings.HasSuffix(request.URL.Path, "/secrets/cacerts") {
			server.Become("u2") // after the proof, and before the next one
		}
		return nil, nil
	})
	for _, name := range []string{"while it is read", "before it is read"} {
		ctx, cancel := context.WithTimeout(t.Context(), proofWithin)
		if name != "while it is read" {
			cancel() // the gate stays closed, however long one waits
		}
		if err := r.reload(ctx); err == nil || !strings.Contains(err.Error(),
			"did not prove that it is the known one: another cluster answers at this address") {
			t.Errorf("%s: %v", name, err)
		}
		cancel()
		if now := r.issue(Order{}); string(now.AuthorityKeyId) != string(before.AuthorityKeyId) {
			t.Errorf("%s: the intermediate of the other cluster signs", name)
		}
	}
}
