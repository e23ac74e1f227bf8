package envoyfilter

import (
	"slices"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/proto"
	api "istio.io/api/networking/v1alpha3"

	"isthmus.dev/isthmus/xds/envoy/resource"
)

// routesID is what the name of a route configuration says.
type routesID struct {
	port     uint32
	portName string
	gateway  string // NAMESPACE/NAME
}

// parseRoutes reads the names that the hub gives: PORT, inbound_PORT, http.PORT and
// https.PORT.PORTNAME.GATEWAY.NAMESPACE.
func parseRoutes(name string) (id routesID) {
	number, inbound := strings.CutPrefix(name, "inbound_")
	if port, ok := resource.ParsePort(number); ok || inbound {
		return routesID{port: uint32(port)}
	}
	parts := strings.Split(name, ".")
	if len(parts) < 2 || parts[0] != "http" && parts[0] != "https" {
		return routesID{}
	}
	port, _ := resource.ParsePort(parts[1])
	id.port = uint32(port)
	if parts[0] == "https" && len(parts) >= 5 {
		last := len(parts) - 1
		id.portName, id.gateway = strings.Join(parts[2:last-1], "."), parts[last]+"/"+parts[last-1]
	}
	return id
}

// ownRoutes is the hub's name of routes that Istio calls inbound|PORT||.
func ownRoutes(name string) string {
	if number, is := strings.CutPrefix(name, "inbound|"); is {
		return "inbound_" + strings.TrimSuffix(number, "||")
	}
	return name
}

func (j *job) meetsRoutes(c *routev3.RouteConfiguration) bool {
	match, id := j.Spec.GetMatch().GetRouteConfiguration(), parseRoutes(c.GetName())
	return (match.GetName() == "" || ownRoutes(match.GetName()) == c.GetName()) &&
		(match.GetPortNumber() == 0 || match.GetPortNumber() == id.port) &&
		(match.GetPortName() == "" || match.GetPortName() == id.portName) &&
		(match.GetGateway() == "" || match.GetGateway() == id.gateway)
}

func (j *job) meetsHost(host *routev3.VirtualHost) bool {
	match := j.Spec.GetMatch().GetRouteConfiguration().GetVhost()
	return (match.GetName() == "" || match.GetName() == host.GetName()) &&
		(match.GetDomainName() == "" || slices.Contains(host.GetDomains(), match.GetDomainName()))
}

func (j *job) meetsRoute(route *routev3.Route) bool {
	match := j.Spec.GetMatch().GetRouteConfiguration().GetVhost().GetRoute()
	if match.GetName() != "" && match.GetName() != route.GetName() {
		return false
	}
	switch match.GetAction() {
	case api.EnvoyFilter_RouteConfigurationMatch_RouteMatch_ROUTE:
		return route.GetRoute() != nil
	case api.EnvoyFilter_RouteConfigurationMatch_RouteMatch_REDIRECT:
		return route.GetRedirect() != nil
	case api.EnvoyFilter_RouteConfigurationMatch_RouteMatch_DIRECT_RESPONSE:
		return route.GetDirectResponse() != nil
	}
	return true
}

// eachRoutes has the function change the route configurations that the patch is about: the
// resource itself, or those within a listener.
func (j *job) eachRoutes(m proto.Message, change func(*routev3.RouteConfiguration) (bool, error)) (proto.Message, bool, error) {
	if c, is := m.(*routev3.RouteConfiguration); is {
		if !j.meetsRoutes(c) {
			return m, false, nil
		}
		matched, err := change(c)
		return c, matched, err
	}
	return j.eachManager(m, "", func(manager *hcmv3.HttpConnectionManager) (bool, error) {
		if c := manager.GetRouteConfig(); c != nil && j.meetsRoutes(c) {
			return change(c)
		}
		return false, nil
	})
}

func patchRouteConfiguration(j *job, m proto.Message) (proto.Message, bool, error) {
	return j.eachRoutes(m, func(c *routev3.RouteConfiguration) (bool, error) { return true, j.merge(c) })
}

func patchHosts(j *job, m proto.Message) (proto.Message, bool, error) {
	return j.eachRoutes(m, func(c *routev3.RouteConfiguration) (matched bool, err error) {
		c.VirtualHosts, matched, err = edit(j, list[*routev3.VirtualHost]{
			items: c.GetVirtualHosts(), match: j.meetsHost,
			end: len(c.GetVirtualHosts()),
		})
		return matched, err
	})
}

func patchHTTPRoutes(j *job, m proto.Message) (proto.Message, bool, error) {
	return j.eachRoutes(m, func(c *routev3.RouteConfiguration) (found bool, err error) {
		for _, host := range c.GetVirtualHosts() {
			if !j.meetsHost(host) {
				continue
			}
			routes, matched, err := edit(j, list[*routev3.Route]{
				items: host.GetRoutes(), named: j.named(),
				match: j.meetsRoute, end: len(host.GetRoutes()),
			})
			if err != nil {
				return true, err
			}
			host.Routes, found = routes, found || matched
		}
		return found, nil
	})
}
