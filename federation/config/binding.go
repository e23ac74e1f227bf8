package config

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

// binding is a ServiceBinding as it was understood.
type binding struct {
	object *federation.Object
	key    federation.ServiceKey
	shard  *federation.Shard
}

// Compare orders the older one first.
func (b *binding) compare(o *binding) int {
	switch {
	case b.object.Older(o.object):
		return -1
	case o.object.Older(b.object):
		return 1
	}
	return 0
}

func readBinding(o *federation.Object, spec *federation.ServiceBinding, domain string) (*binding, []federation.Problem) {
	b := &binding{object: o, key: federation.ServiceKey{
		Hostname: federation.ResolveHostIn(domain, string(spec.Hostname), o.Key.Namespace), Namespace: o.Key.Namespace,
	}}
	b.shard = &federation.Shard{
		Ports: slices.Clone(spec.Ports), ExportTo: slices.Clone(spec.ExportTo), Created: o.Created, Labels: o.Labels,
		UID: o.Key.Namespace + "/" + o.Key.Name,
	}
	for i, p := range b.shard.Ports {
		b.shard.Ports[i].Protocol = federation.ParseProtocol(string(p.Protocol))
	}
	var problems []federation.Problem
	for i, t := range spec.Services {
		bound := bind(t, o.Key.Namespace, domain)
		if bound.Service == b.key {
			problems = append(problems, federation.Problem{
				Code: codeSelf, Object: title(o.Key), Field: fmt.Sprintf("spec.services[%d]", i),
				Message: fmt.Sprintf("%s is the bound service itself and left out; its own endpoints are part of it anyway", b.key),
			})
			continue
		}
		b.shard.Bound = append(b.shard.Bound, bound)
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

// shadowed says that the binding does not count, for another object decides.
func (b *binding) shadowed(by string) federation.Problem {
	return federation.Problem{
		Code: codeShadowed, Object: title(b.object.Key), Field: "spec.hostname",
		Message: fmt.Sprintf("%s names the same hostname %s and decides; remove one of the two", by, b.key.Hostname),
	}
}
