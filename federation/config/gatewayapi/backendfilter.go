package gatewayapi

import gateway "sigs.k8s.io/gateway-api/apis/v1"

// changesHeaders reports whether the filter of a backend changes headers alone.
func changesHeaders(f gateway.HTTPRouteFilter) bool {
	return f.Type == gateway.HTTPRouteFilterRequestHeaderModifier && f.RequestHeaderModifier != nil ||
		f.Type == gateway.HTTPRouteFilterResponseHeaderModifier && f.ResponseHeaderModifier != nil
}

// onlyBackend applies filters of the only backend of a rule: they are for all requests of the
// rule. Changes of headers stay with the backend. One that cannot be used gets no requests.
func (t *httpTranslation) onlyBackend(a *action, rule *gateway.HTTPRouteRule, field string, at *listener) {
	if len(rule.BackendRefs) != 1 {
		return
	}
	ref := rule.BackendRefs[0]
	if weightOf(ref.Weight) == 0 || t.route.resolve(t.reader, ref.BackendObjectReference, field, &faults{}).host == "" {
		return
	}
	field = itemField(field, 0) + ".filters"
	for i, f := range ref.Filters {
		of := itemField(field, i)
		moves := f.Type == gateway.HTTPRouteFilterRequestRedirect || f.Type == gateway.HTTPRouteFilterURLRewrite
		switch {
		case changesHeaders(f):
		case moves && a.to != nil:
			t.status.unsupported(of, "the rule redirects requests or rewrites their URLs, too; requests of the rule get 500")
			a.refused = true
		default:
			t.filter(a, f, of, at)
		}
	}
}

// backendHeaders reads the filters of one of several backends, or of the only one; false if one
// of them cannot be applied. Of a URL, the host can be replaced, which is a header.
func (t *httpTranslation) backendHeaders(filters []gateway.HTTPRouteFilter, field string, only bool) (headers object, ok bool) {
	headers, ok = object{}, true
	for i, f := range filters {
		at := itemField(field+".filters", i)
		switch {
		case changesHeaders(f) && f.RequestHeaderModifier != nil:
			t.modify(headers, "request", f.RequestHeaderModifier, at+".requestHeaderModifier")
		case changesHeaders(f):
			t.modify(headers, "response", f.ResponseHeaderModifier, at+".responseHeaderModifier")
		case only: // it is the rule's
		case f.Type == gateway.HTTPRouteFilterURLRewrite && f.URLRewrite != nil && f.URLRewrite.Hostname != nil && f.URLRewrite.Path == nil:
			t.modify(headers, "request", &gateway.HTTPHeaderFilter{Set: []gateway.HTTPHeader{{Name: "host", Value: string(*f.URLRewrite.Hostname)}}},
				at+".urlRewrite")
		default:
			t.refuse(at, "the filter %s is not supported for one of several backends; its requests get 500", f.Type)
			ok = false
		}
	}
	return headers, ok
}
