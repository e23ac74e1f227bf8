package kind

import (
	"cmp"
	"fmt"
	"slices"

	"isthmus.dev/isthmus/federation"
)

const (
	codeShadowed = "SHADOWED"   // another object decides about the hostname
	codeSelf     = "BINDS_SELF" // a service cannot be part of itself
)

var _ = add(of[federation.ServiceBinding]{
	kind:        federation.ServiceBindingKind,
	names:       func(d Decoded, s *federation.ServiceBinding) []string { return d.hosts(string(s.Hostname)) },
	contributes: &federation.DeclaresServices,
	translate: func(d Decoded, s *federation.ServiceBinding) Meaning {
		b, problems := readBinding(d.Object, s, d.Domain)
		return Meaning{Binding: b, Problems: problems}
	},
})

// Binding is a ServiceBinding as it was understood.
type Binding struct {
	Object *federation.Object
	Key    federation.ServiceKey
	Shard  *federation.Shard
}

// Compare orders the older one first.
func (b *Binding) Compare(o *Binding) int {
	switch {
	case b.Object.Older(o.Object):
		return -1
	case o.Object.Older(b.Object):
		return 1
	}
	return 0
}

func readBinding(o *federation.Object, spec *federation.ServiceBinding, domain string) (*Binding, []federation.Problem) {
	b := &Binding{Object: o, Key: federation.ServiceKey{
		Hostname: federation.ResolveHostIn(domain, string(spec.Hostname), o.Key.Namespace), Namespace: o.Key.Namespace,
	}}
	b.Shard = &federation.Shard{
		Ports: slices.Clone(spec.Ports), ExportTo: slices.Clone(spec.ExportTo), Created: o.Created, Labels: o.Labels,
		UID: o.Key.Namespace + "/" + o.Key.Name,
	}
	for i, p := range b.Shard.Ports {
		b.Shard.Ports[i].Protocol = federation.ParseProtocol(string(p.Protocol))
		b.Shard.Ports[i].Undeclared = p.Protocol == "" && federation.MayDetect(p.Number)
	}
	var problems []federation.Problem
	for i, t := range spec.Services {
		bound := bind(t, o.Key.Namespace, domain)
		if bound.Service == b.Key {
			problems = append(problems, federation.Problem{
				Code: codeSelf, Object: o.Key.Title(), Field: fmt.Sprintf("spec.services[%d]", i),
				Message: fmt.Sprintf("%s is the bound service itself and excluded; its own endpoints are part of it anyway", b.Key),
			})
			continue
		}
		b.Shard.Bound = append(b.Shard.Bound, bound)
	}
	return b, problems
}

func bind(t federation.BindingTarget, namespace, domain string) federation.BoundService {
	namespace = cmp.Or(t.Namespace, namespace)
	bound := federation.BoundService{
		Service:  federation.ServiceKey{Hostname: federation.ResolveHostIn(domain, string(t.Hostname), namespace), Namespace: namespace},
		Clusters: slices.Clone(t.Clusters), Weight: 1,
	}
	if t.Weight != nil {
		bound.Weight = *t.Weight
	}
	return bound
}

// Shadowed is the problem that the binding has no effect, because another object decides.
func (b *Binding) Shadowed(by string) federation.Problem {
	return federation.Problem{
		Code: codeShadowed, Object: b.Object.Key.Title(), Field: "spec.hostname",
		Message: fmt.Sprintf("%s names the same hostname %s and decides; remove one of the two", by, b.Key.Hostname),
	}
}
