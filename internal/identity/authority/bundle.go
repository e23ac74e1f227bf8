package authority

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spiffe/go-spiffe/v2/bundle/x509bundle"
	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/filewatch"
)

// BundleFile is a file of roots, PEM, that are trusted for one trust domain.
type BundleFile struct {
	TrustDomain string
	File        string
	// Clusters are those whose workloads have certificates of these roots: a
	// certificate proves no more than that it is of one of them (S1).
	Clusters []federation.ClusterID
}

// TrustOptions are what a Trust works with.
type TrustOptions struct {
	Authority *Authority // nil: the hub signs nothing
	Files     []BundleFile
	Poll      time.Duration    // how often Run looks at the files; default 5 s
	Now       func() time.Time // default time.Now
	Logger    *slog.Logger     // default slog.Default
}

// Trust is the bundle of each trust domain: the authority's own roots, and what
// files have. It may be used by several goroutines; only Run blocks.
type Trust struct {
	o TrustOptions

	mu      sync.Mutex
	files   []bundleContent     // as TrustOptions.Files
	seen    []*x509.Certificate // the authority's, as they were announced
	changed chan struct{}
}

type bundleContent struct {
	text  []byte
	roots []*x509.Certificate
}

// OpenTrust reads all files, and fails where one cannot be used.
func OpenTrust(o TrustOptions) (*Trust, error) {
	if o.Poll <= 0 {
		o.Poll = 5 * time.Second
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	t := &Trust{o: o, changed: make(chan struct{})}
	t.news()
	for _, f := range o.Files {
		if err := CheckTrustDomain(f.TrustDomain); err != nil {
			return nil, fmt.Errorf("the trust bundle %s: %w", f.File, err)
		}
		content, err := readBundle(f.File)
		if err != nil {
			return nil, fmt.Errorf("the trust bundle of %s: %w", f.TrustDomain, err)
		}
		t.files = append(t.files, content)
	}
	return t, nil
}

// maxBundle is the largest file of roots in bytes.
const maxBundle = 1 << 20

func readBundle(path string) (bundleContent, error) {
	f, err := os.Open(path)
	if err != nil {
		return bundleContent{}, err
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, maxBundle+1))
	if err != nil || len(text) > maxBundle {
		return bundleContent{}, fmt.Errorf("%s cannot be read, or has more than %d bytes", path, maxBundle)
	}
	roots, err := ParseRoots(path, text)
	return bundleContent{text, roots}, err
}

// ParseRoots reads PEM that holds the certificates of authorities and nothing
// else.
func ParseRoots(name string, text []byte) ([]*x509.Certificate, error) {
	roots, err := ParseCertificates(name, text)
	if err != nil {
		return nil, err
	}
	for i, root := range roots {
		if !root.IsCA {
			return nil, fmt.Errorf("%s: its certificate %d is not that of an authority", name, i+1)
		}
	}
	return roots, nil
}

// Run follows the files, and the authority, until the context ends and then
// returns nil. A file that cannot be used changes nothing.
func (t *Trust) Run(ctx context.Context) error {
	var files sync.WaitGroup
	for i, f := range t.o.Files {
		files.Go(func() {
			filewatch.Poll(ctx, t.o.Poll, func() error { return t.reload(i) }, filewatch.Logged(t.o.Logger,
				"a trust bundle cannot be read; what was read before stays in use", "a trust bundle can be read again",
				slog.String("trustDomain", f.TrustDomain)))
		})
	}
	t.followAuthority(ctx)
	files.Wait()
	return nil
}

func (t *Trust) followAuthority(ctx context.Context) {
	if t.o.Authority == nil {
		return
	}
	for ctx.Err() == nil {
		others := t.o.Authority.Changed()
		if t.news() {
			t.announce()
		}
		select {
		case <-ctx.Done():
		case <-others:
		}
	}
}

// news reports whether the authority's roots changed since the previous call.
func (t *Trust) news() bool {
	if t.o.Authority == nil {
		return false
	}
	roots := t.o.Authority.Roots()
	t.mu.Lock()
	defer t.mu.Unlock()
	others := !sameCertificates(t.seen, roots)
	t.seen = roots
	return others
}

func (t *Trust) announce() {
	t.mu.Lock()
	defer t.mu.Unlock()
	close(t.changed)
	t.changed = make(chan struct{})
}

func (t *Trust) reload(i int) error {
	content, err := readBundle(t.o.Files[i].File)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if bytes.Equal(t.files[i].text, content.text) {
		return nil
	}
	t.files[i] = content
	close(t.changed)
	t.changed = make(chan struct{})
	t.o.Logger.Info("trust bundle changed", slog.String("trustDomain", t.o.Files[i].TrustDomain), slog.Int("roots", len(content.roots)))
	return nil
}

// Changed is closed when a bundle changes after the call, while Run runs.
func (t *Trust) Changed() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.changed
}

// bundles are the roots by trust domain, each once.
func (t *Trust) bundles() map[string][]*x509.Certificate {
	all := map[string][]*x509.Certificate{}
	if t.o.Authority != nil {
		all[t.o.Authority.TrustDomain()] = t.o.Authority.Roots()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, f := range t.o.Files {
		for _, root := range t.files[i].roots {
			if !contains(all[f.TrustDomain], root) {
				all[f.TrustDomain] = append(all[f.TrustDomain], root)
			}
		}
	}
	return all
}

// Bundles are the roots of each trust domain, PEM.
func (t *Trust) Bundles() map[string][]byte {
	all := map[string][]byte{}
	for domain, roots := range t.bundles() {
		all[domain] = encodeAll(roots)
	}
	return all
}

// Pool is the roots of all trust domains together: what a handshake may be
// begun with. Which of them counts for a certificate is for Verify.
func (t *Trust) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	for _, roots := range t.bundles() {
		for _, root := range roots {
			pool.AddCert(root)
		}
	}
	return pool
}

// Has reports whether the certificate, or another one for its key, is a root of any
// trust domain.
func (t *Trust) Has(c *x509.Certificate) bool {
	for _, roots := range t.bundles() {
		for _, root := range roots {
			if bytes.Equal(root.RawSubjectPublicKeyInfo, c.RawSubjectPublicKeyInfo) {
				return true
			}
		}
	}
	return false
}

// GetX509BundleForTrustDomain is part of x509bundle.Source.
func (t *Trust) GetX509BundleForTrustDomain(domain spiffeid.TrustDomain) (*x509bundle.Bundle, error) {
	roots, known := t.bundles()[domain.Name()]
	if !known {
		return nil, fmt.Errorf("the trust domain %s is not known here", domain.Name())
	}
	return x509bundle.FromX509Authorities(domain, roots), nil
}

// clusters are those for which a file allows the root.
func (t *Trust) clusters(domain string, root *x509.Certificate) []federation.ClusterID {
	t.mu.Lock()
	defer t.mu.Unlock()
	found := map[federation.ClusterID]bool{}
	for i, f := range t.o.Files {
		if f.TrustDomain == domain && contains(t.files[i].roots, root) {
			for _, c := range f.Clusters {
				found[c] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

var errNoCertificate = errors.New("there is no certificate")

// plain takes the names of packages out of an error, which is shown to clients.
func plain(err error) error {
	return errors.New(strings.TrimPrefix(strings.TrimPrefix(err.Error(), "x509svid: "), "spiffeid: "))
}
