package gatewayapi

import (
	"cmp"

	gateway "sigs.k8s.io/gateway-api/apis/v1"
)

// rulesOfGRPC are the rules of a GRPCRoute as rules of an HTTPRoute: a method is the path
// /SERVICE/METHOD.
func rulesOfGRPC(rules []gateway.GRPCRouteRule) (all []gateway.HTTPRouteRule) {
	for _, rule := range rules {
		to := gateway.HTTPRouteRule{Filters: filtersOfGRPC(rule.Filters), SessionPersistence: rule.SessionPersistence}
		for _, match := range rule.Matches {
			m := gateway.HTTPRouteMatch{Path: pathOfGRPC(match.Method)}
			for _, h := range match.Headers {
				header := gateway.HTTPHeaderMatch{Name: gateway.HTTPHeaderName(h.Name), Value: h.Value}
				if h.Type != nil {
					kind := gateway.HeaderMatchType(*h.Type)
					header.Type = &kind
				}
				m.Headers = append(m.Headers, header)
			}
			to.Matches = append(to.Matches, m)
		}
		for _, ref := range rule.BackendRefs {
			to.BackendRefs = append(to.BackendRefs, gateway.HTTPBackendRef{BackendRef: ref.BackendRef, Filters: filtersOfGRPC(ref.Filters)})
		}
		all = append(all, to)
	}
	return all
}

func filtersOfGRPC(filters []gateway.GRPCRouteFilter) (all []gateway.HTTPRouteFilter) {
	for _, f := range filters {
		all = append(all, gateway.HTTPRouteFilter{
			Type: gateway.HTTPRouteFilterType(f.Type), RequestHeaderModifier: f.RequestHeaderModifier,
			ResponseHeaderModifier: f.ResponseHeaderModifier, RequestMirror: f.RequestMirror, ExtensionRef: f.ExtensionRef,
		})
	}
	return all
}

// pathOfGRPC is the path of a method; nil for every method.
func pathOfGRPC(in *gateway.GRPCMethodMatch) *gateway.HTTPPathMatch {
	if in == nil {
		return nil
	}
	var service, method string
	if in.Service != nil {
		service = *in.Service
	}
	if in.Method != nil {
		method = *in.Method
	}
	kind, value := gateway.PathMatchExact, "/"+service+"/"+method
	switch {
	case service == "" && method == "":
		return nil
	case in.Type != nil && *in.Type == gateway.GRPCMethodMatchRegularExpression, service == "":
		kind, value = gateway.PathMatchRegularExpression, "/"+cmp.Or(service, "[^/]+")+"/"+cmp.Or(method, "[^/]+")
	case method == "":
		kind, value = gateway.PathMatchPathPrefix, "/"+service
	}
	return &gateway.HTTPPathMatch{Type: &kind, Value: &value}
}
