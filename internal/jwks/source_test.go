package jwks

import (
	"strings"
	"testing"

	security "istio.io/api/security/v1"

	"isthmus.dev/isthmus/federation"
)

// TestK10WhereKeysAre: in the rule, at its URI, or where the issuer says.
func TestK10WhereKeysAre(t *testing.T) {
	for _, c := range []struct {
		rule *security.JWTRule
		want federation.KeySource
	}{
		{&security.JWTRule{Issuer: "https://a.example", Jwks: `{"keys":[]}`}, federation.KeySource{}},
		{
			&security.JWTRule{Issuer: "https://a.example", JwksUri: "http://keys.auth:8080/x?y=z"},
			federation.KeySource{URI: "http://keys.auth:8080/x?y=z"},
		},
		{
			&security.JWTRule{Issuer: "https://a.example"},
			federation.KeySource{URI: "https://a.example/.well-known/openid-configuration", OpenID: true},
		},
		{
			&security.JWTRule{Issuer: "https://a.example/realm/"},
			federation.KeySource{URI: "https://a.example/realm/.well-known/openid-configuration", OpenID: true},
		},
		{&security.JWTRule{Issuer: "account@example.com"}, federation.KeySource{}},
		{&security.JWTRule{Issuer: "https://a.example?tenant=1"}, federation.KeySource{}},
		{&security.JWTRule{Issuer: "https://" + strings.Repeat("a", mostURI)}, federation.KeySource{}},
		{&security.JWTRule{Issuer: "file:///etc/passwd"}, federation.KeySource{}},
	} {
		got, remote := SourceOf(c.rule)
		if remote != (c.want.URI != "") || remote && got != c.want {
			t.Errorf("the keys of %v are at %v, want %v", c.rule, got, c.want)
		}
	}
	if got := Display("https://user:password@a.example:8443/keys?token=x#y"); got != "https://a.example:8443/keys" {
		t.Errorf("a URI is shown as %s", got)
	}
}
