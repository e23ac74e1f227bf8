package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
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
