package route

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/facet"
	"isthmus.dev/isthmus/xds/envoy/node"
	"isthmus.dev/isthmus/xds/envoy/resource"
	"isthmus.dev/isthmus/xds/envoy/service"
)

// claimDomains gives every host the names under which callers know it. Envoy
// takes a name once in a route configuration: full names come before
// aliases, these before VIPs of the proxy's cluster, these before short names, these
// before names of pods, these before VIPs of other clusters; among equals the first
// host has it. The full and short names of the proxy's own namespace come before all
// of these: its resolver completes short names, and a ServiceEntry for the host "web"
// would otherwise take over the calls of every namespace to its own web (R22).
// spell writes a name for a port.
func claimDomains(v *facet.View, hosts []*Host, spell func(domain string, port uint16) []string) {
	c, n := domainClaims{owners: map[string]*Host{}, own: map[string]*Host{}}, hostNames{v.Facet}
	if foreign := func(h *Host) bool { return !n.isOwn(h) }; slices.ContainsFunc(hosts, foreign) {
		for _, names := range []func(*Host) []string{n.ownFull, n.ownShort} {
			eachDomain(hosts, names, spell, c.reserve)
		}
	}
	for _, names := range []func(*Host) []string{fullNames, aliasNames, n.localVIPs, n.short, n.shortAliases, n.ofPods, n.foreignVIPs} {
		eachDomain(hosts, names, spell, func(h *Host, domain string) { claim(v, c, h, domain) })
	}
}

func eachDomain(hosts []*Host, names func(*Host) []string, spell func(string, uint16) []string, do func(*Host, string)) {
	for _, h := range hosts {
		for _, name := range names(h) {
			for _, domain := range spell(name, h.Number) {
				do(h, domain)
			}
		}
	}
}

// domainClaims are who has which name, in lower case.
type domainClaims struct {
	owners map[string]*Host
	own    map[string]*Host // names that nobody but hosts of the proxy's namespace may have
}

func (c domainClaims) reserve(h *Host, domain string) {
	name := strings.ToLower(domain)
	if c.own[name] == nil {
		c.own[name] = h
	}
}

func (c domainClaims) owner(domain string) *Host {
	name := strings.ToLower(domain)
	return cmp.Or(c.own[name], c.owners[name])
}

func claim(v *facet.View, c domainClaims, h *Host, domain string) {
	name := strings.ToLower(domain)
	owner := c.owner(domain)
	switch {
	case name == "*": // is for what has no host of its own
	case owner != nil && owner != h:
		v.LeaveOut(resource.Reason{
			Code: resource.ReasonDomainTaken, Service: h.ServiceKey(),
			Message: fmt.Sprintf("%q does not lead to %s: %s has the better claim; use the full name", domain, h.Name(), owner.Name()),
		})
	case c.owners[name] == nil:
		c.owners[name] = h
		h.Domains = append(h.Domains, domain)
	}
}

// hostNames are the names under which callers of a facet know a host.
type hostNames struct{ facet node.Facet }

func (n hostNames) ownFull(h *Host) []string {
	if !n.isOwn(h) {
		return nil
	}
	return fullNames(h)
}

func (n hostNames) ownShort(h *Host) []string {
	if !n.isOwn(h) {
		return nil
	}
	return n.short(h)
}

// isOwn reports whether the host is a service of the proxy's namespace.
func (n hostNames) isOwn(h *Host) bool {
	return h.Service != nil && service.IsOwn(h.Service, n.facet.OwnNamespace())
}

func fullNames(h *Host) []string { return []string{string(h.Host)} }

func aliasNames(h *Host) []string {
	names := make([]string, len(h.aliases))
	for i, name := range h.aliases {
		names[i] = string(name)
	}
	return names
}

func (n hostNames) shortAliases(h *Host) []string {
	var names []string
	for _, name := range h.aliases {
		names = append(names, n.shortOf(name)...)
	}
	return names
}

func (n hostNames) short(h *Host) []string { return n.shortOf(h.Host) }

// shortOf are those that a resolver with the facet's domain as its search
// list would find: what is before the domain, and on Kubernetes NAME.NS and
// NAME.NS.svc within the same cluster domain. Without a domain every cluster
// domain counts as the proxy's own. Exported services have no short names.
func (n hostNames) shortOf(name federation.Hostname) []string {
	host, domain := string(name), n.facet.Domain
	if strings.HasPrefix(host, "*") {
		return nil
	}
	var names []string
	if short, ok := strings.CutSuffix(host, "."+domain); ok && domain != "" {
		names = append(names, short)
	}
	parts := strings.SplitN(host, ".", 4)
	if len(parts) < 4 || parts[2] != "svc" {
		return names
	}
	if _, own, _ := strings.Cut(domain, "."); domain == "" && !name.IsClusterSet() || own == "svc."+parts[3] {
		names = append(names, parts[0]+"."+parts[1]+".svc", parts[0]+"."+parts[1])
	}
	return names
}

// ofPods are those of the pods of a headless service, POD.NAME, for every name of
// the service.
func (n hostNames) ofPods(h *Host) []string {
	if h.Service == nil || len(service.PodDomains(h.Service)) == 0 {
		return nil
	}
	var names []string
	for _, name := range append(fullNames(h), n.short(h)...) {
		names = append(names, "*."+name)
	}
	return names
}

func (n hostNames) localVIPs(h *Host) []string {
	if h.Service == nil {
		return nil
	}
	vips, local := service.VIPs(h.Service, n.facet.Cluster)
	if !local {
		return nil
	}
	return hostsOf(vips)
}

func (n hostNames) foreignVIPs(h *Host) []string {
	if h.Service == nil {
		return nil
	}
	vips, local := service.VIPs(h.Service, n.facet.Cluster)
	if local || h.Service.Resolution == federation.Passthrough {
		return nil
	}
	return hostsOf(vips)
}

// hostsOf writes addresses as in a Host header.
func hostsOf(vips []netip.Addr) []string {
	hosts := make([]string, len(vips))
	for i, vip := range vips {
		hosts[i] = vip.String()
		if vip.Is6() {
			hosts[i] = "[" + hosts[i] + "]"
		}
	}
	return hosts
}
