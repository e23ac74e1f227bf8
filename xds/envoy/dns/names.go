package dns

import (
	"maps"
	"net/netip"
	"slices"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/facet"
	"isthmus.dev/isthmus/xds/envoy/resource"
	"isthmus.dev/isthmus/xds/envoy/service"
)

// answer is a name and the addresses with which it is answered.
type answer struct {
	name      string
	addresses []string
}

// knownNames are the hosts that have addresses of their own, in the order of
// hosts. Of services of one host the owner's addresses are given.
func knownNames(v *facet.View) []answer {
	var table, aliases []answer
	taken := map[string]bool{}
	for group := range service.ByHostname(v.Reader.Specs()) {
		owner := namedBy(v, group)
		if owner == nil || !resource.IsDomain(string(owner.Key.Hostname)) {
			continue
		}
		if service.IsAlias(v, owner) {
			continue // answered with the addresses of its target
		}
		addresses := addressesOf(v, owner)
		if len(addresses) == 0 {
			continue
		}
		taken[string(owner.Key.Hostname)] = true
		table = append(table, answer{string(owner.Key.Hostname), addresses})
		for _, alias := range service.Aliases(v, owner) {
			aliases = append(aliases, answer{string(alias), addresses})
		}
	}
	for _, alias := range aliases {
		if !taken[alias.name] && resource.IsDomain(alias.name) {
			taken[alias.name] = true
			table = append(table, alias)
		}
	}
	pods := podAnswers(v, taken)
	for _, name := range slices.Sorted(maps.Keys(pods)) {
		table = append(table, answer{name, pods[name]})
	}
	return table
}

// namedBy is the service whose the host is: that of the proxy's own namespace, else
// one that the proxy's own cluster has, else the oldest.
func namedBy(v *facet.View, group []*federation.Service) *federation.Service {
	var owner *federation.Service
	for _, s := range group {
		if !v.Facet.Covers(s) {
			continue
		}
		if owner == nil || namedBefore(v, s, owner) {
			owner = s
		}
	}
	return owner
}

func namedBefore(v *facet.View, s, t *federation.Service) bool {
	own := v.Facet.OwnNamespace()
	if here, there := service.HasShard(s, v.Facet.Cluster), service.HasShard(t, v.Facet.Cluster); here != there &&
		!service.IsOwn(s, own) && !service.IsOwn(t, own) {
		return here
	}
	return service.ComesBefore(s, t, own)
}

// addressesOf are the VIPs that callers in the facet's cluster get: their
// own cluster's, of a service of other clusters the automatic ones (unless it is
// cluster-local there), and of what is outside of the mesh those that it was given. None: the name is not answered
// here.
func addressesOf(v *facet.View, s *federation.Service) []string {
	passesOn := s.Resolution == federation.Passthrough && service.HasPods(s) // an entry may have addresses all the same
	if passesOn || !slices.ContainsFunc(s.Ports,
		func(p federation.ServicePort) bool { return p.Protocol.Transport() == federation.TransportTCP }) {
		return nil
	}
	vips, local := service.VIPs(s, v.Facet.Cluster)
	if !local && !s.MeshExternal && service.IsClusterLocal(s.Key.Hostname, v.Reader.Mesh()) {
		return nil // nothing of other clusters serves it
	}
	if !local && s.HasAutomaticVIPs() {
		automatic := s.Key.AutomaticVIPs()
		vips = automatic[:]
	}
	var addresses []string
	for _, vip := range vips {
		if (vip.Is4() || v.Facet.IPv6) && !givenElsewhere(v, s, vip) {
			addresses = append(addresses, vip.String())
		}
	}
	return addresses
}

// givenElsewhere reports whether the VIP is an automatic one of the service, and that
// another service was given it: callers would reach the other one.
func givenElsewhere(v *facet.View, s *federation.Service, vip netip.Addr) bool {
	if !s.IsAutomatic(vip) {
		return false
	}
	return len(v.Reader.SelectAtVIP(vip, func(t *federation.Service) bool {
		return t.Key != s.Key && v.Sees(t) && !t.IsAutomatic(vip) && slices.Contains(service.ListenerVIPs(t, v.Facet), vip)
	})) > 0
}
