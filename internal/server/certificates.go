package server

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"isthmus.dev/isthmus/internal/filewatch"
	"isthmus.dev/isthmus/internal/keyfile"
	"isthmus.dev/isthmus/internal/pemtext"
)

// CertificateFiles are the three files of mutual TLS. All are needed; with CertificateOptions.Issued,
// ClientCA alone.
type CertificateFiles struct {
	Cert, Key, ClientCA string
}

// CertificateOptions are rarely set. Zero values have the defaults named here.
type CertificateOptions struct {
	Poll   time.Duration                    // how often Run looks at the files; default 5 s
	Now    func() time.Time                 // default time.Now
	Logger *slog.Logger                     // default slog.Default
	Issued func() (*tls.Certificate, error) // the current certificate, instead of Cert and Key; nil: the files
}

const maxCertificateFile = 1 << 20

// Certificates hold the current content of the files. Each TLS handshake uses what was current at its start.
type Certificates struct {
	files   CertificateFiles
	options CertificateOptions
	current atomic.Pointer[loaded]
}

type loaded struct {
	config  *tls.Config
	clients []*x509.Certificate // that sign clients
	sum     [sha256.Size]byte
}

// OpenCertificates reads the files and fails on whatever a handshake would fail on later: a missing or empty file, a
// mismatch, an expired certificate, a key that all users can read (B-F7). An empty CA never means "no verification".
func OpenCertificates(files CertificateFiles, options CertificateOptions) (*Certificates, error) {
	if options.Poll <= 0 {
		options.Poll = 5 * time.Second
	}
	if options.Now == nil {
		options.Now = time.Now
	}
	if options.Logger == nil {
		options.Logger = slog.Default()
	}
	for _, needed := range [][2]string{{"--tls-cert", files.Cert}, {"--tls-key", files.Key}, {"--tls-client-ca", files.ClientCA}} {
		if needed[1] == "" && (options.Issued == nil || needed[0] == "--tls-client-ca") {
			return nil, fmt.Errorf("%s is required: mutual TLS needs --tls-cert, --tls-key and --tls-client-ca together (or --dev without them)",
				needed[0])
		}
	}
	certificates := &Certificates{files: files, options: options}
	first, err := certificates.load()
	if err != nil {
		return nil, err
	}
	certificates.current.Store(first)
	return certificates, nil
}

// TLS is a configuration that follows the files: TLS 1.2 or newer, a verified client certificate is needed.
func (c *Certificates) TLS() *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		ClientAuth:         tls.RequireAndVerifyClientCert,
		NextProtos:         []string{"h2", "http/1.1"},
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return c.current.Load().config, nil },
		GetCertificate:     c.certificate,
	}
}

func (c *Certificates) certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if c.options.Issued != nil {
		return c.options.Issued()
	}
	return &c.current.Load().config.Certificates[0], nil
}

// ClientCAs are the current certificates of --tls-client-ca.
func (c *Certificates) ClientCAs() []*x509.Certificate { return c.current.Load().clients }

var (
	errExpired   = errors.New("the client's certificate has expired: connect again with a new one")
	errUntrusted = errors.New("no CA of --tls-client-ca signed the client's certificate: connect with another")
)

// Verify returns why the hub does not trust the client certificate of an open connection with the files as they are now:
// what the handshake found may be long ago. The chains are those by which the hub trusts it. The error is for the client.
func (c *Certificates) Verify(s *tls.ConnectionState) (chains [][]*x509.Certificate, err error) {
	now, leaf, current := c.options.Now(), s.PeerCertificates[0], c.current.Load()
	if !now.Before(leaf.NotAfter) {
		return nil, errExpired
	}
	if slices.ContainsFunc(s.VerifiedChains, func(chain []*x509.Certificate) bool { return current.ends(chain, now) }) {
		return s.VerifiedChains, nil
	}
	between := x509.NewCertPool() // an authority may have a new certificate for its key
	for _, presented := range s.PeerCertificates[1:] {
		between.AddCert(presented)
	}
	chains, err = leaf.Verify(x509.VerifyOptions{
		Roots: current.config.ClientCAs, Intermediates: between, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err != nil {
		return nil, errUntrusted
	}
	return chains, nil
}

// ends reports whether the chain, which was verified, still leads to one of the authorities.
func (l *loaded) ends(chain []*x509.Certificate, now time.Time) bool {
	return !slices.ContainsFunc(chain, func(one *x509.Certificate) bool { return now.Before(one.NotBefore) || now.After(one.NotAfter) }) &&
		slices.ContainsFunc(l.clients, chain[len(chain)-1].Equal)
}

// Run follows changes of the files until the context ends and then returns nil. While the files are broken or half
// replaced, the last good ones stay and a warning is logged once for each new state of them.
func (c *Certificates) Run(ctx context.Context) error {
	filewatch.Poll(ctx, c.options.Poll, c.reload, filewatch.Logged(c.options.Logger,
		"the TLS files cannot be used now; what was read before stays in use", "the TLS files can be used again"))
	return nil
}

func (c *Certificates) reload() error {
	next, err := c.load()
	if err != nil {
		return err
	}
	if next.sum != c.current.Load().sum {
		c.current.Store(next)
		c.options.Logger.Info("new TLS files are in use", "expires", next.expires())
	}
	return nil
}

// expires is when the first of what the files hold ends that a handshake needs.
func (l *loaded) expires() time.Time {
	if len(l.config.Certificates) > 0 {
		return l.config.Certificates[0].Leaf.NotAfter
	}
	return l.clients[0].NotAfter
}

func (c *Certificates) load() (*loaded, error) {
	own, from, err := c.own()
	if err != nil {
		return nil, err
	}
	ca, err := readLimited("--tls-client-ca", c.files.ClientCA)
	if err != nil {
		return nil, err
	}
	clients, err := c.authorities(ca)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	for _, authority := range clients {
		pool.AddCert(authority)
	}
	config := &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: own, GetCertificate: c.certificate, NextProtos: []string{"h2", "http/1.1"},
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool,
	}
	return &loaded{config: config, clients: clients, sum: sha256.Sum256(bytes.Join([][]byte{from, ca}, []byte{0}))}, nil
}

// own is the hub's certificate as the files have it, and what they hold.
func (c *Certificates) own() (pair []tls.Certificate, from []byte, err error) {
	if c.options.Issued != nil {
		return nil, nil, nil
	}
	cert, err := readLimited("--tls-cert", c.files.Cert)
	if err != nil {
		return nil, nil, err
	}
	key, err := readKey(c.files.Key)
	if err != nil {
		return nil, nil, err
	}
	one, err := c.pair(cert, key)
	return []tls.Certificate{one}, bytes.Join([][]byte{cert, key}, []byte{0}), err
}

// pair does not repeat the parser's words, which may quote the key.
func (c *Certificates) pair(cert, key []byte) (tls.Certificate, error) {
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return pair,
			fmt.Errorf("--tls-cert %s, --tls-key %s: the files are not a PEM certificate and its unencrypted key, or do not belong together",
				c.files.Cert, c.files.Key)
	}
	if now := c.options.Now(); now.After(pair.Leaf.NotAfter) || now.Before(pair.Leaf.NotBefore) {
		return pair, fmt.Errorf("--tls-cert %s: the certificate is valid from %s to %s, not now", c.files.Cert,
			pair.Leaf.NotBefore.UTC().Format(time.RFC3339), pair.Leaf.NotAfter.UTC().Format(time.RFC3339))
	}
	return pair, nil
}

func (c *Certificates) authorities(data []byte) (all []*x509.Certificate, err error) {
	valid := 0
	for block := range pemtext.Whole(data) {
		if block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("--tls-client-ca %s: holds something that is not a PEM certificate", c.files.ClientCA)
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("--tls-client-ca %s: a certificate cannot be read", c.files.ClientCA)
		}
		if now := c.options.Now(); !now.After(certificate.NotAfter) && !now.Before(certificate.NotBefore) {
			valid++
		}
		all = append(all, certificate)
	}
	if valid == 0 {
		return nil, fmt.Errorf("--tls-client-ca %s: holds no certificate that is valid now; no client could be verified", c.files.ClientCA)
	}
	return all, nil
}

func readKey(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err == nil {
		if err := keyfile.Check(info); err != nil {
			return nil, fmt.Errorf("--tls-key %s: %w", path, err)
		}
	}
	return readLimited("--tls-key", path)
}

func readLimited(flag, path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s %s: is not a regular file", flag, path)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxCertificateFile+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", flag, err)
	case len(data) > maxCertificateFile:
		return nil, fmt.Errorf("%s %s: has more than %d bytes", flag, path, maxCertificateFile)
	case len(bytes.TrimSpace(data)) == 0:
		return nil, fmt.Errorf("%s %s: %w", flag, path, errEmpty)
	}
	return data, nil
}

var errEmpty = errors.New("the file is empty")
