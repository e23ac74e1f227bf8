package web

import (
	"context"
	"crypto/tls"
	"net/http"

	"isthmus.dev/isthmus/graph/transport"
)

type callerKey struct{}

// withCaller notes the caller that the verified certificate names: by its first URI (such
// as a SPIFFE ID), else its common name, else its first DNS name.
func withCaller(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
			leaf, name := r.TLS.PeerCertificates[0], ""
			switch {
			case len(leaf.URIs) > 0:
				name = leaf.URIs[0].String()
			case leaf.Subject.CommonName != "":
				name = leaf.Subject.CommonName
			case len(leaf.DNSNames) > 0:
				name = leaf.DNSNames[0]
			}
			r = r.WithContext(context.WithValue(r.Context(), callerKey{}, name))
		}
		next.ServeHTTP(w, r)
	})
}

// refuseUntrusted refuses requests of a client whose certificate has expired since the handshake, or is no longer trusted: a
// connection lasts for as long as its client sends something.
func refuseUntrusted(trust func(*tls.ConnectionState) error, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
			if err := trust(r.TLS); err != nil {
				w.Header().Set("Connection", "close") // over HTTP/2, too: no further request comes by this connection
				transport.Refuse(w, r, http.StatusForbidden, transport.Forbidden, err.Error())
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// CallerOf is the name of the caller; empty if the caller has no verified certificate.
func CallerOf(ctx context.Context) string {
	name, _ := ctx.Value(callerKey{}).(string)
	return name
}
