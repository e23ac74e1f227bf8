// Package proxyless builds the resources of gRPC clients that have no proxy.
package proxyless

import (
	"fmt"
	"strings"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	faultv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/fault/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/proto"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/facet"
	"isthmus.dev/isthmus/xds/envoy/node"
	"isthmus.dev/isthmus/xds/envoy/resource"
	"isthmus.dev/isthmus/xds/envoy/route"
	"isthmus.dev/isthmus/xds/envoy/service"
)

// A gRPC client without a proxy asks for a listener by the name that it dials,
// HOST:PORT. The listener names the routes of the full HOST:PORT, these name
// clusters, and each cluster has endpoints. It refuses much of what Envoy takes,
// and asks for everything by name.

// RuledTargets are the hosts of which only VirtualServices speak.
func RuledTargets(f node.Facet, r *federation.Reader) []string {
	v := facet.Open(f, r)
	var names []string
	for _, host := range route.RuledHosts(v, nil) {
		if dialed(string(host)) {
			names = append(names, resource.TargetName(string(host), route.RuledPort))
		}
	}
	return names
}

// AppendName adds the cluster of a port, or its endpoints. That the port is not
// declared as HTTP does not matter: who dials it speaks gRPC.
func AppendName(names []string, _ node.Facet, p service.ServedPort) []string {
	return append(names, resource.ClusterName(p.Service.Key.Hostname, p.Port.Number))
}

// AppendTargets adds the names under which a gRPC client dials a port: those of its listeners.
func AppendTargets(names []string, f node.Facet, p service.ServedPort) []string {
	host := string(p.Service.Key.Hostname)
	if dialed(host) {
		for _, name := range append(shortTargets(host, f.Domain), host) {
			names = append(names, resource.TargetName(name, p.Port.Number))
		}
	}
	return names
}

// AppendRouteTarget adds the name of the routes of a port.
func AppendRouteTarget(names []string, _ node.Facet, p service.ServedPort) []string {
	host := string(p.Service.Key.Hostname)
	if dialed(host) {
		names = append(names, resource.TargetName(host, p.Port.Number))
	}
	return names
}

// dialed reports whether the host can be asked for: a wildcard cannot.
func dialed(host string) bool { return !strings.HasPrefix(host, "*") }

// shortTargets are the names under which a resolver with the search list of the
// domain would find the host; without a domain there are none.
func shortTargets(host, domain string) []string {
	var names []string
	for _, suffix := range searchList(domain) {
		if short, ok := strings.CutSuffix(host, "."+suffix); ok {
			names = append(names, short)
		}
	}
	return names
}

// searchList is the domain itself and, where it is NAMESPACE.svc.REST as on
// Kubernetes, svc.REST and REST.
func searchList(domain string) []string {
	if domain == "" {
		return nil
	}
	list := []string{domain}
	if _, parent, ok := strings.Cut(domain, "."); ok && strings.HasPrefix(parent, "svc.") {
		list = append(list, parent, strings.TrimPrefix(parent, "svc."))
	}
	return list
}

// meant are the hosts that a name may mean, the best match first: the full
// name, then its expansions by the search list, in that order.
func meant(v *facet.View, name string) []federation.Hostname {
	hosts := []federation.Hostname{federation.Hostname(name)}
	for _, suffix := range searchList(v.Facet.Domain) {
		hosts = append(hosts, federation.Hostname(name+"."+suffix))
	}
	return hosts
}

// Listener leads to the routes of the host that is meant.
func Listener(v *facet.View, name string) proto.Message {
	short, number, ok := resource.ParseTarget(name)
	if !ok {
		return nil
	}
	var found []*route.Host
	for _, host := range meant(v, short) {
		if h, _ := targetHost(v, host, number); h != nil && (h.Service != nil || hasRoutes(v, h)) {
			found = append(found, h)
		}
	}
	if len(found) == 0 {
		return nil
	}
	for _, other := range found[1:] {
		v.LeaveOut(resource.Reason{
			Code: resource.ReasonDomainTaken, Service: other.ServiceKey(),
			Message: fmt.Sprintf("%q does not lead to %s: %s has the better claim; use the full name", name, other.Name(), found[0].Name()),
		})
	}
	return apiListener(name, resource.TargetName(string(found[0].Host), number))
}

func apiListener(name, routes string) *listenerv3.Listener {
	m := &hcmv3.HttpConnectionManager{
		StatPrefix: routes,
		HttpFilters: []*hcmv3.HttpFilter{
			resource.InHTTP(resource.FaultFilter, &faultv3.HTTPFault{}),
			resource.InHTTP(resource.RouterFilter, &routerv3.Router{}),
		},
		RouteSpecifier: &hcmv3.HttpConnectionManager_Rds{Rds: &hcmv3.Rds{ConfigSource: resource.ADSSource(), RouteConfigName: routes}},
	}
	return &listenerv3.Listener{Name: name, ApiListener: &listenerv3.ApiListener{ApiListener: resource.Any(m)}}
}
