package envoy

import (
	"maps"
	"slices"
	"strings"

	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/resource"
	"isthmus.dev/isthmus/xds/envoy/virtualservice"
)

// rule is a VirtualService as it stands for one port of one host.
type rule struct {
	*builder
	object   *federation.Object
	spec     *networking.VirtualService
	port     uint16
	gateways []string // NAMESPACE/NAME of those that it stands for; none: sidecars
}

// ruleFor finds the VirtualService that routes what the facet's proxies send to
// the port of the host: one of the most specific name, of these the oldest. Nil
// where there is none.
func (b *builder) ruleFor(host federation.Hostname, port uint16) *rule {
	for _, name := range federation.Wildcards(host) {
		if name == "*" {
			break // would take every request of the mesh
		}
		if found := b.rulesNamed(name, host); len(found) > 0 {
			b.reportYounger(found, name)
			return &rule{builder: b, object: found[0], spec: found[0].Spec.(*networking.VirtualService), port: port}
		}
	}
	return nil
}

// rulesNamed are the VirtualServices of that name that the facet's proxies have
// for the host, the oldest first.
func (b *builder) rulesNamed(name string, host federation.Hostname) []*federation.Object {
	var found []*federation.Object
	for o := range b.reader.ObjectsNamed(virtualservice.Kind, name) {
		if b.hasRule(o, host) {
			found = append(found, o)
		}
	}
	slices.SortFunc(found, (*federation.Object).CompareAge)
	return found
}

// hasRule tells that the facet's proxies see and import the VirtualService, and
// that it is for sidecars.
func (b *builder) hasRule(o *federation.Object, host federation.Hostname) bool {
	spec, ok := o.Spec.(*networking.VirtualService)
	return ok && virtualservice.ForMesh(spec.GetGateways()) && resource.VisibleFrom(spec.GetExportTo(), o.Key.Namespace, b.callers().Namespace) &&
		b.facet.Imports(o.Key.Namespace, host)
}

func (b *builder) reportYounger(found []*federation.Object, name string) {
	for _, o := range found[1:] {
		b.leaveOut(resource.Reason{Code: resource.ReasonRuleIgnored, Cause: o.Key, Related: []federation.ObjectKey{found[0].Key}, Message: o.Key.String() + " has no effect for " + name + ": " +
			found[0].Key.String() + " is for the same host and older; put their routes into one object"})
	}
}

// ruledHosts are the hosts, sorted, that VirtualServices speak of and that are
// no services: sidecars serve them on port 80. A wildcard counts as no service
// where none of the known hosts is covered by it.
func (b *builder) ruledHosts(known []*httpHost) []federation.Hostname {
	names := make(map[federation.Hostname]bool, len(known))
	for _, h := range known {
		names[h.host] = true
	}
	found := map[federation.Hostname]bool{}
	b.reader.SelectObjects(virtualservice.Kind, func(o *federation.Object) bool {
		before := len(found)
		for _, name := range o.Names {
			host := federation.Hostname(name)
			if !names[host] && !found[host] && resource.IsDomain(name) && b.hasRule(o, host) && !b.isService(host, known) {
				found[host] = true
			}
		}
		return len(found) > before
	})
	return slices.Sorted(maps.Keys(found))
}

// isService tells that the host, which is none of the known ones, is a service, or
// a wildcard for known hosts.
func (b *builder) isService(host federation.Hostname, known []*httpHost) bool {
	if strings.HasPrefix(string(host), "*") && slices.ContainsFunc(known, func(h *httpHost) bool { return resource.Covers(string(host), string(h.host)) }) {
		return true
	}
	return slices.ContainsFunc(b.reader.ByHostname(host), b.sees)
}
