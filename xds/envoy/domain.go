package envoy

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

// claimDomains gives every host the names under which callers know it. Envoy
// takes a name once in a route configuration: full names come before
// aliases, these before VIPs of the proxy's cluster, these before short names, these
// before names of pods, these before VIPs of other clusters; among equals the first
// host has it. The full and short names of the proxy's own namespace come before all
// of these: its resolver completes short names, and a ServiceEntry for the host "web"
// would otherwise take over the calls of every namespace to its own web (R22).
// spell writes a name for a port.
func (b *builder) claimDomains(hosts []*httpHost, spell func(domain string, port uint16) []string) {
	c := domainClaims{owners: map[string]*httpHost{}, own: map[string]*httpHost{}}
	if foreign := func(h *httpHost) bool { return !b.isOwnHost(h) }; slices.ContainsFunc(hosts, foreign) {
		for _, names := range []func(*httpHost) []string{b.ownFullNames, b.ownShortNames} {
			eachDomain(hosts, names, spell, c.reserve)
		}
	}
	for _, names := range []func(*httpHost) []string{fullNames, aliasNames, b.localVIPs, b.shortNames, b.shortAliases, b.podNames, b.foreignVIPs} {
		eachDomain(hosts, names, spell, func(h *httpHost, domain string) { b.claim(c, h, domain) })
	}
}

func eachDomain(hosts []*httpHost, names func(*httpHost) []string, spell func(string, uint16) []string, do func(*httpHost, string)) {
	for _, h := range hosts {
		for _, name := range names(h) {
			for _, domain := range spell(name, h.number) {
				do(h, domain)
			}
		}
	}
}

// domainClaims are who has which name, in lower case.
type domainClaims struct {
	owners map[string]*httpHost
	own    map[string]*httpHost // names that nobody but hosts of the proxy's namespace may have
}

func (c domainClaims) reserve(h *httpHost, domain string) {
	name := strings.ToLower(domain)
	if c.own[name] == nil {
		c.own[name] = h
	}
}

func (c domainClaims) owner(domain string) *httpHost {
	name := strings.ToLower(domain)
	return cmp.Or(c.own[name], c.owners[name])
}

func (b *builder) ownFullNames(h *httpHost) []string {
	if !b.isOwnHost(h) {
		return nil
	}
	return fullNames(h)
}

func (b *builder) ownShortNames(h *httpHost) []string {
	if !b.isOwnHost(h) {
		return nil
	}
	return b.shortNames(h)
}

// isOwnHost tells that the host is a service of the proxy's namespace.
func (b *builder) isOwnHost(h *httpHost) bool {
	return h.service != nil && isOwn(h.service, b.facet.OwnNamespace())
}

func (b *builder) claim(c domainClaims, h *httpHost, domain string) {
	name := strings.ToLower(domain)
	owner := c.owner(domain)
	switch {
	case name == "*": // is for what has no host of its own
	case owner != nil && owner != h:
		b.leaveOut(resource.Reason{Code: resource.ReasonDomainTaken, Service: h.serviceKey(), Message: fmt.Sprintf("%q does not lead to %s: %s has the better claim; use the full name", domain, h.name(), owner.name())})
	case c.owners[name] == nil:
		c.owners[name] = h
		h.domains = append(h.domains, domain)
	}
}

func fullNames(h *httpHost) []string { return []string{string(h.host)} }

func aliasNames(h *httpHost) []string {
	names := make([]string, len(h.aliases))
	for i, name := range h.aliases {
		names[i] = string(name)
	}
	return names
}

func (b *builder) shortAliases(h *httpHost) []string {
	var names []string
	for _, name := range h.aliases {
		names = append(names, b.shortNamesOf(name)...)
	}
	return names
}

func (b *builder) shortNames(h *httpHost) []string { return b.shortNamesOf(h.host) }

// shortNamesOf are those that a resolver with the facet's domain as its search
// list would find: what is before the domain, and on Kubernetes NAME.NS and
// NAME.NS.svc within the same cluster domain. Without a domain every cluster
// domain counts as the proxy's own.
func (b *builder) shortNamesOf(name federation.Hostname) []string {
	host, domain := string(name), b.facet.Domain
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
	if _, own, _ := strings.Cut(domain, "."); domain == "" || own == "svc."+parts[3] {
		names = append(names, parts[0]+"."+parts[1]+".svc", parts[0]+"."+parts[1])
	}
	return names
}

// podNames are those of the pods of a headless service, POD.NAME, for every name of
// the service.
func (b *builder) podNames(h *httpHost) []string {
	if h.service == nil || len(podDomains(h.service)) == 0 {
		return nil
	}
	var names []string
	for _, name := range append(fullNames(h), b.shortNames(h)...) {
		names = append(names, "*."+name)
	}
	return names
}

func (b *builder) localVIPs(h *httpHost) []string {
	if h.service == nil {
		return nil
	}
	vips, local := serviceVIPs(h.service, b.facet.Cluster)
	if !local {
		return nil
	}
	return hostsOf(vips)
}

func (b *builder) foreignVIPs(h *httpHost) []string {
	if h.service == nil {
		return nil
	}
	vips, local := serviceVIPs(h.service, b.facet.Cluster)
	if local || h.service.Resolution == federation.Passthrough {
		return nil
	}
	return hostsOf(vips)
}

// hostsOf writes addresses as they stand in a Host header.
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
