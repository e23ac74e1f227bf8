package gatewayapi

import (
	"slices"

	gateway "sigs.k8s.io/gateway-api/apis/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/kind"
	"isthmus.dev/isthmus/internal/text"
)

// MaxAncestors is how many Gateways the API lets the status of a policy name.
const MaxAncestors = 16

// translate is what gateways speak to the ports for which the policy decides, and how the
// policy is for each Gateway with routes to them.
func (p *tlsPolicy) translate(r *federation.Reader) (m made) {
	m.status = Status{Object: p.Key, Digest: p.Digest}
	var why faults
	tls := p.tls(r, &m.status, &why)
	ports, services := p.targets(r, &m.status, &why), p.services()
	for _, service := range services {
		var settings []any
		for _, port := range ports[service] {
			settings = append(settings, object{"port": object{"number": port}, "tls": tls})
		}
		if tls == nil || len(settings) == 0 {
			continue
		}
		name := nameStart + text.Label(p.Key.Name+"."+service, 63-len(nameStart))
		spec := object{"host": federation.ResolveHost(service, p.Key.Namespace), "trafficPolicy": object{"portLevelSettings": settings}}
		m.objects = append(m.objects, derived(p.Object, federation.BackendTLSKind, name, spec))
	}
	for _, o := range m.objects {
		m.status.Made = append(m.status.Made, o.Key)
	}
	m.status.Conditions = why.conditions(accepted, resolved)
	m.status.Parents = p.ancestors(r, services, m.status.Conditions)
	return m
}

// Ancestors are the Gateways of the hub with routes to the targets of a BackendTLSPolicy, which need not be valid.
func Ancestors(r *federation.Reader, policy federation.ObjectKey,
	targets []gateway.LocalPolicyTargetReferenceWithSectionName,
) []ParentStatus {
	p := &tlsPolicy{&federation.Object{Key: policy}, &gateway.BackendTLSPolicySpec{TargetRefs: targets}}
	return p.ancestors(r, p.services(), nil)
}

// Authorities are the conditions about references to authorities of a BackendTLSPolicy, which need not be valid.
func Authorities(r *federation.Reader, policy federation.ObjectKey, refs []gateway.LocalObjectReference) []Condition {
	p := &tlsPolicy{&federation.Object{Key: policy}, &gateway.BackendTLSPolicySpec{}}
	p.spec.Validation.CACertificateRefs = refs
	var why faults
	p.authorities(r, "spec.validation.caCertificateRefs", &why)
	return why.conditions(resolved)
}

// services are those that the policy names.
func (p *tlsPolicy) services() (all []string) {
	for _, ref := range p.spec.TargetRefs {
		if isService(ref) {
			all = append(all, string(ref.Name))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func (p *tlsPolicy) ancestors(r *federation.Reader, services []string, conditions []Condition) (all []ParentStatus) {
	for _, g := range p.gateways(r, services) {
		all = append(all, ancestor(g, conditions))
	}
	return all
}

// targets are the ports of each Service for which the policy decides. A target is a fault where
// the policy has no effect on any, and else a note.
func (p *tlsPolicy) targets(r *federation.Reader, s *Status, why *faults) (ports map[string][]uint16) {
	ports = map[string][]uint16{}
	var lost faults
	for i, ref := range p.spec.TargetRefs {
		found := p.ports(r, ref, itemField("spec.targetRefs", i), &lost)
		ports[string(ref.Name)] = append(ports[string(ref.Name)], found...)
	}
	for _, found := range ports {
		if len(found) > 0 {
			for _, c := range lost {
				s.tell(codeOf(c.Reason), c.Field, "%s", c.Message)
			}
			return ports
		}
	}
	*why = append(*why, lost...)
	return ports
}

// ports are those of a target for which the policy decides. A policy for a port of its own
// comes before one for the Service.
func (p *tlsPolicy) ports(r *federation.Reader, ref gateway.LocalPolicyTargetReferenceWithSectionName, field string,
	why *faults,
) (found []uint16) {
	service, section := string(ref.Name), sectionOf(ref)
	if !isService(ref) {
		why.add(accepted, string(gateway.PolicyReasonInvalid), field, "targets of the kind %s are not supported; only Services are",
			federation.Quote(string(ref.Kind)))
		return nil
	}
	svc, exists := r.Spec(federation.ServiceKey{Hostname: federation.ResolveHost(service, p.Key.Namespace), Namespace: p.Key.Namespace})
	if !exists || section != "" && !slices.ContainsFunc(svc.Ports, func(port federation.ServicePort) bool { return port.Name == section }) {
		why.add(accepted, string(gateway.PolicyReasonTargetNotFound), field, "there is no such Service, or it has no such port")
		return nil
	}
	if older := policyOf(r, p.Key.Namespace, service, section); older != nil && older.Key != p.Key {
		why.add(accepted, string(gateway.PolicyReasonConflicted), field, "the %s has the target, and is older", older.Key.Title())
		return nil
	}
	for _, port := range svc.Ports {
		if decides := policyFor(r, p.Key.Namespace, service, port.Name); decides != nil && decides.Key == p.Key &&
			(section == "" || port.Name == section) {
			found = append(found, port.Number)
		}
	}
	return found
}

// gateways are those of the hub with routes to the Services, by their keys.
func (p *tlsPolicy) gateways(r *federation.Reader, services []string) (all []*gatewayView) {
	seen := map[federation.ObjectKey]bool{}
	for _, service := range services {
		name := kind.BackendName(federation.ResolveHost(service, p.Key.Namespace))
		for _, of := range routeKinds {
			for o := range r.Objects().Named(of.Kind, name) {
				v := readRoute(o)
				if v == nil || o.Key.Cluster != p.Key.Cluster {
					continue
				}
				for _, g := range gateways(v, r) {
					if !seen[g.Key] {
						seen[g.Key] = true
						all = append(all, g)
					}
				}
			}
		}
	}
	slices.SortFunc(all, func(a, b *gatewayView) int { return a.Key.Compare(b.Key) })
	return all[:min(len(all), MaxAncestors)]
}

// gateways are those of the hub to which the route attaches.
func gateways(v *routeView, r *federation.Reader) (all []*gatewayView) {
	for i, ref := range v.parents {
		key, is := v.parentKey(ref)
		if !is {
			continue
		}
		if g := gatewayOf(r, key); g != nil {
			if found, _ := v.attach(g, key, ref, parentField(i)); len(found) > 0 {
				all = append(all, g)
			}
		}
	}
	return all
}

// ancestor is how a policy is for the Gateway.
func ancestor(g *gatewayView, conditions []Condition) ParentStatus {
	group, of := gateway.Group(gateway.GroupName), gateway.Kind(federation.GatewayAPI.Gateway.Name)
	namespace := gateway.Namespace(g.Key.Namespace)
	return ParentStatus{
		Parent: g.Key.Namespace + "/" + g.Key.Name, Controller: g.class, Conditions: conditions,
		Ref: gateway.ParentReference{Group: &group, Kind: &of, Namespace: &namespace, Name: gateway.ObjectName(g.Key.Name)},
	}
}
