package route

import (
	"cmp"
	"fmt"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/xds/envoy/check"
	"isthmus.dev/isthmus/xds/envoy/facet"
	"isthmus.dev/isthmus/xds/envoy/resource"
	"isthmus.dev/isthmus/xds/envoy/service"
	"isthmus.dev/isthmus/xds/envoy/virtualservice"
)

// HostRoutes are the routes of a virtual host: those of its VirtualService,
// else one that leads to the service. A VirtualService that cannot be expressed
// is excluded as a whole.
func HostRoutes(v *facet.View, h *Host) []*routev3.Route {
	if r := RuleFor(v, h.Host, h.Number); r != nil {
		r.byPort = h.byPort
		routes, err := r.Routes()
		r.NoteCauses(h.Name())
		if err == nil {
			err = check.Part(&routev3.VirtualHost{Name: "n", Domains: []string{"d"}, Routes: Messages(routes)})
		}
		switch {
		case err != nil:
			v.LeaveOut(resource.Reason{
				Code: resource.ReasonInvalidRule, Cause: r.Object.Subject(),
				Message: r.Object.SubjectTitle() + " is excluded for " + h.Name() + ": " + err.Error(),
			})
		case len(routes) > 0:
			h.RuledBy = r.Object.Key
			return Messages(routes)
		}
	}
	if h.Service == nil && h.target == nil {
		return nil
	}
	return serviceRoutes(v, h)
}

// Routes compiles the routes that the facet's proxies have; none where every
// route is for other proxies or another port.
func (r *Rule) Routes() ([]Compiled, error) {
	var routes []Compiled
	r.delegates = nil
	for i, in := range r.Spec.GetHttp() {
		of, parts := r, []*networking.HTTPRoute{in}
		if in.GetDelegate() != nil {
			of, parts = r.delegated(i, in)
		}
		for _, part := range parts {
			made, err := of.httpRoute(part)
			if err != nil && of != r {
				err = fmt.Errorf(".delegate: %s: %w", of.Object.Key, err)
			}
			if err != nil {
				return nil, fmt.Errorf("http[%d]%w", i, err)
			}
			routes = append(routes, made...)
			if len(part.GetMatch()) == 0 {
				return routes, nil // takes whatever is left
			}
		}
	}
	return routes, nil
}

// httpRoute makes a route for each of the alternative matches.
func (r *Rule) httpRoute(in *networking.HTTPRoute) ([]Compiled, error) {
	matches := in.GetMatch()
	if len(matches) == 0 {
		matches = []*networking.HTTPMatchRequest{{}}
	}
	var routes []Compiled
	for i, match := range matches {
		if !r.applies(match) {
			continue
		}
		m, err := virtualservice.RouteMatch(match, virtualservice.HasClaims(match) && r.knowsClaims())
		if err != nil {
			return nil, fmt.Errorf(".match[%d]%w", i, err)
		}
		route := &routev3.Route{Name: routeName(in.GetName(), match.GetName()), Match: m, StatPrefix: match.GetStatPrefix()}
		if r.View.Facet.Agent {
			route.Metadata = resource.IstioMetadata(cmp.Or(r.root, r.Object))
		}
		targets, err := r.act(route, in)
		if err != nil {
			return nil, err
		}
		r.refuseRewrite(route, targets)
		all := takesEverything(m) // before the guard
		for _, made := range guarded(r.View, route, targets) {
			routes = append(routes, Compiled{made, all})
		}
	}
	return routes, nil
}

func routeName(route, match string) string {
	if route == "" || match == "" {
		return route + match
	}
	return route + "." + match
}

// applies reports whether the match is for the facet's proxies and the rule's port. As in Istio, one that lists gateways is for all
// callers there: its source does not count.
func (r *Rule) applies(m *networking.HTTPMatchRequest) bool {
	return r.isFor(m.GetGateways()) && (m.GetPort() == 0 || m.GetPort() == uint32(r.Port)) &&
		(len(m.GetGateways()) > 0 || isSource(r.View, m.GetSourceNamespace(), m.GetSourceLabels()))
}

// isSource reports whether the facet's proxies are what a match means by its source.
func isSource(v *facet.View, namespace string, labels map[string]string) bool {
	c := v.Callers()
	return (namespace == "" || namespace == c.Namespace) && c.Labels(labels)
}

// act sets what the route does with a request, and returns the targets to which that may go.
func (r *Rule) act(route *routev3.Route, in *networking.HTTPRoute) ([]target, error) {
	virtualservice.SetRouteHeaders(route, in.GetHeaders()) // those of a destination come after them, and win
	var targets []target
	var err error
	switch {
	case in.GetRedirect() != nil:
		route.Action, err = virtualservice.Redirect(in.GetRedirect(), r.Port, r.TLS)
	case in.GetDirectResponse() != nil:
		route.Action, err = virtualservice.DirectResponse(in.GetDirectResponse())
	default:
		targets, err = r.forward(route, in)
	}
	if err != nil {
		return nil, err
	}
	return targets, virtualservice.AddFilters(route, in)
}

// serviceRoutes send every request to the service.
func serviceRoutes(v *facet.View, h *Host) []*routev3.Route {
	to := cmp.Or(h.Service, h.target)
	route := resource.ForwardTo(resource.ClusterName(to.Key.Hostname, h.Number))
	route.GetRoute().HashPolicy = hashPolicies(v, to, h.Number, "")
	route.GetRoute().RetryPolicy = virtualservice.RetryPolicy(len(route.GetRoute().GetHashPolicy()) > 0)
	port, _ := service.TCPPort(to, h.Number)
	return guarded(v, route, []target{{service.ServedPort{Service: to, Port: port}, ""}})
}
