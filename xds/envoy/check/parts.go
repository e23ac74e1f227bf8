package check

import (
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
)

// onlyAddresses is for endpoints that are not resolved.
func onlyAddresses(a *corev3.Address) error {
	if pipe := a.GetPipe(); pipe != nil {
		if pipe.GetPath() == "" || len(pipe.GetPath()) > MaxSocketPath {
			return fmt.Errorf("the socket path %q is empty or too long", pipe.GetPath())
		}
		return nil
	}
	ip, err := netip.ParseAddr(a.GetSocketAddress().GetAddress())
	if err != nil || ip.IsUnspecified() || ip.Zone() != "" {
		return fmt.Errorf("%q is not an IP address to send to", a.GetSocketAddress().GetAddress())
	}
	return validatePort(a)
}

// placeToListen is for listeners: an IP address and a port, or a socket.
func placeToListen(a *corev3.Address) error {
	if a.GetPipe() != nil {
		return onlyAddresses(a)
	}
	if _, err := netip.ParseAddr(a.GetSocketAddress().GetAddress()); err != nil {
		return fmt.Errorf("%q is not an IP address", a.GetSocketAddress().GetAddress())
	}
	return validatePort(a)
}

// onlySockets is for endpoints that are found by DNS.
func onlySockets(a *corev3.Address) error {
	if a.GetSocketAddress().GetAddress() == "" {
		return fmt.Errorf("the address is neither a name nor an IP address")
	}
	return validatePort(a)
}

func validatePort(a *corev3.Address) error {
	if port := a.GetSocketAddress().GetPortValue(); port == 0 || port > math.MaxUint16 {
		return fmt.Errorf("port %d is not in 1 to 65535", port)
	}
	return nil
}

// assignmentCheck is what was seen of one assignment.
type assignmentCheck struct {
	address    func(*corev3.Address) error
	seen       map[string]bool // addresses
	localities map[string]bool // with their priorities
	weights    map[uint32]uint64
}

func validateAssignment(a *endpointv3.ClusterLoadAssignment, address func(*corev3.Address) error) error {
	c := assignmentCheck{address: address, seen: map[string]bool{}, localities: map[string]bool{}, weights: map[uint32]uint64{}}
	for i, group := range a.GetEndpoints() {
		if err := c.group(group); err != nil {
			return fmt.Errorf("endpoints[%d]: %w", i, err)
		}
	}
	for priority := range uint32(len(c.weights)) {
		sum, ok := c.weights[priority]
		switch {
		case !ok:
			return fmt.Errorf("endpoints: nothing has priority %d; priorities must be contiguous from 0", priority)
		case sum > math.MaxUint32:
			return fmt.Errorf("endpoints: the weights of priority %d add up to %d, more than 2³²−1", priority, sum)
		}
	}
	return nil
}

func (c assignmentCheck) group(group *endpointv3.LocalityLbEndpoints) error {
	l := group.GetLocality()
	key := fmt.Sprintf("%q/%q/%q at priority %d", l.GetRegion(), l.GetZone(), l.GetSubZone(), group.GetPriority())
	switch {
	case l == nil:
		return fmt.Errorf("locality is missing")
	case c.localities[key]:
		return fmt.Errorf("locality %s is there twice", key)
	case group.GetLoadBalancingWeight().GetValue() == 0:
		return fmt.Errorf("load_balancing_weight of locality %s is missing", key)
	}
	c.localities[key] = true
	c.weights[group.GetPriority()] += uint64(group.GetLoadBalancingWeight().GetValue())
	sum := uint64(0)
	for i, e := range group.GetLbEndpoints() {
		address := e.GetEndpoint().GetAddress()
		if err := c.address(address); err != nil {
			return fmt.Errorf("lb_endpoints[%d]: %w", i, err)
		}
		if at := addressText(address); c.seen[at] {
			return fmt.Errorf("lb_endpoints[%d]: %s is there twice", i, at)
		} else {
			c.seen[at] = true
		}
		if w := e.GetLoadBalancingWeight(); w != nil && w.GetValue() == 0 {
			return fmt.Errorf("lb_endpoints[%d]: load_balancing_weight is 0", i)
		}
		sum += uint64(max(e.GetLoadBalancingWeight().GetValue(), 1))
	}
	if sum > math.MaxUint32 {
		return fmt.Errorf("the weights of locality %s add up to %d, more than 2³²−1", key, sum)
	}
	return nil
}

func addressText(a *corev3.Address) string {
	if pipe := a.GetPipe(); pipe != nil {
		return "unix:" + pipe.GetPath()
	}
	return fmt.Sprintf("%s port %d", a.GetSocketAddress().GetAddress(), a.GetSocketAddress().GetPortValue())
}

func validateListener(l *listenerv3.Listener) error {
	if l.GetApiListener() != nil {
		return validateAPIListener(l)
	}
	addresses := []*corev3.Address{l.GetAddress()}
	for _, more := range l.GetAdditionalAddresses() {
		addresses = append(addresses, more.GetAddress())
	}
	for _, a := range addresses {
		if err := placeToListen(a); err != nil {
			return fmt.Errorf("address: %w", err)
		}
	}
	if l.GetAddress().GetSocketAddress().GetProtocol() == corev3.SocketAddress_UDP && l.GetUdpListenerConfig().GetQuicOptions() == nil {
		if len(l.GetListenerFilters()) != 1 || len(l.GetFilterChains()) > 0 {
			return fmt.Errorf("listener_filters: a listener for UDP has one, and no filter chain")
		}
		return nil
	}
	chains := slices.Clone(l.GetFilterChains())
	if l.GetDefaultFilterChain() != nil {
		chains = append(chains, l.GetDefaultFilterChain())
	}
	if len(chains) == 0 {
		return fmt.Errorf("filter_chains: there is none")
	}
	for i, chain := range chains {
		if len(chain.GetFilters()) == 0 {
			return fmt.Errorf("filter_chains[%d]: there is no filter", i)
		}
	}
	if l.GetFilterChainMatcher() != nil {
		return nil // it chooses, and not what the chains match
	}
	return validateMatches(l.GetFilterChains())
}

func validateRoutes(c *routev3.RouteConfiguration) error {
	names, domains := map[string]bool{}, map[string]bool{}
	for i, host := range c.GetVirtualHosts() {
		if names[host.GetName()] {
			return fmt.Errorf("virtual_hosts[%d]: the name %q is there twice", i, host.GetName())
		}
		names[host.GetName()] = true
		if len(host.GetDomains()) == 0 || len(host.GetRoutes()) == 0 {
			return fmt.Errorf("virtual_hosts[%d]: %q has no domain or no route", i, host.GetName())
		}
		for _, domain := range host.GetDomains() {
			domain = strings.ToLower(domain)
			if domain == "" || domains[domain] {
				return fmt.Errorf("virtual_hosts[%d]: the domain %q is empty or there twice", i, domain)
			}
			domains[domain] = true
		}
	}
	return nil
}

// validateAPIListener checks what a gRPC client needs.
func validateAPIListener(l *listenerv3.Listener) error {
	m, err := l.GetApiListener().GetApiListener().UnmarshalNew()
	if err != nil {
		return fmt.Errorf("api_listener: %w", err)
	}
	manager, ok := m.(*hcmv3.HttpConnectionManager)
	switch {
	case !ok:
		return fmt.Errorf("api_listener: %T is not an HTTP connection manager", m)
	case manager.GetRds().GetRouteConfigName() == "" || manager.GetRds().GetConfigSource().GetAds() == nil:
		return fmt.Errorf("api_listener: routes do not come by ADS")
	case len(manager.GetHttpFilters()) == 0:
		return fmt.Errorf("api_listener: there is no HTTP filter")
	}
	return nil
}
