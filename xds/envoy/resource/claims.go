package resource

import (
	"strings"

	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
)

// JWTFilter is the name of the filter that verifies tokens, and of its metadata; ClaimsKey is
// where this has the claims of the token that was verified.
const (
	JWTFilter = "envoy.filters.http.jwt_authn"
	ClaimsKey = "payload"
)

// ClaimPath reads [NAME][NAME]…, the path of a claim within a token.
func ClaimPath(text string) ([]string, bool) {
	inner, opens := strings.CutPrefix(text, "[")
	inner, closes := strings.CutSuffix(inner, "]")
	if !opens || !closes {
		return nil, false
	}
	path := strings.Split(inner, "][")
	for _, name := range path {
		if name == "" || strings.ContainsAny(name, "[]") {
			return nil, false
		}
	}
	return path, true
}

// ClaimMatcher matches a claim that is such a text, or a list that has one.
func ClaimMatcher(value *matcherv3.StringMatcher, path ...string) *matcherv3.MetadataMatcher {
	segment := func(key string) *matcherv3.MetadataMatcher_PathSegment {
		return &matcherv3.MetadataMatcher_PathSegment{Segment: &matcherv3.MetadataMatcher_PathSegment_Key{Key: key}}
	}
	text := &matcherv3.ValueMatcher{MatchPattern: &matcherv3.ValueMatcher_StringMatch{StringMatch: value}}
	list := &matcherv3.ValueMatcher{MatchPattern: &matcherv3.ValueMatcher_ListMatch{ListMatch: &matcherv3.ListMatcher{
		MatchPattern: &matcherv3.ListMatcher_OneOf{OneOf: text},
	}}}
	m := &matcherv3.MetadataMatcher{
		Filter: JWTFilter, Path: []*matcherv3.MetadataMatcher_PathSegment{segment(ClaimsKey)},
		Value: &matcherv3.ValueMatcher{
			MatchPattern: &matcherv3.ValueMatcher_OrMatch{OrMatch: &matcherv3.OrMatcher{ValueMatchers: []*matcherv3.ValueMatcher{text, list}}},
		},
	}
	for _, key := range path {
		m.Path = append(m.Path, segment(key))
	}
	return m
}
