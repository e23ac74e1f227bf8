package envoy

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/gateway"
	"isthmus.dev/isthmus/xds/envoy/resource"
	"isthmus.dev/isthmus/xds/envoy/virtualservice"
)

// boundRule is a VirtualService that is bound to the server's Gateway.
type boundRule struct {
	rule
	hosts []string // under which the server has it
}

// bound are the VirtualServices that attach to the server, the oldest first.
func (b *builder) bound(p *gatewayPort, s *gatewayServer) []boundRule {
	var all []boundRule
	for _, o := range slices.SortedFunc(b.reader.ObjectsNamed(virtualservice.Kind, "gateway:"+s.gatewayName()), (*federation.Object).CompareAge) {
		spec, ok := o.Spec.(*networking.VirtualService)
		if !ok || !resource.VisibleFrom(spec.GetExportTo(), o.Key.Namespace, b.facet.Namespace) {
			continue
		}
		r := boundRule{rule: rule{builder: b, object: o, spec: spec, port: uint16(s.spec.GetPort().GetNumber()), gateways: []string{s.gatewayName()}}}
		for _, text := range spec.GetHosts() {
			host := string(federation.ResolveHost(text, o.Key.Namespace))
			for _, h := range s.hosts {
				if name := h.Admitted(host, o.Key.Namespace); name != "" && (name == "*" || resource.IsDomain(name)) && !slices.Contains(r.hosts, name) {
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

// isFor tells that a list of gateways in a match means the rule's callers. An
// empty one means all for which the VirtualService is.
func (r *rule) isFor(gateways []string) bool {
	if len(r.gateways) == 0 {
		return virtualservice.ForMesh(gateways)
	}
	return len(gateways) == 0 || slices.ContainsFunc(gateways, func(name string) bool {
		namespace, rest, ok := strings.Cut(name, "/")
		if !ok {
			namespace, rest = r.object.Key.Namespace, name
		}
		if namespace == "." {
			namespace = r.object.Key.Namespace
		}
		return slices.Contains(r.gateways, namespace+"/"+rest)
	})
}

// gatewayTCP sends the connections of a server where the oldest VirtualService
// with a route for them says; nil: nowhere.
func (b *builder) gatewayTCP(p *gatewayPort, s *gatewayServer) *listenerv3.Filter {
	for _, r := range b.bound(p, s) {
		for i, route := range r.spec.GetTcp() {
			takes, err := r.takes(route, netip.Prefix{})
			if err != nil {
				r.cannot(fmt.Errorf("tcp[%d]%w", i, err))
				break
			}
			if takes {
				return r.tcpSplit(route.GetRoute())
			}
		}
	}
	b.leaveOut(resource.Reason{Code: resource.ReasonNoDestination, Cause: s.object.Key, Message: s.title() + ": no VirtualService has a route for its connections; nothing listens for them"})
	return nil
}

func (r *boundRule) cannot(err error) {
	r.leaveOut(resource.Reason{Code: resource.ReasonInvalidRule, Cause: r.object.Key, Message: fmt.Sprintf("%s is left out for port %d: %v", r.object.Key, r.port, err)})
}

// passThrough routes TLS by the name of the server and does not end it. Of
// routes for one name the oldest VirtualService's is taken.
func (b *builder) passThrough(p *gatewayPort, s *gatewayServer) []*listenerv3.FilterChain {
	var chains []*listenerv3.FilterChain
	for _, r := range b.bound(p, s) {
		for i, route := range r.spec.GetTls() {
			names, err := r.serverNames(route, s)
			if err != nil {
				r.cannot(fmt.Errorf("tls[%d]%w", i, err))
				break
			}
			names = slices.DeleteFunc(names, func(name string) bool {
				owner := p.ownerOf(name)
				before := p.passed[name] || owner != nil && owner != s
				p.passed[name] = true
				return before
			})
			if len(names) > 0 {
				chains = append(chains, &listenerv3.FilterChain{FilterChainMatch: forServers(names), Filters: []*listenerv3.Filter{r.tcpSplit(route.GetRoute())}})
			}
		}
	}
	if len(chains) == 0 {
		b.leaveOut(resource.Reason{Code: resource.ReasonNoDestination, Cause: s.object.Key, Message: s.title() + ": no VirtualService has a tls route for its hosts; nothing listens for them"})
	}
	return chains
}

// serverNames are the names that the route takes of those of the server.
func (r *boundRule) serverNames(route *networking.TLSRoute, s *gatewayServer) ([]string, error) {
	var names []string
	for i, match := range route.GetMatch() {
		if at, err := virtualservice.InSubnets(match.GetDestinationSubnets(), netip.Prefix{}); err != nil {
			return nil, fmt.Errorf(".match[%d].destinationSubnets: %w", i, err)
		} else if !at || !r.concernsConnection(match) {
			continue
		}
		for _, text := range match.GetSniHosts() {
			name := strings.ToLower(text)
			if name != "*" && !resource.IsServerName(name) {
				return nil, fmt.Errorf(".match[%d].sniHosts: %q is no name of a server", i, text)
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
