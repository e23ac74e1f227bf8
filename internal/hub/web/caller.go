package web

import (
	"context"
	"net/http"
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

// CallerOf is the name of the caller; empty if the caller has no verified certificate.
func CallerOf(ctx context.Context) string {
	name, _ := ctx.Value(callerKey{}).(string)
	return name
}
