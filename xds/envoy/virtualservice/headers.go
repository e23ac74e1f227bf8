package virtualservice

import (
	"errors"
	"maps"
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/xds/envoy/resource"
)

// SetRouteHeaders adds to what the route does with headers.
func SetRouteHeaders(route *routev3.Route, in *networking.Headers) {
	request, response := in.GetRequest(), in.GetResponse()
	route.RequestHeadersToAdd = append(route.RequestHeadersToAdd, headersToAdd(request)...)
	route.RequestHeadersToRemove = append(route.RequestHeadersToRemove, headersToRemove(request)...)
	route.ResponseHeadersToAdd = append(route.ResponseHeadersToAdd, headersToAdd(response)...)
	route.ResponseHeadersToRemove = append(route.ResponseHeadersToRemove, headersToRemove(response)...)
}

// SetWeightHeaders does to the requests of one destination what the route does to
// all.
func SetWeightHeaders(w *routev3.WeightedCluster_ClusterWeight, in *networking.Headers) {
	w.RequestHeadersToAdd, w.RequestHeadersToRemove = headersToAdd(in.GetRequest()), headersToRemove(in.GetRequest())
	w.ResponseHeadersToAdd, w.ResponseHeadersToRemove = headersToAdd(in.GetResponse()), headersToRemove(in.GetResponse())
}

func headersToAdd(in *networking.Headers_HeaderOperations) []*corev3.HeaderValueOption {
	var out []*corev3.HeaderValueOption
	for _, operation := range []struct {
		values map[string]string
		action corev3.HeaderValueOption_HeaderAppendAction
	}{
		{in.GetSet(), corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD},
		{in.GetAdd(), corev3.HeaderValueOption_APPEND_IF_EXISTS_OR_ADD},
	} {
		for _, name := range slices.Sorted(maps.Keys(operation.values)) {
			if !FixedHeader(name) {
				value := &corev3.HeaderValue{Key: name, Value: HeaderFormat(operation.values[name])}
				out = append(out, &corev3.HeaderValueOption{Header: value, AppendAction: operation.action})
			}
		}
	}
	return out
}

func headersToRemove(in *networking.Headers_HeaderOperations) []string {
	return slices.DeleteFunc(slices.Clone(in.GetRemove()), FixedHeader)
}

// FixedHeader reports whether Envoy refuses to change the header.
func FixedHeader(name string) bool {
	return strings.HasPrefix(name, ":") || strings.EqualFold(name, "host")
}

// HostHeader is the host that the request shall have, empty for its own. A request has
// one host: what is added replaces it, too.
func HostHeader(in *networking.Headers) string {
	for _, values := range []map[string]string{in.GetRequest().GetSet(), in.GetRequest().GetAdd()} {
		for _, name := range slices.Sorted(maps.Keys(values)) {
			if name == ":authority" || strings.EqualFold(name, "host") {
				return values[name]
			}
		}
	}
	return ""
}

// HeaderFormat is the value with the commands of Envoy that it holds; one that
// holds others is meant as it is written. The environment of a gateway is not for those who have routes there: it may hold
// secrets.
func HeaderFormat(value string) string {
	if resource.CheckFormat(value, noExpression) != nil || resource.ReadsEnvironment(value) {
		return strings.ReplaceAll(value, "%", "%%")
	}
	return value
}

func noExpression(string) error { return errors.New("it is not supported in headers") }
