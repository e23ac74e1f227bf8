package virtualservice

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1"
)

// Merge is the delegate's route as the root's route narrows it: it has the matches of both,
// and what it does not say the root does. False: their matches contradict each other, or
// the delegate's are not within the root's. The namespace is the delegate's.
func Merge(root, delegate *networking.HTTPRoute, namespace string) (*networking.HTTPRoute, bool) {
	out := proto.CloneOf(delegate)
	matches, ok := mergeMatches(root.GetMatch(), delegate.GetMatch(), namespace)
	if !ok {
		return nil, false
	}
	out.Match = matches
	out.Name = joinNames(root.GetName(), delegate.GetName())
	out.Rewrite = cmp.Or(out.Rewrite, root.GetRewrite())
	out.Timeout = cmp.Or(out.Timeout, root.GetTimeout())
	out.Retries = cmp.Or(out.Retries, root.GetRetries())
	out.Fault = cmp.Or(out.Fault, root.GetFault())
	out.CorsPolicy = cmp.Or(out.CorsPolicy, root.GetCorsPolicy())
	out.Headers = cmp.Or(out.Headers, root.GetHeaders())
	if out.GetMirror() == nil && len(out.GetMirrors()) == 0 {
		out.Mirror, out.Mirrors, out.MirrorPercentage = root.GetMirror(), root.GetMirrors(), root.GetMirrorPercentage()
	}
	return out, true
}

func joinNames(root, delegate string) string {
	if root == "" || delegate == "" {
		return root + delegate
	}
	return root + "-" + delegate
}

// mergeMatches has each of the delegate's matches within each of the root's that it fits;
// all of them must fit one.
func mergeMatches(root, delegate []*networking.HTTPMatchRequest, namespace string) ([]*networking.HTTPMatchRequest, bool) {
	if len(delegate) == 0 {
		return root, true
	}
	if len(root) == 0 {
		root = []*networking.HTTPMatchRequest{{}}
	}
	var out []*networking.HTTPMatchRequest
	for _, inner := range delegate {
		fits := false
		for _, outer := range root {
			if within(inner, outer) {
				fits = true
				out = append(out, mergeMatch(outer, inner, namespace))
			}
		}
		if !fits {
			return nil, false
		}
	}
	return out, true
}

// within reports whether nothing in the inner match contradicts the outer one or widens it.
func within(inner, outer *networking.HTTPMatchRequest) bool {
	fits := matchWithin(inner.GetUri(), outer.GetUri()) && matchWithin(inner.GetScheme(), outer.GetScheme()) &&
		matchWithin(inner.GetMethod(), outer.GetMethod()) && matchWithin(inner.GetAuthority(), outer.GetAuthority()) &&
		matchesWithin(inner.GetHeaders(), outer.GetHeaders()) && matchesWithin(inner.GetWithoutHeaders(), outer.GetWithoutHeaders()) &&
		matchesWithin(inner.GetQueryParams(), outer.GetQueryParams())
	same := func(a, b string) bool { return a == "" || b == "" || a == b }
	fits = fits && (inner.GetPort() == 0 || outer.GetPort() == 0 || inner.GetPort() == outer.GetPort()) &&
		same(inner.GetSourceNamespace(), outer.GetSourceNamespace())
	fits = fits && (inner.GetUri() == nil || outer.GetUri() == nil || inner.GetIgnoreUriCase() == outer.GetIgnoreUriCase())
	for key, value := range inner.GetSourceLabels() {
		other, has := outer.GetSourceLabels()[key]
		fits = fits && (!has || other == value)
	}
	for _, gateway := range inner.GetGateways() {
		fits = fits && (len(outer.GetGateways()) == 0 || slices.Contains(outer.GetGateways(), gateway))
	}
	return fits
}

func matchesWithin(inner, outer map[string]*networking.StringMatch) bool {
	for name, match := range inner {
		if !matchWithin(match, outer[name]) {
			return false
		}
	}
	return true
}

// matchWithin reports whether the inner match is part of the outer one; nil means no match.
// Of regular expressions nobody can tell, so they stand alone.
func matchWithin(inner, outer *networking.StringMatch) bool {
	if inner == nil || outer == nil {
		return true
	}
	switch o := outer.GetMatchType().(type) {
	case *networking.StringMatch_Exact:
		i, is := inner.GetMatchType().(*networking.StringMatch_Exact)
		return is && i.Exact == o.Exact
	case *networking.StringMatch_Prefix:
		switch i := inner.GetMatchType().(type) {
		case *networking.StringMatch_Exact:
			return strings.HasPrefix(i.Exact, o.Prefix)
		case *networking.StringMatch_Prefix:
			return strings.HasPrefix(i.Prefix, o.Prefix)
		}
	}
	return false
}

func mergeMatch(outer, inner *networking.HTTPMatchRequest, namespace string) *networking.HTTPMatchRequest {
	out := proto.CloneOf(inner)
	out.Name = joinNames(outer.GetName(), inner.GetName())
	out.IgnoreUriCase = inner.GetIgnoreUriCase() || inner.GetUri() == nil && outer.GetIgnoreUriCase()
	out.Uri, out.Scheme = cmp.Or(out.Uri, outer.GetUri()), cmp.Or(out.Scheme, outer.GetScheme())
	out.Method, out.Authority = cmp.Or(out.Method, outer.GetMethod()), cmp.Or(out.Authority, outer.GetAuthority())
	out.Headers = union(outer.GetHeaders(), inner.GetHeaders())
	out.WithoutHeaders = union(outer.GetWithoutHeaders(), inner.GetWithoutHeaders())
	out.QueryParams = union(outer.GetQueryParams(), inner.GetQueryParams())
	out.SourceLabels = union(outer.GetSourceLabels(), inner.GetSourceLabels())
	out.Port = cmp.Or(out.GetPort(), outer.GetPort())
	out.SourceNamespace, out.StatPrefix = cmp.Or(out.GetSourceNamespace(), outer.GetSourceNamespace()),
		cmp.Or(out.GetStatPrefix(), outer.GetStatPrefix())
	if len(out.GetGateways()) == 0 {
		out.Gateways = outer.GetGateways()
		return out
	}
	for i, name := range out.GetGateways() {
		if name != MeshGateway && len(outer.GetGateways()) == 0 && !strings.Contains(name, "/") {
			out.Gateways[i] = namespace + "/" + name
		}
	}
	return out
}

// union has the entries of both; those of the inner one replace others.
func union[V any](outer, inner map[string]V) map[string]V {
	out := maps.Clone(outer)
	if out == nil {
		return inner
	}
	maps.Copy(out, inner)
	return out
}
