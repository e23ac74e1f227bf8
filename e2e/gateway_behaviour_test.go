package e2e

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"isthmus.dev/isthmus/deploy/testbed"
)

const retryingRoute = `apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: retrying, namespace: store}
spec:
  parentRefs: [{name: edge}]
  hostnames: [retry.example.com]
  rules:
  - matches: [{path: {type: PathPrefix, value: /retried}}]
    retry: {attempts: 3, codes: [503], backoff: 25ms}
    backendRefs: [{name: web, port: 80}]
  - matches: [{path: {type: PathPrefix, value: /once}}]
    retry: {attempts: 3, codes: [500]}
    backendRefs: [{name: web, port: 80}]
`

// retry (G104): a request is tried again as often as its route says, and for the codes of the route alone.
func (r *gatewayRig) retry(t *testing.T) {
	t.Helper()
	r.c1.Apply(retryingRoute)
	ask := func(path string) testbed.Response { return r.plain("retry.example.com", path) }
	eventually(t, "the route with retries", func() testbed.Response { return ask("/once/more") }, answeredBy(t, "web"))
	for _, c := range []struct {
		path string // the server answers the first requests for it with 503, as many as flaky says
		want int
	}{
		{"/retried/a?flaky=3", http.StatusOK},
		{"/retried/b?flaky=4", http.StatusServiceUnavailable},
		{"/once?flaky=1", http.StatusServiceUnavailable},
	} {
		if got := ask(c.path); got.Status != c.want {
			t.Errorf("%s: status %d, %v; want %d", c.path, got.Status, got.Err, c.want)
		}
	}
}

const tokenRule = `apiVersion: security.istio.io/v1
kind: RequestAuthentication
metadata: {name: tokens, namespace: store}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: edge}]
  jwtRules: [{issuer: "https://kubernetes.default.svc", jwksUri: %q, forwardOriginalToken: true%s}]
`

// outliveTheIssuer (R100): a hub that starts while an issuer is away has the gateway verify tokens as the hub before it.
func (r *gatewayRig) outliveTheIssuer(t *testing.T) {
	t.Helper()
	keys := r.c1.Do(http.MethodGet, "/openid/v1/jwks", nil)
	if keys.Err != nil || keys.Status != http.StatusOK {
		t.Fatalf("the keys of the API server: status %d, %v", keys.Status, keys.Err)
	}
	issuer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(keys.Body) }))
	defer issuer.Close()
	token := r.c1.ServiceAccountToken(testbed.TokenOptions{Namespace: "store", Account: "visitor"})
	with := func(token string) testbed.Response {
		return r.outside.Get("http://"+r.address+"/hello", "Host", "a.example.com", "Authorization", "Bearer "+token)
	}
	refused := func() {
		t.Helper()
		eventually(t, "another text to be refused as a token", func() testbed.Response { return with("no.token.this") },
			status(http.StatusUnauthorized))
	}
	r.hub.change(t, "apply", map[string]any{"manifests": []string{fmt.Sprintf(tokenRule, issuer.URL, "")}})
	refused()
	eventually(t, "the token to be accepted", func() testbed.Response { return with(token) }, answeredBy(t, "web"))

	issuer.Close()
	r.hub.Restart()
	// Only the hub that started without the issuer can have sent a rule that passes the claims on.
	r.hub.change(t, "apply", map[string]any{"manifests": []string{fmt.Sprintf(tokenRule, issuer.URL, ", outputPayloadToHeader: x-claims")}})
	eventually(t, "the token to be accepted by the rule of the restarted hub", func() testbed.Response { return with(token) },
		func(got testbed.Response) bool {
			return answeredBy(t, "web")(got) && got.Echo(t).Header.Get("X-Claims") != ""
		})
	refused()
}

// verifyByOption (G114): where an option of the listener says so, the gateway accepts clients with a certificate alone.
func (r *gatewayRig) verifyByOption(t *testing.T) {
	t.Helper()
	clients := testbed.NewAuthority(t, "visitors")
	visitor := clients.TLS(testbed.Subject{Name: "visitor"}).Certificates
	known := func() testbed.Response {
		return getOver(t, r.outside, r.address, "secure.example.com", "secure.example.com", r.ca, visitor...)
	}
	r.c1.Apply(fmt.Sprintf("apiVersion: v1\nkind: Secret\ntype: Opaque\nmetadata: {name: web-cert-cacert, namespace: store}\ndata: {ca.crt: %s}\n",
		base64.StdEncoding.EncodeToString(clients.PEM)))
	r.c1.Apply(strings.Replace(boutique, "tls: {certificateRefs: [{name: web-cert}]}",
		"tls: {certificateRefs: [{name: web-cert}], options: {gateway.istio.io/tls-terminate-mode: MUTUAL}}", 1))
	eventually(t, "a client without a certificate to be refused", func() testbed.Response { return r.secure(t) },
		func(r testbed.Response) bool { return r.Err != nil })
	eventually(t, "a client with a certificate to be served", known, answeredBy(t, "web"))
	r.c1.Apply(boutique)
	eventually(t, "the gateway to serve everyone again", func() testbed.Response { return r.secure(t) }, answeredBy(t, "web"))
}
