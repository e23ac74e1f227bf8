package hub

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/registries"
	"isthmus.dev/isthmus/registries/consul"
)

func openConsul(with surroundings, c clusterConfig) opener {
	return func(known federation.Identity) (registries.Registry, error) {
		secure, err := clientTLS(c.Consul.TLS)
		if err != nil {
			return nil, fmt.Errorf("consul.tls: %w", err)
		}
		return with.followConsul(c, consulAccess{tokenOf(c.Consul.TokenFile), secure}, known)
	}
}

// consulAccess is what a Consul lets in.
type consulAccess struct {
	token func() (string, error) // nil: none
	tls   *tls.Config            // nil: the system's roots
}

func (s surroundings) followConsul(c clusterConfig, with consulAccess, known federation.Identity) (registries.Registry, error) {
	limits := s.limitsOf(c)
	r, err := consul.New(consul.Options{
		Limits: limits, Used: s.usages.of(c.ID, limits),
		Cluster: c.ID, Network: c.Network, Address: c.Consul.Address, Datacenter: c.Consul.Datacenter,
		Token: with.token, TLS: with.tls, Hostname: c.Consul.Hostname, Namespace: c.Consul.Namespace,
		InstancePort: c.Consul.InstancePort, ServicePort: c.Consul.ServicePort,
		Dial: s.dial, Expect: known.UID, Logger: s.logger,
		Count: func(kind string) { s.metrics.Consul.Request(c.ID, kind) },
	})
	if err != nil {
		return nil, err
	}
	return running{activity: r.Activity, run: func(ctx context.Context, to registries.Sink) error {
		defer s.usages.forget(c.ID)
		return r.Run(ctx, to)
	}}, nil
}

// dial connects to what the address policy allows; it is asked after DNS.
func (s surroundings) dial(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: 10 * time.Second, Control: func(_, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err != nil {
			return fmt.Errorf("the address policy does not know %q", address)
		}
		return s.allow(to)
	}}
	return dialer.DialContext(ctx, network, address)
}

// maxSecretFile bounds a token file in bytes.
const maxSecretFile = 64 << 10

// tokenOf reads the token file whenever it is asked; spaces around the token are
// not part of it. No file: no token.
func tokenOf(path string) func() (string, error) {
	if path == "" {
		return nil
	}
	return func() (string, error) {
		f, err := os.Open(path)
		if err != nil {
			return "", fmt.Errorf("consul.tokenFile: %w", err)
		}
		data, err := io.ReadAll(io.LimitReader(f, maxSecretFile+1))
		err = errors.Join(err, f.Close())
		token := strings.TrimSpace(string(data))
		switch {
		case err != nil:
			return "", fmt.Errorf("consul.tokenFile: %w", err)
		case token == "" || len(data) > maxSecretFile:
			return "", fmt.Errorf("consul.tokenFile: %s is empty or larger than 64 KiB", path)
		}
		return token, nil
	}
}

// clientTLS makes the client's side of TLS; nothing configured is nil. A named CA
// file replaces the system's roots.
func clientTLS(c clientTLSConfig) (*tls.Config, error) {
	if c == (clientTLSConfig{}) {
		return nil, nil
	}
	out := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.CA != "" {
		pem, err := os.ReadFile(c.CA)
		if err != nil {
			return nil, fmt.Errorf("ca: %w", err)
		}
		out.RootCAs = x509.NewCertPool()
		if !out.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("ca: %s holds no certificate", c.CA)
		}
	}
	if (c.Cert == "") != (c.Key == "") {
		return nil, errors.New("cert and key belong together; give both or none")
	}
	if c.Cert != "" {
		pair, err := tls.LoadX509KeyPair(c.Cert, c.Key)
		if err != nil {
			return nil, fmt.Errorf("cert and key: %w", err)
		}
		out.Certificates = []tls.Certificate{pair}
	}
	return out, nil
}
