package validation

import (
	"regexp"
	"strings"

	api "istio.io/api/networking/v1alpha3"

	"isthmus.dev/isthmus/federation/config/schema"
)

func httpMatch(at path, m *api.HTTPMatchRequest) []Problem {
	var found []Problem
	for _, part := range []struct {
		field string
		match *api.StringMatch
	}{{"uri", m.GetUri()}, {"scheme", m.GetScheme()}, {"method", m.GetMethod()}, {"authority", m.GetAuthority()}} {
		found = append(found, optional(at.field(part.field), part.match, by(stringMatchRules))...)
	}
	found = append(found, namedMatches(at.field("headers"), m.GetHeaders(), matchedHeader)...)
	found = append(found, namedMatches(at.field("withoutHeaders"), m.GetWithoutHeaders(), matchedHeader)...)
	found = append(found, namedMatches(at.field("queryParams"), m.GetQueryParams(), anything)...)
	found = append(found, invalid(at.field("port"), optionalPort(m.GetPort()))...)
	found = append(found, labels(at.field("sourceLabels"), m.GetSourceLabels())...)
	found = append(found, sourceNamespace(at, m.GetSourceNamespace())...)
	return append(found, texts(at.field("gateways"), m.GetGateways(), gatewayName)...)
}

func namedMatches(at path, matches map[string]*api.StringMatch, isName func(string) string) []Problem {
	return entries(at, matches, func(here path, name string, m *api.StringMatch) []Problem {
		if name == "" {
			return problem(at, schema.Required, "a name is empty: write the name that is matched")
		}
		found := invalid(here, isName(name))
		return append(found, optional(here, m, by(stringMatchRules))...)
	})
}

// matchedHeader accepts names of headers, those of HTTP itself, and claims of tokens.
func matchedHeader(name string) string {
	if isClaim(name) {
		return ""
	}
	return headerName(strings.TrimPrefix(name, ":"))
}

var stringMatchRules = []rule[*api.StringMatch]{
	{"prefix", schema.Invalid, func(m *api.StringMatch) string {
		_, is := m.GetMatchType().(*api.StringMatch_Prefix)
		return when(is && m.GetPrefix() == "", "the prefix is empty, which everything has: write one, or remove the match")
	}},
	{"regex", schema.Invalid, func(m *api.StringMatch) string {
		_, is := m.GetMatchType().(*api.StringMatch_Regex)
		return when(is && m.GetRegex() == "", "the expression is empty: write one, or remove the match")
	}},
	{"regex", schema.Invalid, func(m *api.StringMatch) string { return regularExpression(m.GetRegex()) }},
}

func headers(at path, h *api.Headers) []Problem {
	found := optional(at.field("request"), h.GetRequest(), headerOperations(true))
	return append(found, optional(at.field("response"), h.GetResponse(), headerOperations(false))...)
}

// headerOperations checks changes of headers. Only the host of a request may be
// set.
func headerOperations(request bool) func(path, *api.Headers_HeaderOperations) []Problem {
	return func(at path, o *api.Headers_HeaderOperations) []Problem {
		found := entries(at.field("set"), o.GetSet(), func(at path, name, value string) []Problem {
			if request && isHost(name) {
				return invalid(at, headerValue(value))
			}
			return invalid(at, either(changedHeader(name), headerValue(value)))
		})
		found = append(found, entries(at.field("add"), o.GetAdd(), func(at path, name, value string) []Problem {
			if request && isHost(name) {
				return invalid(at, headerValue(value))
			}
			return invalid(at, either(changedHeader(name), headerValue(value)))
		})...)
		return append(found, texts(at.field("remove"), o.GetRemove(), changedHeader)...)
	}
}

func either(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func isHost(name string) bool {
	return strings.EqualFold(name, "host") || strings.EqualFold(name, ":authority")
}

// setsHost counts how often the host is set; what is added replaces it, too.
func setsHost(h *api.Headers) int {
	times := 0
	for _, values := range []map[string]string{h.GetRequest().GetSet(), h.GetRequest().GetAdd()} {
		for name := range values {
			if isHost(name) {
				times++
			}
		}
	}
	return times
}

// changedHeader is the name of a header that a route adds, sets or removes.
func changedHeader(name string) string {
	return either(headerName(name), when(strings.EqualFold(name, "host"),
		"the host can be replaced in requests alone: write headers.request.set"))
}

// headerName accepts the tokens of RFC 9110.
func headerName(name string) string {
	wrong := strings.ContainsFunc(name, func(r rune) bool {
		return r <= ' ' || r > '~' || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
	})
	switch {
	case name == "":
		return "the name of a header is empty"
	case strings.HasPrefix(name, ":"):
		return when(true, "%q is set by HTTP itself and cannot be changed: remove it", name)
	}
	return when(wrong, "%q is not the name of a header", name)
}

func headerValue(value string) string {
	control := func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }
	return either(
		when(strings.ContainsFunc(value, control), "the value has a line break or another control character: write printable text in one line"),
		when(!percentSigns.MatchString(value),
			"a %% begins a command of Envoy that does not end: write %%%% for the sign itself, or a whole command such as %%REQ(x-id)%%"))
}

// percentSigns is a text in which each percent sign is doubled or belongs to a
// command, %NAME%, %NAME(ARGUMENTS)% or %NAME(ARGUMENTS):LENGTH%.
var percentSigns = regexp.MustCompile(`^(?s:[^%]|%%|%[^%(]*(?:\([^)]*\)[^%]*)?%)*$`)

// httpMethods are the methods that a cross-origin policy may allow.
var httpMethods = setOf("* GET HEAD POST PUT PATCH DELETE CONNECT OPTIONS TRACE")

func cors(at path, c *api.CorsPolicy) []Problem {
	found := each(at.field("allowOrigins"), c.GetAllowOrigins(), func(at path, origin *api.StringMatch) []Problem {
		none := origin.GetExact() == "" && origin.GetPrefix() == "" && origin.GetRegex() == ""
		if none {
			return problem(at, schema.Required, "no origin is named: write exact, prefix or regex")
		}
		return apply(at, origin, stringMatchRules)
	})
	found = append(found, texts(at.field("allowMethods"), c.GetAllowMethods(), func(method string) string {
		return when(!httpMethods[method], "%q is not a method of HTTP: write GET, HEAD, POST, PUT, PATCH, DELETE, CONNECT, OPTIONS, TRACE or *",
			method)
	})...)
	found = append(found, texts(at.field("allowHeaders"), c.GetAllowHeaders(), corsHeader)...)
	found = append(found, texts(at.field("exposeHeaders"), c.GetExposeHeaders(), corsHeader)...)
	age := c.GetMaxAge().AsDuration()
	return append(found, invalid(at.field("maxAge"), when(age < 0 || age%1e9 != 0, "%s: write whole seconds, 0 or more", age))...)
}

func corsHeader(name string) string {
	if name == "*" {
		return ""
	}
	return headerName(name)
}
