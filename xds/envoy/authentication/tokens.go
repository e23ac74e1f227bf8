package authentication

import (
	"cmp"
	"fmt"
	"slices"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	jwtv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/jwt_authn/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/types/known/emptypb"
	security "istio.io/api/security/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/jwks"
	"isthmus.dev/isthmus/xds/envoy/facet"
	"isthmus.dev/isthmus/xds/envoy/node"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

// Tokens says which tokens of requests are valid.
type Tokens struct {
	objects []*federation.Object
	config  *jwtv3.JwtAuthentication // nil: no token is looked at
}

// TokensOf finds the RequestAuthentications that select the view's proxies. All of them hold.
func TokensOf(v *facet.View) *Tokens {
	t := &Tokens{objects: selecting(v)}
	var names []string
	providers := map[string]*jwtv3.JwtProvider{}
	for _, o := range t.objects {
		for i, rule := range jwks.Rules(o) {
			name := fmt.Sprintf("origins-%d", len(names))
			names, providers[name] = append(names, name), provider(v, rule, keysOf(v, o, i, rule))
		}
	}
	if len(names) > 0 {
		t.config = &jwtv3.JwtAuthentication{
			Providers: providers, BypassCorsPreflight: true,
			Rules: []*jwtv3.RequirementRule{{
				Match:           &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: "/"}},
				RequirementType: &jwtv3.RequirementRule_Requires{Requires: requirement(names)},
			}},
		}
	}
	return t
}

// selecting are the RequestAuthentications that select the view's proxies, the oldest first.
func selecting(v *facet.View) (found []*federation.Object) {
	for o := range v.Policies(federation.RequestAuthenticationKind) {
		spec, ok := o.Spec.(*security.RequestAuthentication)
		if ok && facet.Selects(spec, o.Key.Namespace, v.Facet) {
			found = append(found, o)
		}
	}
	slices.SortFunc(found, (*federation.Object).CompareAge)
	return found
}

// VerifiesTokens reports whether the view's proxies verify tokens of requests, whosever they are.
func VerifiesTokens(v *facet.View) bool {
	return slices.ContainsFunc(selecting(v), func(o *federation.Object) bool {
		return len(o.Spec.(*security.RequestAuthentication).GetJwtRules()) > 0
	})
}

// Requests has tokens verified before anything else looks at requests.
func (t *Tokens) Requests(m *hcmv3.HttpConnectionManager) {
	if t.config != nil {
		m.HttpFilters = append([]*hcmv3.HttpFilter{resource.InHTTP(resource.JWTFilter, t.config)}, m.HttpFilters...)
	}
}

// Made notes that the chain is made of the objects.
func (t *Tokens) Made(v *facet.View, chain *listenerv3.FilterChain) {
	for _, o := range t.objects {
		v.CausedBy(o, chain.GetFilters()[0])
	}
}

// requirement is Istio's: a request without a token passes, and one that has a token must have
// a valid one. Several providers may look for tokens at the same place, where the token of one
// is not one of the others: that of any is enough.
func requirement(providers []string) *jwtv3.JwtRequirement {
	var any, each []*jwtv3.JwtRequirement
	for _, name := range providers {
		of := &jwtv3.JwtRequirement{RequiresType: &jwtv3.JwtRequirement_ProviderName{ProviderName: name}}
		missing := &jwtv3.JwtRequirement{RequiresType: &jwtv3.JwtRequirement_AllowMissing{AllowMissing: &emptypb.Empty{}}}
		any, each = append(any, of), append(each, anyOf([]*jwtv3.JwtRequirement{of, missing}))
	}
	if len(each) == 1 {
		return each[0]
	}
	all := &jwtv3.JwtRequirement{RequiresType: &jwtv3.JwtRequirement_RequiresAll{RequiresAll: &jwtv3.JwtRequirementAndList{Requirements: each}}}
	return anyOf(append(any, all))
}

func anyOf(all []*jwtv3.JwtRequirement) *jwtv3.JwtRequirement {
	return &jwtv3.JwtRequirement{RequiresType: &jwtv3.JwtRequirement_RequiresAny{RequiresAny: &jwtv3.JwtRequirementOrList{Requirements: all}}}
}

// keysOf are the keys of a rule: its own, or those that were fetched for it. Without any, it is
// a key that nobody has.
func keysOf(v *facet.View, o *federation.Object, i int, rule *security.JWTRule) string {
	from, remote := jwks.SourceOf(rule)
	if !remote {
		keys, err := jwks.Keys(rule.GetJwks())
		if err != nil {
			return jwks.LostKey
		}
		return keys
	}
	set, tried := federation.ReadKeySet(v.Reader, from)
	at := fmt.Sprintf("%s: jwtRules[%d]", o.Key.Title(), i)
	uri := jwks.Display(from.URI)
	switch {
	case !tried:
		why := fmt.Sprintf("%s: tokens of the issuer are refused: the hub has not fetched keys from %s yet", at, uri)
		v.LeaveOut(resource.Reason{Code: resource.ReasonNoKeys, Cause: o.Key, Message: why})
	case set.Keys == "":
		why := fmt.Sprintf("%s: tokens of the issuer are refused: the hub has no keys from %s: %s", at, uri, set.Problem)
		v.LeaveOut(resource.Reason{Code: resource.ReasonNoKeys, Cause: o.Key, Message: why})
	case set.Problem != "":
		why := fmt.Sprintf("%s: tokens are verified by the last keys that the hub fetched from %s; now it cannot: %s", at, uri, set.Problem)
		v.LeaveOut(resource.Reason{Code: resource.ReasonOldKeys, Cause: o.Key, Message: why})
	}
	return cmp.Or(set.Keys, jwks.LostKey)
}

// provider is who issues the tokens of a rule.
func provider(v *facet.View, rule *security.JWTRule, keys string) *jwtv3.JwtProvider {
	p := &jwtv3.JwtProvider{
		Issuer: rule.GetIssuer(), Audiences: rule.GetAudiences(), Forward: rule.GetForwardOriginalToken(),
		JwksSourceSpecifier: &jwtv3.JwtProvider_LocalJwks{LocalJwks: &corev3.DataSource{Specifier: &corev3.DataSource_InlineString{InlineString: keys}}},
		FromParams:          rule.GetFromParams(), FromCookies: rule.GetFromCookies(),
		ForwardPayloadHeader: rule.GetOutputPayloadToHeader(),
		PayloadInMetadata:    resource.ClaimsKey,
		NormalizePayloadInMetadata: &jwtv3.JwtProvider_NormalizePayload{
			SpaceDelimitedClaims: append([]string{"scope", "permission"}, rule.GetSpaceDelimitedClaims()...),
		},
		ClearRouteCache: v.Facet.Has(node.ClaimRoutes),
	}
	for _, h := range rule.GetFromHeaders() {
		p.FromHeaders = append(p.FromHeaders, &jwtv3.JwtHeader{Name: h.GetName(), ValuePrefix: h.GetPrefix()})
	}
	for _, c := range rule.GetOutputClaimToHeaders() {
		p.ClaimToHeaders = append(p.ClaimToHeaders, &jwtv3.JwtClaimToHeader{HeaderName: c.GetHeader(), ClaimName: c.GetClaim()})
	}
	return p
}
