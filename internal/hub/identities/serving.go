package identities

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"isthmus.dev/isthmus/internal/durable"
	"isthmus.dev/isthmus/internal/identity/authority"
)

// serveRetry is how long the hub waits where its own certificate could not be signed.
const serveRetry = time.Second

// Serving is the hub's own certificate, which its certificate authority signs for the names
// under which clients reach the hub. It is renewed at half of its lifetime.
type Serving struct {
	names     []string
	rootsFile string // gets the roots that clients verify it with
	logger    *slog.Logger
	authority *authority.Authority
	current   atomic.Pointer[tls.Certificate]
	trouble   string // that was logged last
	written   []byte // to the file of the roots
}

// NewServing names the certificate. There is none before Open.
func NewServing(names []string, rootsFile string, logger *slog.Logger) *Serving {
	return &Serving{names: names, rootsFile: rootsFile, logger: logger}
}

var errNotSigned = errors.New("the hub's certificate is not signed yet")

// Certificate is the current one.
func (s *Serving) Certificate() (*tls.Certificate, error) {
	if c := s.current.Load(); c != nil {
		return c, nil
	}
	return nil, errNotSigned
}

// Open has the certificate signed, if the authority can sign already.
func (s *Serving) Open(by *Identities) error {
	s.authority = by.authority
	if s.authority == nil {
		return fmt.Errorf("tls.names: %w", errSignsNothing)
	}
	s.renew()
	return s.writeRoots()
}

// Run renews the certificate, and follows the roots, until the context ends.
func (s *Serving) Run(ctx context.Context) error {
	for {
		changed := s.authority.Changed()
		if err := s.writeRoots(); err != nil {
			s.logger.Error("the roots of the hub's certificate cannot be written", slog.String("file", s.rootsFile), slog.Any("err", err))
		}
		wait := s.pause(time.Now())
		timer := time.NewTimer(min(wait, longest))
		select {
		case <-timer.C:
			if wait <= longest || s.pause(time.Now()) <= 0 {
				s.renew()
			}
		case <-changed:
			s.renew()
		case <-ctx.Done():
		}
		timer.Stop()
		if ctx.Err() != nil {
			return nil
		}
	}
}

// longest is how long the machine's clock is not looked at: somebody may set it.
const longest = time.Minute

// pause is how long the current certificate is good enough; not at all once the clock was set back to before it.
func (s *Serving) pause(now time.Time) time.Duration {
	c := s.current.Load()
	if c == nil || s.trouble != "" {
		return serveRetry
	}
	if now.Before(c.Leaf.NotBefore) {
		return 0
	}
	return c.Leaf.NotAfter.Sub(c.Leaf.NotBefore)/2 - now.Sub(c.Leaf.NotBefore)
}

func (s *Serving) renew() {
	next, serial, err := s.sign()
	if err != nil {
		if text := err.Error(); text != s.trouble {
			s.trouble = text
			s.logger.Warn("the hub's certificate cannot be signed; what was signed before stays in use", slog.Any("err", err))
		}
		return
	}
	s.trouble = ""
	s.current.Store(next)
	s.logger.Info("a new certificate of the hub is in use", slog.String("name", strings.Join(s.names, ",")),
		slog.String("serial", serial), slog.Time("expires", next.Leaf.NotAfter))
}

func (s *Serving) sign() (*tls.Certificate, string, error) {
	key, text, err := authority.NewKey()
	if err != nil {
		return nil, "", err
	}
	leaf, err := s.authority.SignServing(s.names, key.Public())
	if err != nil {
		return nil, "", err
	}
	pair, err := tls.X509KeyPair(leaf.Chain, text)
	if err != nil {
		return nil, "", fmt.Errorf("reading the hub's certificate: %w", err)
	}
	return &pair, leaf.Serial, nil
}

// writeRoots writes the roots for those who prepare clients.
func (s *Serving) writeRoots() error {
	var text []byte
	for _, root := range s.authority.Roots() {
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Raw})...)
	}
	if len(text) == 0 || bytes.Equal(text, s.written) {
		return nil
	}
	if err := durable.WriteFile(s.rootsFile, text); err != nil {
		return err
	}
	s.written = text
	return nil
}
