package web

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"os"
	"slices"

	"isthmus.dev/isthmus/graph/transport"
	"isthmus.dev/isthmus/internal/hub/settings"
	"isthmus.dev/isthmus/internal/server"
)

// Parts are what the GraphQL address serves beside the pages. Debug answers Istio's tools.
type Parts struct {
	API, Logging, Health, Debug http.Handler
	// Trust returns why the client certificate of an open connection is not trusted now, for the client.
	Trust func(*tls.ConnectionState) error
}

// New is everything behind the GraphQL address.
func New(s settings.Settings, p Parts) (http.Handler, error) {
	web, err := pages(FactsOf(s), withCaller(p.API))
	if err != nil {
		return nil, err
	}
	logging := withCaller(p.Logging)
	web.Handle("GET /logging", logging)
	web.Handle("POST /logging", logging)
	Inspect(web, withCaller(p.Debug))
	var names []string
	if s.Dev {
		for _, path := range []string{"/healthz", "/readyz", "/metrics"} {
			web.Handle(path, p.Health)
		}
	} else {
		names = s.TLSNames
	}
	if !s.Dev && len(names) == 0 {
		names, err = certificateNames(s.TLS.Cert)
		if err != nil {
			return nil, err
		}
	}
	return refuseUntrusted(p.Trust, server.Guard(web, server.GuardOptions{
		Hosts: slices.Concat(names, s.AllowedHosts), Origins: s.AllowedOrigins,
		Refuse: func(w http.ResponseWriter, r *http.Request, why string) {
			transport.Refuse(w, r, http.StatusForbidden, transport.Forbidden, why)
		},
	})), nil
}

// certificateNames are the names and addresses for which the certificate was
// made: under these the hub may be addressed.
func certificateNames(file string) ([]string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("--tls-cert: %w", err)
	}
	block, _ := pem.Decode(data)
	if block == nil {
		return nil, fmt.Errorf("--tls-cert %s: holds no certificate", file)
	}
	leaf, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("--tls-cert %s: %w", file, err)
	}
	names := leaf.DNSNames
	for _, ip := range leaf.IPAddresses {
		names = append(names, ip.String())
	}
	return names, nil
}
