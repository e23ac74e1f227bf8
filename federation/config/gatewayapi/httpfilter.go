package gatewayapi

import (
	"net/http"
	"regexp"
	"strings"

	gateway "sigs.k8s.io/gateway-api/apis/v1"

	"isthmus.dev/isthmus/federation"
)

// filter adds a filter of the rule.
func (t *httpTranslation) filter(a *action, f gateway.HTTPRouteFilter, field string, at *listener) {
	headers, _ := a.base["headers"].(object)
	if headers == nil {
		headers = object{}
	}
	switch {
	case f.Type == gateway.HTTPRouteFilterRequestHeaderModifier && f.RequestHeaderModifier != nil:
		t.modify(headers, "request", f.RequestHeaderModifier, field+".requestHeaderModifier")
		a.base["headers"] = headers
	case f.Type == gateway.HTTPRouteFilterResponseHeaderModifier && f.ResponseHeaderModifier != nil:
		t.modify(headers, "response", f.ResponseHeaderModifier, field+".responseHeaderModifier")
		a.base["headers"] = headers
	case f.Type == gateway.HTTPRouteFilterRequestRedirect && f.RequestRedirect != nil:
		t.redirect(a, f.RequestRedirect, field+".requestRedirect", at)
	case f.Type == gateway.HTTPRouteFilterURLRewrite && f.URLRewrite != nil:
		a.field, a.to = "rewrite", object{}
		if f.URLRewrite.Hostname != nil {
			a.to["authority"] = string(*f.URLRewrite.Hostname)
		}
		t.replacePath(a, f.URLRewrite.Path, field+".urlRewrite.path")
	case f.Type == gateway.HTTPRouteFilterRequestMirror && f.RequestMirror != nil:
		t.mirror(a, f.RequestMirror, field+".requestMirror")
	case f.Type == gateway.HTTPRouteFilterCORS && f.CORS != nil:
		t.cors(a, f.CORS, field+".cors")
	default:
		t.refuse(field, "the filter %s is not supported; requests of the rule get 500", f.Type)
		a.refused = true
	}
}

// refuse adds that the route has a value that is not supported.
func (t *httpTranslation) refuse(field, format string, args ...any) {
	t.faults.add(accepted, string(gateway.RouteReasonUnsupportedValue), field, format, args...)
}

// replacePath has the action replace the path.
func (t *httpTranslation) replacePath(a *action, path *gateway.HTTPPathModifier, field string) {
	switch {
	case path == nil:
		return
	case path.Type == gateway.FullPathHTTPPathModifier && path.ReplaceFullPath != nil && isPath(*path.ReplaceFullPath):
	case path.Type == gateway.PrefixMatchHTTPPathModifier && path.ReplacePrefixMatch != nil && isPath(*path.ReplacePrefixMatch):
		a.byPath = true
	default:
		t.refuse(field, "the path cannot be used; requests of the rule get 500")
		a.refused = true
		return
	}
	a.path = path
}

// isPath reports whether a path can be in a request.
func isPath(value string) bool { return (value == "" || value[0] == '/') && isText(value) }

// isText reports whether a value can be in a header.
func isText(value string) bool {
	return !strings.ContainsFunc(value, func(letter rune) bool { return letter < ' ' && letter != '\t' || letter == 0x7f })
}

func (t *httpTranslation) redirect(a *action, in *gateway.HTTPRequestRedirectFilter, field string, at *listener) {
	a.field, a.to = "redirect", object{}
	if in.StatusCode != nil {
		a.to["redirectCode"] = *in.StatusCode
	} else {
		a.to["redirectCode"] = http.StatusFound
	}
	if in.Scheme != nil {
		a.to["scheme"] = *in.Scheme
	}
	if in.Hostname != nil {
		a.to["authority"] = string(*in.Hostname)
	}
	switch {
	case in.Port != nil:
		a.to["port"] = *in.Port
	case at != nil && in.Scheme == nil && at.Port != wellKnown[at.Protocol]:
		a.to["port"] = at.Port
	}
	t.replacePath(a, in.Path, field+".path")
}

// wellKnown are the ports that are excluded from a URL.
var wellKnown = map[gateway.ProtocolType]gateway.PortNumber{gateway.HTTPProtocolType: 80, gateway.HTTPSProtocolType: 443}

func (t *httpTranslation) mirror(a *action, in *gateway.HTTPRequestMirrorFilter, field string) {
	b := t.route.resolve(t.reader, in.BackendRef, field+".backendRef", t.faults)
	if b.host == "" {
		return
	}
	part, of := 100.0, 100.0
	switch {
	case in.Percent != nil:
		part = float64(*in.Percent)
	case in.Fraction != nil:
		part = float64(in.Fraction.Numerator)
		if in.Fraction.Denominator != nil {
			of = float64(max(*in.Fraction.Denominator, 1))
		}
	}
	mirrors, _ := a.base["mirrors"].([]any)
	a.base["mirrors"] = append(mirrors, object{"destination": b.destination(), "percentage": percentage(part, of)})
}

// percentage is a share of requests, which is not less than Envoy can tell from none.
func percentage(part, of float64) object {
	if part == 0 {
		return object{"value": 0}
	}
	return object{"value": max(100*part/of, 0.0001)}
}

// headerName is what Envoy accepts as the name of a header.
var headerName = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")

// modify adds a change of headers.
func (t *httpTranslation) modify(headers object, side string, in *gateway.HTTPHeaderFilter, field string) {
	operations, _ := headers[side].(object)
	if operations == nil {
		operations = object{}
	}
	values := func(how string, list []gateway.HTTPHeader) {
		set, _ := operations[how].(object)
		if set == nil {
			set = object{}
		}
		for i, h := range list {
			name, at := strings.ToLower(string(h.Name)), itemField(field+"."+how, i)
			if !headerName.MatchString(name) || !isText(h.Value) {
				t.status.unsupported(at, "the header cannot be sent and is left as it is")
				continue
			}
			if _, given := set[name]; !given {
				set[name] = strings.ReplaceAll(h.Value, "%", "%%") // it is not a command of Envoy
			}
		}
		if len(set) > 0 {
			operations[how] = set
		}
	}
	values("set", in.Set)
	values("add", in.Add)
	removed, _ := operations["remove"].([]string)
	for i, name := range in.Remove {
		if !headerName.MatchString(name) || strings.EqualFold(name, "host") {
			t.status.unsupported(itemField(field+".remove", i), "the header %s cannot be removed", federation.Quote(name))
			continue
		}
		removed = append(removed, strings.ToLower(name))
	}
	if len(removed) > 0 {
		operations["remove"] = removed
	}
	if len(operations) > 0 {
		headers[side] = operations
	}
}
