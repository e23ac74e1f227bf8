package validation

import (
	"istio.io/api/type/v1beta1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/schema"
)

// attached is a policy that is for chosen workloads or for named objects.
type attached interface {
	GetSelector() *v1beta1.WorkloadSelector
	GetTargetRef() *v1beta1.PolicyTargetReference
	GetTargetRefs() []*v1beta1.PolicyTargetReference
}

func attachment(at path, a attached) []Problem {
	ways := min(len(a.GetTargetRefs()), 1)
	if a.GetSelector() != nil {
		ways++
	}
	if a.GetTargetRef() != nil {
		ways++
	}
	found := problem(at, schema.Forbidden, when(ways > 1, "keep one of selector, targetRef and targetRefs"))
	found = append(found, optional(at.field("selector"), a.GetSelector(), selector)...)
	found = append(found, optional(at.field("targetRef"), a.GetTargetRef(), by(targetRules))...)
	return append(found, each(at.field("targetRefs"), a.GetTargetRefs(), by(targetRules))...)
}

var targetRules = []rule[*v1beta1.PolicyTargetReference]{
	{"name", schema.Required, func(t *v1beta1.PolicyTargetReference) string { return when(t.GetName() == "", "name the object") }},
	{"kind", schema.Required, func(t *v1beta1.PolicyTargetReference) string {
		return when(t.GetKind() == "", "name the kind of the object")
	}},
	{"namespace", schema.NotSupported, func(t *v1beta1.PolicyTargetReference) string {
		return when(t.GetNamespace() != "", "a policy is for objects of its own namespace: remove it")
	}},
	{"kind", schema.NotSupported, func(t *v1beta1.PolicyTargetReference) string {
		known := targetKinds[federation.Kind{Group: t.GetGroup(), Name: t.GetKind()}]
		return when(t.GetKind() != "" && !known,
			"%s of group %q cannot be named: name a Gateway or GatewayClass of gateway.networking.k8s.io, a Service, or a ServiceEntry of networking.istio.io",
			t.GetKind(), t.GetGroup())
	}},
}

// targetKinds are what policies can be attached to.
var targetKinds = map[federation.Kind]bool{
	federation.GatewayAPI.Gateway: true, federation.GatewayAPI.GatewayClass: true, federation.GatewayAPI.ListenerSet: true,
	{Name: "Service"}: true, {Group: "core", Name: "Service"}: true, federation.ServiceEntryKind: true,
}
