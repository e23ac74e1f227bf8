package jwks

import (
	"iter"
	"net/url"
	"strings"
	"time"

	security "istio.io/api/security/v1"

	"isthmus.dev/isthmus/federation"
)

// How long a server may take to answer: unless a rule says otherwise, and at most.
const (
	defaultTimeout = 5 * time.Second
	MostTimeout    = 30 * time.Second
)

// openIDPath is where an issuer has its OpenID configuration.
const openIDPath = "/.well-known/openid-configuration"

// mostURI bounds a URI in bytes, as the schema of jwksUri does.
const mostURI = 2048

// SourceOf is where the keys of the rule are; false: in the rule itself, or nowhere.
func SourceOf(rule *security.JWTRule) (federation.KeySource, bool) {
	switch {
	case rule.GetJwks() != "":
		return federation.KeySource{}, false
	case rule.GetJwksUri() != "":
		return federation.KeySource{URI: rule.GetJwksUri()}, IsURI(rule.GetJwksUri())
	}
	issuer := rule.GetIssuer()
	if !IsURI(issuer) || strings.ContainsAny(issuer, "?#") {
		return federation.KeySource{}, false
	}
	return federation.KeySource{URI: strings.TrimSuffix(issuer, "/") + openIDPath, OpenID: true}, true
}

// IsURI reports whether keys can be fetched from there: by http or https.
func IsURI(text string) bool {
	u, err := url.Parse(text)
	return err == nil && len(text) <= mostURI && u.Hostname() != "" && (u.Scheme == "http" || u.Scheme == "https")
}

// Timeout is how long the rule lets a server take: 5 s unless it says otherwise, and at most 30 s.
func Timeout(rule *security.JWTRule) time.Duration {
	if rule.GetTimeout() == nil {
		return defaultTimeout
	}
	return min(rule.GetTimeout().AsDuration(), MostTimeout)
}

// Display shows a URI without what may be a secret: user, password, query and fragment.
func Display(uri string) string {
	u, err := url.Parse(uri)
	if err != nil {
		return "a URI that cannot be read"
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// Rules yields the rules of an object.
func Rules(o *federation.Object) iter.Seq2[int, *security.JWTRule] {
	return func(yield func(int, *security.JWTRule) bool) {
		spec, _ := o.Spec.(*security.RequestAuthentication)
		for i, rule := range spec.GetJwtRules() {
			if !yield(i, rule) {
				return
			}
		}
	}
}

// Tried reports whether a try to fetch has ended for all keys that rules of the snapshot need.
func Tried(s *federation.Snapshot) bool {
	for o := range s.Objects().Of(federation.RequestAuthenticationKind) {
		for _, rule := range Rules(o) {
			from, remote := SourceOf(rule)
			if _, tried := federation.KeySetIn(s, from); remote && !tried {
				return false
			}
		}
	}
	return true
}
