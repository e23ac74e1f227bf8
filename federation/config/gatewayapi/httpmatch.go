package gatewayapi

import (
	"slices"
	"strings"

	gateway "sigs.k8s.io/gateway-api/apis/v1"

	"isthmus.dev/isthmus/federation"
)

// matched is a match of requests.
type matched struct {
	rank   rank
	regex  bool
	value  string // of the path, without a slash at the end of a prefix
	fields object // of each match of the VirtualService
}

// part is one or two matches for the same action.
type part struct {
	matches []any
	prefix  string // that the match replaces; "" for a whole path
}

// parts are the matches of the path: a prefix of whole elements is /a and /a/. They are
// apart where the action depends on what is matched.
func (m matched) parts(apart bool) []part {
	uri := func(how, value string) object {
		fields := object{"uri": object{how: value}}
		for name, f := range m.fields {
			fields[name] = f
		}
		return fields
	}
	switch {
	case m.rank.class == exactPath:
		return []part{{matches: []any{uri("exact", m.value)}}}
	case m.regex:
		return []part{{matches: []any{uri("regex", m.value)}}}
	case m.value == "":
		return []part{{[]any{uri("prefix", "/")}, "/"}}
	case apart:
		return []part{{matches: []any{uri("exact", m.value)}}, {[]any{uri("prefix", m.value+"/")}, m.value + "/"}}
	}
	return []part{{matches: []any{uri("exact", m.value), uri("prefix", m.value+"/")}}}
}

// match reads a match. One that cannot be expressed matches nothing, and is reported.
func (t *httpTranslation) match(in gateway.HTTPRouteMatch, field string) (m matched, ok bool) {
	ok = true
	refuse := func(field, format string, args ...any) {
		t.status.unsupported(field, format+"; the match has no effect", args...)
		ok = false
	}
	m.fields = object{}
	t.matchPath(&m, in.Path, field, refuse)
	if in.Method != nil {
		m.rank.method = true
		m.fields["method"] = object{"exact": string(*in.Method)}
	}
	headers := object{}
	for i, h := range in.Headers {
		name, at := strings.ToLower(string(h.Name)), itemField(field+".headers", i)
		if headers[name] != nil {
			continue // the first of a name counts
		}
		if slices.Contains(reservedHeaders, name) {
			refuse(at+".name", "a header of the name %s cannot be matched", name)
			continue
		}
		headers[name] = t.stringMatch(h.Type != nil && *h.Type == gateway.HeaderMatchRegularExpression, h.Value, at+".value", refuse)
	}
	queries := object{}
	for i, q := range in.QueryParams {
		at := itemField(field+".queryParams", i)
		if queries[string(q.Name)] == nil {
			regex := q.Type != nil && *q.Type == gateway.QueryParamMatchRegularExpression
			queries[string(q.Name)] = t.stringMatch(regex, q.Value, at+".value", refuse)
		}
	}
	m.rank.headers = len(headers)
	if m.rank.headers > 0 {
		m.fields["headers"] = headers
	}
	m.rank.queries = len(queries)
	if m.rank.queries > 0 {
		m.fields["queryParams"] = queries
	}
	return m, ok
}

// reservedHeaders are names that a VirtualService does not mean as headers.
var reservedHeaders = []string{"uri", "scheme", "method", "authority"}

// matchPath reads the path of the match at the field. That of a GRPCRoute was made from a method.
func (t *httpTranslation) matchPath(m *matched, in *gateway.HTTPPathMatch, field string, refuse func(field, format string, args ...any)) {
	kind, value := gateway.PathMatchPathPrefix, "/"
	if in != nil && in.Type != nil {
		kind = *in.Type
	}
	if in != nil && in.Value != nil {
		value = *in.Value
	}
	m.value, m.rank.length = value, len(value)
	switch kind {
	case gateway.PathMatchExact:
		m.rank.class = exactPath
	case gateway.PathMatchRegularExpression:
		m.rank.class, m.regex = regexPath, true
		at := field + ".path.value"
		if t.route.grpc {
			m.rank.class, m.rank.length = prefixPath, 1 // after the matches of a service
			at = field + ".method"
		}
		if err := t.sum.Check(value); err != nil {
			refuse(at, "%v", err)
		}
	case gateway.PathMatchPathPrefix:
		m.rank.class = prefixPath
		m.value = strings.TrimRight(value, "/")
		m.rank.length = len(m.value)
	default:
		refuse(field+".path.type", "the type %s is not supported", federation.Quote(string(kind)))
	}
}

func (t *httpTranslation) stringMatch(regex bool, value, field string, refuse func(field, format string, args ...any)) object {
	if !regex {
		return object{"exact": value}
	}
	if err := t.sum.Check(value); err != nil {
		refuse(field, "%v", err)
	}
	return object{"regex": value}
}
