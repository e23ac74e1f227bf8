package envoy_test

import (
	"strings"
	"testing"
	"time"

	"isthmus.dev/isthmus/deploy/testbed"
)

// keysOf are the keys by which tokens of the issuer are verified.
func keysOf(i testbed.TokenIssuer) string { return `{"keys":[` + i.Key() + `]}` }

const tokenRules = `kind: Gateway
metadata: {name: front, namespace: edge}
spec:
  selector: {istio: ingress}
  servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: ["*"]}]
---
kind: VirtualService
metadata: {name: web, namespace: shop}
spec:
  hosts: ["*"]
  gateways: [edge/front]
  http: [{directResponse: {status: 200}}]
---
kind: RequestAuthentication
metadata: {name: first, namespace: istio-system}
spec:
  selector: {matchLabels: {istio: ingress}}
  jwtRules:
  - {issuer: https://a.example, jwks: 'KEYS', audiences: [shop, bank], fromHeaders: [{name: Authorization, prefix: "Bearer "}, {name: X-Token}], fromCookies: [session], spaceDelimitedClaims: [roles]}
---
kind: RequestAuthentication
metadata: {name: second, namespace: edge}
spec:
  jwtRules:
  - {issuer: https://b.example, jwks: 'OTHER'}
  - {issuer: https://remote.example, jwksUri: "https://remote.example/keys"}
  - {issuer: https://bad.example, jwks: '{"keys":[{"kty":"what"}]}'}
  - {issuer: https://empty.example, jwks: '{"keys":[]}'}
---
kind: AuthorizationPolicy
metadata: {name: tokens, namespace: edge}
spec:
  rules:
  - to: [{operation: {paths: [/open]}}]
  - {to: [{operation: {paths: [/any]}}], from: [{source: {requestPrincipals: ["*"]}}]}
  - {to: [{operation: {paths: [/ann]}}], from: [{source: {requestPrincipals: [https://a.example/ann]}}]}
  - {to: [{operation: {paths: [/of-a]}}], from: [{source: {requestPrincipals: ["https://a.example/*"]}}]}
  - {to: [{operation: {paths: [/anns]}}], from: [{source: {requestPrincipals: ["*/ann"]}}]}
  - {to: [{operation: {paths: [/admin]}}], when: [{key: "request.auth.claims[realm][roles]", values: [admin]}]}
  - {to: [{operation: {paths: [/roles]}}], when: [{key: "request.auth.claims[roles]", values: [writer]}]}
  - {to: [{operation: {paths: [/bank]}}], when: [{key: request.auth.audiences, values: [bank]}]}
  - {to: [{operation: {paths: [/app]}}], when: [{key: request.auth.presenter, values: [app*]}]}
---
kind: AuthorizationPolicy
metadata: {name: no-bob, namespace: edge}
spec:
  action: DENY
  rules: [{from: [{source: {requestPrincipals: [https://a.example/bob]}}]}]`

// TestK08RealProxiesVerifyTokens: a request without a token passes, one with a token that is not
// valid does not, and policies decide by what a valid one says.
func TestK08RealProxiesVerifyTokens(t *testing.T) {
	network := testbed.NewNetwork(t, "pods", "10.7.0.0/24")
	a, b := testbed.NewTokenIssuer(t), testbed.NewTokenIssuer(t)
	w := newFixture().attach("c1", "").config(t, strings.NewReplacer("KEYS", keysOf(a), "OTHER", keysOf(b)).Replace(tokenRules))
	ns := testbed.NewNamespace(t, "gateway")
	ns.Join(network, "10.7.0.8")
	n := parse(t, "router~10.7.0.8~gw.edge~edge.svc.cluster.local",
		map[string]any{"CLUSTER_ID": "c1", "LABELS": map[string]any{"istio": "ingress"}})
	testbed.StartEnvoy(t, testbed.EnvoyOptions{Name: "gateway", Config: sidecarConfig(t, n, w.snapshot), Namespace: ns}).WaitReady(time.Minute)
	caller, _ := pod(t, network, "10.7.0.30", nil)
	later, earlier := time.Now().Add(time.Hour).Unix(), time.Now().Add(-time.Hour).Unix()
	claims := func(iss, sub string, more ...any) map[string]any {
		all := map[string]any{"iss": iss, "sub": sub, "aud": "shop", "exp": later}
		for i := 0; i+1 < len(more); i += 2 {
			all[more[i].(string)] = more[i+1]
		}
		return all
	}
	ann := a.Token(claims("https://a.example", "ann", "aud", []string{"shop", "bank"}, "azp", "app-1", "roles", "reader writer", "realm",
		map[string]any{"roles": []string{"user", "admin"}}))
	annOfB := b.Token(claims("https://b.example", "ann"))
	eve := a.Token(claims("https://a.example", "eve", "azp", "web", "roles", "writers", "realm", map[string]any{"roles": "user"}))
	for _, c := range []struct {
		name, path, header, value string
		want                      int
	}{
		{"no token", "/open", "", "", 200},
		{"no token where one is needed", "/any", "", "", 403},
		{"a token", "/any", "Authorization", "Bearer " + ann, 200},
		{"a token of the other issuer", "/any", "Authorization", "Bearer " + annOfB, 200},
		{"in another header", "/any", "X-Token", ann, 200},
		{"in a cookie", "/any", "Cookie", "session=" + ann, 200},
		{"in a header that is not named", "/any", "X-Other", ann, 403},
		{"a changed token", "/open", "Authorization", "Bearer " + ann[:len(ann)-8] + "AAAAAAAA", 401},
		{"another key", "/open", "Authorization", "Bearer " + b.Token(claims("https://a.example", "ann")), 401},
		{"an old token", "/open", "Authorization", "Bearer " + a.Token(claims("https://a.example", "ann", "exp", earlier)), 401},
		{"no token at all", "/open", "Authorization", "Bearer nonsense", 401},
		{"another audience", "/open", "Authorization", "Bearer " + a.Token(claims("https://a.example", "ann", "aud", "other")), 403},
		{"an unknown issuer", "/open", "Authorization", "Bearer " + a.Token(claims("https://c.example", "ann")), 401},
		{"keys that are not here", "/open", "Authorization", "Bearer " + a.Token(claims("https://remote.example", "ann")), 401},
		{"keys that say nothing", "/open", "Authorization", "Bearer " + a.Token(claims("https://bad.example", "ann")), 401},
		{"no keys", "/open", "Authorization", "Bearer " + a.Token(claims("https://empty.example", "ann")), 401},
		{"a principal", "/ann", "Authorization", "Bearer " + ann, 200},
		{"another principal", "/ann", "Authorization", "Bearer " + eve, 403},
		{"the same subject of another issuer", "/ann", "Authorization", "Bearer " + annOfB, 403},
		{"any of an issuer", "/of-a", "Authorization", "Bearer " + eve, 200},
		{"any of another issuer", "/of-a", "Authorization", "Bearer " + annOfB, 403},
		{"a subject of any issuer", "/anns", "Authorization", "Bearer " + annOfB, 200},
		{"another subject", "/anns", "Authorization", "Bearer " + eve, 403},
		{"a claim in a list", "/admin", "Authorization", "Bearer " + ann, 200},
		{"not the claim", "/admin", "Authorization", "Bearer " + eve, 403},
		{"a claim between spaces", "/roles", "Authorization", "Bearer " + ann, 200},
		{"a longer claim", "/roles", "Authorization", "Bearer " + eve, 403},
		{"an audience", "/bank", "Authorization", "Bearer " + ann, 200},
		{"not the audience", "/bank", "Authorization", "Bearer " + eve, 403},
		{"a presenter", "/app", "Authorization", "Bearer " + ann, 200},
		{"not the presenter", "/app", "Authorization", "Bearer " + eve, 403},
		{"a principal that is denied", "/any", "Authorization", "Bearer " + a.Token(claims("https://a.example", "bob")), 403},
	} {
		headers := []string{c.header, c.value}
		if c.header == "" {
			headers = nil
		}
		if got := statusOf(t, caller, "GET", "http://10.7.0.8"+c.path, headers...); got != c.want {
			t.Errorf("%s: %s is answered with %d, want %d", c.name, c.path, got, c.want)
		}
	}
}
