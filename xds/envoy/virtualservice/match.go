package virtualservice

import (
	"fmt"
	"maps"
	"slices"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"
	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/internal/re2"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

// RouteMatch matches a request that meets all of its conditions. verified says that the proxy verifies
// tokens of requests: otherwise a match of claims applies to no request.
func RouteMatch(in *networking.HTTPMatchRequest, verified bool) (*routev3.RouteMatch, error) {
	m := resource.AnyPath()
	if !setClaimMatches(m, in, verified) {
		return noRequest(), nil
	}
	if err := setPath(m, in); err != nil {
		return nil, fmt.Errorf(".uri: %w", err)
	}
	for _, pseudo := range []struct {
		field, header string
		match         *networking.StringMatch
	}{
		{"scheme", ":scheme", in.GetScheme()}, {"method", ":method", in.GetMethod()}, {"authority", ":authority", in.GetAuthority()},
	} {
		if pseudo.match == nil {
			continue
		}
		h, err := headerMatch(pseudo.header, pseudo.match)
		if err != nil {
			return nil, fmt.Errorf(".%s: %w", pseudo.field, err)
		}
		m.Headers = append(m.Headers, h)
	}
	if err := setHeaderMatches(m, in); err != nil {
		return nil, err
	}
	return m, setQueryMatches(m, in.GetQueryParams())
}

// noRequest matches nothing: every request has a method. A route that depends on
// something unknown must not match, and it stays, so that requests do not reach the
// service as if the rule were not there.
func noRequest() *routev3.RouteMatch {
	m := resource.AnyPath()
	m.Headers = []*routev3.HeaderMatcher{{
		Name: ":method", HeaderMatchSpecifier: &routev3.HeaderMatcher_PresentMatch{PresentMatch: true}, InvertMatch: true,
	}}
	return m
}

func setPath(m *routev3.RouteMatch, in *networking.HTTPMatchRequest) error {
	switch uri := in.GetUri().GetMatchType().(type) {
	case *networking.StringMatch_Exact:
		m.PathSpecifier = &routev3.RouteMatch_Path{Path: uri.Exact}
	case *networking.StringMatch_Prefix:
		m.PathSpecifier = &routev3.RouteMatch_Prefix{Prefix: uri.Prefix}
	case *networking.StringMatch_Regex:
		re, err := safeRegex(uri.Regex)
		m.PathSpecifier = &routev3.RouteMatch_SafeRegex{SafeRegex: re}
		return err // the case is up to the expression
	}
	if in.GetIgnoreUriCase() {
		m.CaseSensitive = wrapperspb.Bool(false)
	}
	return nil
}

// ReservedHeaders are names of headers that matches do not mean as headers.
var ReservedHeaders = []string{"uri", "scheme", "method", "authority"}

func setHeaderMatches(m *routev3.RouteMatch, in *networking.HTTPMatchRequest) error {
	for _, name := range slices.Sorted(maps.Keys(in.GetHeaders())) {
		if slices.Contains(ReservedHeaders, name) || isClaim(name) {
			continue
		}
		h, err := headerMatch(name, in.GetHeaders()[name])
		if err != nil {
			return fmt.Errorf(".headers[%s]: %w", name, err)
		}
		m.Headers = append(m.Headers, h)
	}
	for _, name := range slices.Sorted(maps.Keys(in.GetWithoutHeaders())) {
		if isClaim(name) {
			continue
		}
		h, err := headerMatch(name, in.GetWithoutHeaders()[name])
		if err != nil {
			return fmt.Errorf(".withoutHeaders[%s]: %w", name, err)
		}
		h.InvertMatch = true
		h.TreatMissingHeaderAsEmpty = h.GetStringMatch() != nil // what is missing does not match
		m.Headers = append(m.Headers, h)
	}
	return nil
}

func headerMatch(name string, in *networking.StringMatch) (*routev3.HeaderMatcher, error) {
	h := &routev3.HeaderMatcher{Name: name}
	if anyValue(in) {
		h.HeaderMatchSpecifier = &routev3.HeaderMatcher_PresentMatch{PresentMatch: true}
		return h, nil
	}
	m, err := stringMatcher(in)
	h.HeaderMatchSpecifier = &routev3.HeaderMatcher_StringMatch{StringMatch: m}
	return h, err
}

// anyValue reports whether a value only has to be there.
func anyValue(in *networking.StringMatch) bool {
	return in.GetMatchType() == nil || in.GetRegex() == "*"
}

func setQueryMatches(m *routev3.RouteMatch, params map[string]*networking.StringMatch) error {
	for _, name := range slices.Sorted(maps.Keys(params)) {
		q := &routev3.QueryParameterMatcher{Name: name}
		if anyValue(params[name]) {
			q.QueryParameterMatchSpecifier = &routev3.QueryParameterMatcher_PresentMatch{PresentMatch: true}
		} else {
			match, err := stringMatcher(params[name])
			if err != nil {
				return fmt.Errorf(".queryParams[%s]: %w", name, err)
			}
			q.QueryParameterMatchSpecifier = &routev3.QueryParameterMatcher_StringMatch{StringMatch: match}
		}
		m.QueryParameters = append(m.QueryParameters, q)
	}
	return nil
}

func stringMatcher(in *networking.StringMatch) (*matcherv3.StringMatcher, error) {
	switch match := in.GetMatchType().(type) {
	case *networking.StringMatch_Prefix:
		if match.Prefix != "" {
			return &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Prefix{Prefix: match.Prefix}}, nil
		}
		return &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_SafeRegex{SafeRegex: &matcherv3.RegexMatcher{Regex: ".*"}}}, nil
	case *networking.StringMatch_Regex:
		re, err := safeRegex(match.Regex)
		return &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_SafeRegex{SafeRegex: re}}, err
	}
	return &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Exact{Exact: in.GetExact()}}, nil
}

// safeRegex is an expression that Envoy's library accepts.
func safeRegex(text string) (*matcherv3.RegexMatcher, error) {
	if err := re2.Check(text); err != nil {
		return nil, err
	}
	return &matcherv3.RegexMatcher{Regex: text}, nil
}
