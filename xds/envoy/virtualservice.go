package envoy

import (
	"maps"
	"slices"
	"strings"

	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

// meshGateway is the name by which a VirtualService means sidecars.
const meshGateway = "mesh"

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
	for o := range b.reader.ObjectsNamed(virtualServiceKind, name) {
		if b.hasRule(o, host) {
			found = append(found, o)
		}
	}
	slices.SortFunc(found, older)
	return found
}

func older(a, b *federation.Object) int { return a.CompareAge(b) }

// hasRule tells that the facet's proxies see and import the VirtualService, and
// that it is for sidecars.
func (b *builder) hasRule(o *federation.Object, host federation.Hostname) bool {
	spec, ok := o.Spec.(*networking.VirtualService)
	return ok && forMesh(spec.GetGateways()) && visibleFrom(spec.GetExportTo(), o.Key.Namespace, b.callers().namespace) &&
		b.facet.imports(o.Key.Namespace, host)
}

func (b *builder) reportYounger(found []*federation.Object, name string) {
	for _, o := range found[1:] {
		b.leaveOut(resource.Reason{Code: resource.ReasonRuleIgnored, Cause: o.Key, Message: o.Key.String() + " has no effect for " + name + ": " +
			found[0].Key.String() + " is for the same host and older; put their routes into one object"})
	}
}

// ownConnectionsName finds the VirtualServices with routes for TLS or TCP that
// not every proxy has: those that are not exported to everyone or that look at
// the source.
const ownConnectionsName = "connections:own"

// hasOwnConnections tells that proxies of the namespace may have routes for
// connections that others do not have.
func hasOwnConnections(namespace string, r *federation.Reader) bool {
	for o := range r.ObjectsNamed(virtualServiceKind, ownConnectionsName) {
		if spec, ok := o.Spec.(*networking.VirtualService); ok && visibleFrom(spec.GetExportTo(), o.Key.Namespace, namespace) {
			return true
		}
	}
	return false
}

// forMesh tells that a list of gateways means sidecars.
func forMesh(gateways []string) bool {
	return len(gateways) == 0 || slices.Contains(gateways, meshGateway)
}

// visibleFrom tells that an object of the namespace own, with that exportTo, is
// seen from another namespace; the empty one stands for any.
func visibleFrom(exportTo []string, own, from string) bool {
	return len(exportTo) == 0 || slices.ContainsFunc(exportTo, func(to string) bool {
		return to == "*" || from != "" && (to == from || to == "." && own == from)
	})
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
	b.reader.SelectObjects(virtualServiceKind, func(o *federation.Object) bool {
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
