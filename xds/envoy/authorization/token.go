package authorization

import (
	"fmt"
	"slices"
	"strings"

	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"

	"isthmus.dev/isthmus/xds/envoy/resource"
)

// tokenPrefix begins the keys of conditions about the token of a request.
const tokenPrefix = "request.auth."

// The claims that conditions name in words of their own.
const (
	issuer   = "iss"
	subject  = "sub"
	audience = "aud"
	client   = "azp"
)

// noCaller matches no caller at all.
func noCaller() *rbacv3.Principal { return principals.not(principals.always) }

// ofToken matches what the verified token of a request says under the key of a condition.
func ofToken(key string) func(string) (*rbacv3.Principal, error) {
	name := strings.TrimPrefix(key, tokenPrefix)
	claim := func(path ...string) func(string) (*rbacv3.Principal, error) {
		return func(value string) (*rbacv3.Principal, error) { return claimed(text(value), path...), nil }
	}
	switch name {
	case "principal":
		return requestPrincipal
	case "audiences":
		return claim(audience)
	case "presenter":
		return claim(client)
	}
	path, ok := resource.ClaimPath(strings.TrimPrefix(name, "claims"))
	if !ok || !strings.HasPrefix(name, "claims[") {
		return func(string) (*rbacv3.Principal, error) {
			return nil, fmt.Errorf("%q is not about a token: write request.auth.principal, .audiences, .presenter or .claims[NAME]", key)
		}
	}
	return claim(path...)
}

// claimed matches a claim that is such a text, or a list with one.
func claimed(value *matcherv3.StringMatcher, path ...string) *rbacv3.Principal {
	return &rbacv3.Principal{Identifier: &rbacv3.Principal_SourcedMetadata{SourcedMetadata: &rbacv3.SourcedMetadata{
		MetadataMatcher: resource.ClaimMatcher(value, path...),
	}}}
}

// requestPrincipal matches ISSUER/SUBJECT. Both may have slashes, so each slash of the value may
// be the one between them.
func requestPrincipal(value string) (*rbacv3.Principal, error) {
	var ways []*rbacv3.Principal
	both := func(iss, sub *matcherv3.StringMatcher) {
		ways = append(ways, principals.and([]*rbacv3.Principal{claimed(iss, issuer), claimed(sub, subject)}))
	}
	rest, before, after := value, "", ""
	switch {
	case value == "*":
		both(anything(), anything())
		return ways[0], nil
	case strings.HasPrefix(value, "*"):
		rest, before = value[1:], "*"
		both(anything(), text(value))
	case strings.HasSuffix(value, "*"):
		rest, after = value[:len(value)-1], "*"
		both(text(value), anything())
	}
	for i := range rest {
		iss, sub := before+rest[:i], ""
		if rest[i] == '/' {
			sub = rest[i+1:] + after
		}
		if iss != "" && sub != "" {
			both(text(iss), text(sub))
		}
	}
	if len(ways) == 0 {
		return noCaller(), nil
	}
	return combined(slices.Clip(ways), principals.or), nil
}
