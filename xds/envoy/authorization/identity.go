package authorization

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/re2"
)

const spiffe = "spiffe://"

// identified matches callers whose certificate has such a name. Where certificates are not
// verified, no caller has a name.
func (c *compiler) identified(name *matcherv3.StringMatcher) *rbacv3.Principal {
	if c.unverified {
		return principals.not(principals.always)
	}
	return &rbacv3.Principal{Identifier: &rbacv3.Principal_Authenticated_{Authenticated: &rbacv3.Principal_Authenticated{PrincipalName: name}}}
}

func (c *compiler) identifiedBy(pattern string) (*rbacv3.Principal, error) {
	if err := re2.Check(pattern); err != nil {
		return nil, err
	}
	return c.identified(expression(pattern)), nil
}

// principal matches TRUSTDOMAIN/ns/NAMESPACE/sa/ACCOUNT, a prefix or a suffix of it, or
// every caller that has an identity.
func (c *compiler) principal(value string) (*rbacv3.Principal, error) {
	if strings.Contains(value, spiffe) {
		return nil, fmt.Errorf("%q is not a principal: write it without spiffe://", value)
	}
	if strings.Count(value, "*") > 1 || strings.Contains(strings.Trim(value, "*"), "*") {
		return nil, fmt.Errorf("%q is not a principal: * may only be its first or its last character", value)
	}
	var names []*rbacv3.Principal
	for _, name := range c.otherwise(value) {
		m := text(name)
		switch of := m.GetMatchPattern().(type) {
		case *matcherv3.StringMatcher_Exact:
			of.Exact = spiffe + of.Exact
		case *matcherv3.StringMatcher_Prefix:
			of.Prefix = spiffe + of.Prefix
		}
		names = append(names, c.identified(m))
	}
	return combined(names, principals.or), nil
}

// otherwise are the principal and how it is called in the other trust domains of the mesh,
// if it is of one of them. cluster.local means that of the mesh, whatever its name; those
// of other clusters mean themselves.
func (c *compiler) otherwise(principal string) []string {
	names := []string{principal}
	parts := strings.Split(principal, "/")
	if len(parts) != 5 || parts[0] == "*" {
		return names
	}
	suffix, wild := strings.CutPrefix(parts[0], "*")
	covers := func(domain string) bool { return domain == parts[0] || wild && strings.HasSuffix(domain, suffix) }
	if parts[0] != federation.DefaultTrustDomain && !slices.ContainsFunc(c.domains, covers) {
		return names
	}
	for _, domain := range c.domains {
		if !covers(domain) {
			names = append(names, domain+"/"+strings.Join(parts[1:], "/"))
		}
	}
	return names
}

// wild is an expression for a text in which * is any number of letters of one segment.
func wild(value string) string {
	return strings.ReplaceAll(regexp.QuoteMeta(value), `\*`, "[^/]*")
}

func (c *compiler) namespaceOf(value string) (*rbacv3.Principal, error) {
	return c.identifiedBy(spiffe + "[^/]+/ns/" + wild(value) + "/.*")
}

// trustDomain matches callers of the trust domain. One of the mesh's means all of them.
func (c *compiler) trustDomain(value string) (*rbacv3.Principal, error) {
	names := []string{value}
	if slices.Contains(c.domains, value) {
		names = c.domains
	}
	var of []*rbacv3.Principal
	for _, name := range names {
		m, err := c.identifiedBy(spiffe + wild(name) + "/.*")
		if err != nil {
			return nil, err
		}
		of = append(of, m)
	}
	return combined(of, principals.or), nil
}

// serviceAccount matches NAMESPACE/NAME, or NAME of the policy's namespace, in any trust
// domain.
func (c *compiler) serviceAccount(value string) (*rbacv3.Principal, error) {
	namespace, name, scoped := strings.Cut(value, "/")
	if !scoped {
		namespace, name = c.namespace, value
	}
	if name == "" || scoped && namespace == "" || strings.Contains(name, "/") || strings.Contains(value, "*") {
		return nil, fmt.Errorf("%q is not a service account: write NAME or NAMESPACE/NAME, without *", value)
	}
	return c.identifiedBy(spiffe + "[^/]+/ns/" + regexp.QuoteMeta(namespace) + "/sa/" + regexp.QuoteMeta(name))
}
