package server

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// authority issues certificates for 127.0.0.1.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

type issue struct {
	serial   int64
	from, to time.Time
}

func now() issue {
	return issue{serial: 2, from: time.Now().Add(-time.Hour), to: time.Now().Add(time.Hour)}
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key := newKey(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	must(t, err)
	certificate, err := x509.ParseCertificate(der)
	must(t, err)
	return &authority{certificate: certificate, key: key}
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	return key
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (a *authority) pem() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.certificate.Raw}))
}

func (a *authority) issue(t *testing.T, what issue) (cert, key string) {
	t.Helper()
	private := newKey(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(what.serial), NotBefore: what.from, NotAfter: what.to, IPAddresses: []net.IP{{127, 0, 0, 1}},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, private.Public(), a.key)
	must(t, err)
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	must(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}))
}

// write puts the three files in a new folder.
func write(t *testing.T, cert, key, ca string) CertificateFiles {
	t.Helper()
	dir := t.TempDir()
	files := CertificateFiles{Cert: filepath.Join(dir, "cert"), Key: filepath.Join(dir, "key"), ClientCA: filepath.Join(dir, "ca")}
	replace(t, files, cert, key, ca)
	return files
}

func replace(t *testing.T, files CertificateFiles, cert, key, ca string) {
	t.Helper()
	must(t, os.WriteFile(files.Cert, []byte(cert), 0o644))
	must(t, os.WriteFile(files.Key, []byte(key), 0o600))
	must(t, os.WriteFile(files.ClientCA, []byte(ca), 0o644))
}

// TestBF07Files wants each bad file refused, naming its flag.
func TestBF07Files(t *testing.T) {
	ca := newAuthority(t)
	cert, key := ca.issue(t, now())
	_, otherKey := ca.issue(t, now())
	expired, expiredKey := ca.issue(t, issue{2, time.Now().Add(-2 * time.Hour), time.Now().Add(-time.Hour)})
	future, futureKey := ca.issue(t, issue{2, time.Now().Add(time.Hour), time.Now().Add(2 * time.Hour)})
	for name, c := range map[string]struct{ cert, key, ca, want string }{
		"mismatch":           {cert, otherKey, ca.pem(), "do not belong together"},
		"expired":            {expired, expiredKey, ca.pem(), "not now"},
		"not yet valid":      {future, futureKey, ca.pem(), "not now"},
		"empty CA":           {cert, key, "", "--tls-client-ca"},
		"CA of spaces":       {cert, key, "\n \n", "--tls-client-ca"},
		"CA of junk":         {cert, key, "trust everybody", "--tls-client-ca"},
		"CA is a key":        {cert, key, key, "--tls-client-ca"},
		"CA with a tail":     {cert, key, ca.pem() + "tail", "--tls-client-ca"},
		"only an expired CA": {cert, key, expired, "valid now"},
		"empty certificate":  {"", key, ca.pem(), "--tls-cert"},
		"empty key":          {cert, "", ca.pem(), "--tls-key"},
	} {
		_, err := OpenCertificates(write(t, c.cert, c.key, c.ca), CertificateOptions{})
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "BEGIN") {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
	files := write(t, cert, key, ca.pem())
	for flag, broken := range map[string]CertificateFiles{
		"--tls-cert":      {Key: files.Key, ClientCA: files.ClientCA},
		"--tls-key":       {Cert: files.Cert, ClientCA: files.ClientCA},
		"--tls-client-ca": {Cert: files.Cert, Key: files.Key},
	} {
		if _, err := OpenCertificates(broken, CertificateOptions{}); err == nil || !strings.HasPrefix(err.Error(), flag) {
			t.Errorf("without %s: got %v", flag, err)
		}
	}
	must(t, os.Chmod(files.Key, 0o644))
	if _, err := OpenCertificates(files, CertificateOptions{}); err == nil || !strings.Contains(err.Error(), "0600") {
		t.Errorf("open key: got %v", err)
	}
}

// handshake returns the serial number of the server's certificate.
func handshake(t *testing.T, config *tls.Config, client *tls.Config) (int64, *tls.ConnectionState, error) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer listener.Close()
	answered := make(chan error, 1)
	go func() {
		connection, err := listener.Accept()
		if err == nil {
			server := tls.Server(connection, config)
			err = server.Handshake()
			if err == nil {
				_, err = server.Write([]byte("x"))
			}
			connection.Close()
		}
		answered <- err
	}()
	connection, err := net.Dial("tcp", listener.Addr().String())
	must(t, err)
	defer connection.Close()
	secured := tls.Client(connection, client)
	_, err = io.ReadFull(secured, make([]byte, 1))
	if err != nil {
		connection.Close()
		<-answered
		return 0, nil, err
	}
	state := secured.ConnectionState()
	return state.PeerCertificates[0].SerialNumber.Int64(), &state, <-answered
}

func clientConfig(t *testing.T, trust, from *authority) *tls.Config {
	t.Helper()
	config := &tls.Config{RootCAs: x509.NewCertPool(), ServerName: "127.0.0.1", NextProtos: []string{"h2"}}
	config.RootCAs.AddCert(trust.certificate)
	if from != nil {
		cert, key := from.issue(t, now())
		pair, err := tls.X509KeyPair([]byte(cert), []byte(key))
		must(t, err)
		config.Certificates = []tls.Certificate{pair}
	}
	return config
}

func TestMutualTLS(t *testing.T) {
	ca, other := newAuthority(t), newAuthority(t)
	cert, key := ca.issue(t, now())
	certificates, err := OpenCertificates(write(t, cert, key, ca.pem()), CertificateOptions{})
	must(t, err)
	_, state, err := handshake(t, certificates.TLS(), clientConfig(t, ca, ca))
	if err != nil || state.Version != tls.VersionTLS13 || state.NegotiatedProtocol != "h2" {
		t.Errorf("good client: %v, %+v", err, state)
	}
	for name, config := range map[string]*tls.Config{"no certificate": clientConfig(t, ca, nil), "other CA": clientConfig(t, ca, other)} {
		if _, _, err := handshake(t, certificates.TLS(), config); err == nil {
			t.Errorf("%s is let in", name)
		}
	}
	old := clientConfig(t, ca, ca)
	old.MinVersion, old.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
	if _, _, err := handshake(t, certificates.TLS(), old); err == nil {
		t.Error("TLS 1.1 is let in")
	}
}

func TestCertificatesFollowTheFiles(t *testing.T) {
	ca := newAuthority(t)
	cert, key := ca.issue(t, now())
	files := write(t, cert, key, ca.pem())
	var log strings.Builder
	synctest.Test(t, func(t *testing.T) {
		certificates, err := OpenCertificates(files, CertificateOptions{Logger: slog.New(slog.NewTextHandler(&log, nil)), Now: ca.clock()})
		must(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- certificates.Run(ctx) }()
		serial := func() int64 { return certificates.current.Load().config.Certificates[0].Leaf.SerialNumber.Int64() }
		//nolint:forbidigo // the time of the bubble
		polls := func() { time.Sleep(11 * time.Second); synctest.Wait() }

		next, nextKey := ca.issue(t, issue{3, ca.certificate.NotBefore, ca.certificate.NotAfter})
		replace(t, files, next, key, ca.pem())
		polls()
		if serial() != 2 || strings.Count(log.String(), "level=WARN") != 1 {
			t.Errorf("half replaced: serial %d, log %s", serial(), log.String())
		}
		replace(t, files, next, nextKey, ca.pem())
		polls()
		if serial() != 3 {
			t.Errorf("replaced: serial %d, log %s", serial(), log.String())
		}
		replace(t, files, next, nextKey, "")
		polls()
		if serial() != 3 || strings.Count(log.String(), "level=WARN") != 2 {
			t.Errorf("empty CA: serial %d, log %s", serial(), log.String())
		}
		cancel()
		must(t, <-done)
	})
}

// clock stands still inside the validity of the authority, whatever the time of the test is.
func (a *authority) clock() func() time.Time {
	return func() time.Time { return a.certificate.NotBefore.Add(time.Hour) }
}

func TestNewHandshakesUseNewFiles(t *testing.T) {
	ca := newAuthority(t)
	cert, key := ca.issue(t, now())
	files := write(t, cert, key, ca.pem())
	certificates, err := OpenCertificates(files, CertificateOptions{Logger: slog.New(slog.DiscardHandler)})
	must(t, err)
	config, client := certificates.TLS(), clientConfig(t, ca, ca)
	if serial, _, err := handshake(t, config, client); err != nil || serial != 2 {
		t.Fatalf("got %d, %v", serial, err)
	}
	next := now()
	next.serial = 3
	cert, key = ca.issue(t, next)
	replace(t, files, cert, key, newAuthority(t).pem())
	must(t, certificates.reload())
	if _, _, err := handshake(t, config, client); err == nil {
		t.Error("a client of the old CA is let in")
	}
	replace(t, files, cert, key, ca.pem())
	must(t, certificates.reload())
	if serial, _, err := handshake(t, config, client); err != nil || serial != 3 {
		t.Errorf("got %d, %v", serial, err)
	}
}
