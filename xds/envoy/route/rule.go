package route

import (
	"cmp"
	"slices"
	"strings"

	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/facet"
	"isthmus.dev/isthmus/xds/envoy/resource"
	"isthmus.dev/isthmus/xds/envoy/virtualservice"
)

// Rule is a VirtualService as it applies to one port of one host.
type Rule struct {
	View     *facet.View
	Object   *federation.Object
	Spec     *networking.VirtualService
	Port     uint16
	Gateways []string // NAMESPACE/NAME of those to which it applies; none: sidecars
	TLS      bool     // requests come over TLS
	// byPort: its requests are those to one port, whose listener resolves names only where a service that has them has the port.
	byPort bool
	// delegates are the objects to which it delegated; root is the object that delegates to
	// this one.
	delegates []*federation.Object
	root      *federation.Object
}

// NoteCauses notes that the virtual host is made of the rule and of its delegates.
func (r *Rule) NoteCauses(host string) {
	r.View.CausedBy(r.Object, host)
	for _, o := range r.delegates {
		r.View.CausedBy(o, host)
	}
}

// RuleFor finds the VirtualService that routes what the facet's proxies send to
// the port of the host: one of the most specific name, of these the oldest. Nil
// where there is none.
func RuleFor(v *facet.View, host federation.Hostname, port uint16) *Rule {
	for _, name := range federation.Wildcards(host) {
		if name == "*" {
			break // would accept every request of the mesh
		}
		if found := RulesNamed(v, name, host); len(found) > 0 {
			reportYounger(v, found, name)
			return &Rule{View: v, Object: found[0], Spec: found[0].Spec.(*networking.VirtualService), Port: port}
		}
	}
	return nil
}

// RulesNamed are the VirtualServices of that name that the facet's proxies have
// for the host, the oldest first.
func RulesNamed(v *facet.View, name string, host federation.Hostname) []*federation.Object {
	var found []*federation.Object
	for o := range v.Reader.Objects().Named(federation.VirtualServiceKind, name) {
		if hasRule(v, o, host) {
			found = append(found, o)
		}
	}
	slices.SortFunc(found, (*federation.Object).CompareAge)
	return found
}

// hasRule reports whether the facet's proxies see and import the VirtualService, and
// that it is for sidecars.
func hasRule(v *facet.View, o *federation.Object, host federation.Hostname) bool {
	spec, ok := o.Spec.(*networking.VirtualService)
	return ok && virtualservice.ForMesh(spec.GetGateways()) && virtualservice.VisibleFrom(v.Callers().Namespace, o, spec, v.Reader) &&
		v.Facet.ImportsRule(o.Key.Namespace, host)
}

func reportYounger(v *facet.View, found []*federation.Object, name string) {
	for _, o := range found[1:] {
		v.LeaveOut(resource.Reason{
			Code: resource.ReasonRuleIgnored, Cause: o.Subject(), Related: []federation.ObjectKey{found[0].Subject()},
			Message: o.SubjectTitle() + " has no effect for " + name + ": " +
				found[0].SubjectTitle() + " is for the same host and older; put their routes into one object",
		})
	}
}

// isFor reports whether a list of gateways in a match means the rule's callers. An
// empty one means all for which the VirtualService is.
func (r *Rule) isFor(gateways []string) bool {
	from := cmp.Or(r.root, r.Object).Key.Namespace // short names of gateways are the root's
	if len(r.Gateways) == 0 {
		return virtualservice.ForMesh(gateways)
	}
	return len(gateways) == 0 || slices.ContainsFunc(gateways, func(name string) bool {
		namespace, rest, ok := strings.Cut(name, "/")
		if !ok {
			namespace, rest = from, name
		}
		if namespace == "." {
			namespace = from
		}
		return slices.Contains(r.Gateways, namespace+"/"+rest)
	})
}
