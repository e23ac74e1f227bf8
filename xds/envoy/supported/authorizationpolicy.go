package supported

import (
	"fmt"

	"google.golang.org/protobuf/proto"
	security "istio.io/api/security/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/authorization"
	"isthmus.dev/isthmus/xds/envoy/facet"
	"isthmus.dev/isthmus/xds/envoy/node"
)

var _ = add(row{kind: federation.AuthorizationPolicyKind, table: authorizationFields(), concerns: selects})

const (
	noTarget   = "the hub has no proxies that it could mean; name a Gateway of gateway.networking.k8s.io, or use a selector"
	ownTargets = "a policy is for gateways of its own namespace"
)

func authorizationFields() *table {
	t := withTargets(&table{
		fields:  []string{"selector.matchLabels", "action", "rules.when.key", "rules.when.values", "rules.when.notValues", "provider.name"},
		refused: map[string]string{},
		values:  authorizationValues,
		tried: func(m proto.Message) []Field {
			switch spec, _ := m.(*security.AuthorizationPolicy); spec.GetAction() {
			case security.AuthorizationPolicy_ALLOW, security.AuthorizationPolicy_DENY:
				return nil
			}
			return []Field{{"action", "only ALLOW and DENY can be tried out: the policy is in force, although it is annotated as a dry run"}}
		},
	})
	for _, field := range []string{
		"principals", "notPrincipals", "requestPrincipals", "notRequestPrincipals", "namespaces", "notNamespaces",
		"serviceAccounts", "notServiceAccounts",
		"ipBlocks", "notIpBlocks", "remoteIpBlocks", "notRemoteIpBlocks", "trustDomains", "notTrustDomains",
	} {
		t.fields = append(t.fields, "rules.from.source."+field)
	}
	for _, field := range []string{"hosts", "notHosts", "ports", "notPorts", "methods", "notMethods", "paths", "notPaths"} {
		t.fields = append(t.fields, "rules.to.operation."+field)
	}
	return t
}

// selects reports whether a policy selects the facet's proxies.
func selects(o *federation.Object, f node.Facet, _ *federation.Reader) bool {
	p, is := o.Spec.(facet.Attached)
	return !is || facet.Selects(p, o.Key.Namespace, f)
}

// withTargets adds the fields by which a policy names objects.
func withTargets(t *table) *table {
	for _, ref := range []string{"targetRef", "targetRefs"} {
		t.fields = append(t.fields, ref+".group", ref+".kind", ref+".name")
		t.refused[ref+".namespace"] = ownTargets
	}
	return t
}

// targets finds the objects that a policy names without effect.
func (n *valueNotes) targets(p facet.Attached) {
	if t := p.GetTargetRef(); t != nil && !federation.IsGatewayAPI(t.GetGroup(), t.GetKind()) {
		n.add("targetRef", noTarget)
	}
	for i, t := range p.GetTargetRefs() {
		if !federation.IsGatewayAPI(t.GetGroup(), t.GetKind()) {
			n.add(fmt.Sprintf("targetRefs[%d]", i), noTarget)
		}
	}
}

// authorizationValues finds what cannot be compiled.
func authorizationValues(m proto.Message) []Field {
	n := &valueNotes{}
	spec, _ := m.(*security.AuthorizationPolicy)
	n.targets(spec)
	for _, p := range authorization.Problems(spec) {
		n.add(p.Path, p.Message)
	}
	return n.found
}
