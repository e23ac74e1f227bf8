package edge

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/facet"
	"isthmus.dev/isthmus/xds/envoy/gateway"
	"isthmus.dev/isthmus/xds/envoy/resource"
	"isthmus.dev/isthmus/xds/envoy/route"
	"isthmus.dev/isthmus/xds/envoy/virtualservice"
)

// boundRule is a VirtualService that is bound to the server's Gateway.
type boundRule struct {
	route.Rule
	hosts []string // under which the server has it
}

// bound are the VirtualServices that attach to the server, the oldest first.
func bound(v *facet.View, p *listenPort, s *Server) []boundRule {
	var all []boundRule
	for _, o := range slices.SortedFunc(v.Reader.Objects().Named(federation.VirtualServiceKind, "gateway:"+s.gatewayName()),
		(*federation.Object).CompareAge) {
		spec, ok := o.Spec.(*networking.VirtualService)
		if !ok || !virtualservice.VisibleFrom(v.Facet.Namespace, o, spec, v.Reader) {
			continue
		}
		r := boundRule{Rule: route.Rule{
			View: v, Object: o, Spec: spec, Port: uint16(s.spec.GetPort().GetNumber()), Gateways: []string{s.gatewayName()},
			TLS: p.protocol == gateway.ServesTLS,
		}}
		for _, text := range spec.GetHosts() {
			host := string(federation.ResolveHost(text, o.Key.Namespace))
			for _, h := range s.hosts {
				if name := h.Admitted(host, o.Key.Namespace); name != "" && (name == "*" || resource.IsDomain(name)) &&
					!slices.Contains(r.hosts, name) {
					r.hosts = append(r.hosts, name)
				}
			}
		}
		if len(r.hosts) > 0 {
			all = append(all, r)
		}
	}
	return all
}

// gatewayTCP sends the connections of a server where the oldest VirtualService
// with a route for them says; none: nowhere.
func gatewayTCP(v *facet.View, p *listenPort, s *Server) []*listenerv3.Filter {
	for _, r := range bound(v, p, s) {
		for i, route := range r.Spec.GetTcp() {
			takes, err := r.Takes(route, netip.Prefix{})
			if err != nil {
				r.cannot(fmt.Errorf("tcp[%d]%w", i, err))
				break
			}
			if takes {
				return r.TCPSplit(route.GetRoute(), nil)
			}
		}
	}
	v.LeaveOut(s.withoutRoute("connections"))
	return nil
}

func (r *boundRule) cannot(err error) {
	r.View.LeaveOut(resource.Reason{
		Code: resource.ReasonInvalidRule, Cause: r.Object.Subject(),
		Message: fmt.Sprintf("%s is excluded for port %d: %v", r.Object.SubjectTitle(), r.Port, err),
	})
}

// passThrough routes TLS by the name of the server and does not end it. Of
// routes for one name the oldest VirtualService's is taken.
func passThrough(v *facet.View, p *listenPort, s *Server) []*listenerv3.FilterChain {
	var chains []*listenerv3.FilterChain
	for _, r := range bound(v, p, s) {
		for i, route := range r.Spec.GetTls() {
			names, err := r.serverNames(route, s)
			if err != nil {
				r.cannot(fmt.Errorf("tls[%d]%w", i, err))
				break
			}
			names = slices.DeleteFunc(names, func(name string) bool {
				owner := p.owners[name]
				before := p.passed[name] || owner != nil && owner != s
				p.passed[name] = true
				return before
			})
			if len(names) > 0 {
				chains = append(chains, &listenerv3.FilterChain{FilterChainMatch: forServers(names), Filters: r.TCPSplit(route.GetRoute(), names)})
			}
		}
	}
	if len(chains) == 0 {
		v.LeaveOut(resource.Reason{
			Code: resource.ReasonNoDestination, Cause: s.object.Subject(),
			Message: s.title() + ": no VirtualService has a tls route for its hosts; nothing listens for them",
		})
	}
	return chains
}

// serverNames are the names that the route takes of those of the server.
func (r *boundRule) serverNames(route *networking.TLSRoute, s *Server) ([]string, error) {
	var names []string
	for i, match := range route.GetMatch() {
		if at, err := virtualservice.InSubnets(match.GetDestinationSubnets(), netip.Prefix{}); err != nil {
			return nil, fmt.Errorf(".match[%d].destinationSubnets: %w", i, err)
		} else if !at || !r.ConcernsConnection(match) {
			continue
		}
		for _, text := range match.GetSniHosts() {
			name := strings.ToLower(text)
			if name != "*" && !resource.IsServerName(name) {
				return nil, fmt.Errorf(".match[%d].sniHosts: %q is not the name of a server", i, text)
			}
			for _, own := range s.names {
				if narrow := (gateway.Host{Name: own}).Admitted(name, ""); narrow != "" {
					names = append(names, narrow)
				}
			}
		}
	}
	return names, nil
}
