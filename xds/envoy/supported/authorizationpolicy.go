package supported

import (
	"google.golang.org/protobuf/proto"
	security "istio.io/api/security/v1"

	"isthmus.dev/isthmus/xds/envoy/authorization"
)

var _ = add(row{kind: authorization.Kind, table: authorizationFields()})

const (
	noTarget = "the hub has no proxies that it could mean: no request is denied because of this object; use a selector"
	asks     = "providers are not supported yet: everything is denied"
)

func authorizationFields() *table {
	t := &table{
		fields: []string{"selector.matchLabels", "action", "rules.when.key", "rules.when.values", "rules.when.notValues"},
		refused: map[string]string{
			"targetRef": noTarget, "targetRefs": noTarget, "provider": asks,
		},
		values: authorizationValues,
	}
	for _, field := range []string{
		"principals", "notPrincipals", "requestPrincipals", "notRequestPrincipals", "namespaces", "notNamespaces", "serviceAccounts", "notServiceAccounts",
		"ipBlocks", "notIpBlocks", "remoteIpBlocks", "notRemoteIpBlocks", "trustDomains", "notTrustDomains",
	} {
		t.fields = append(t.fields, "rules.from.source."+field)
	}
	for _, field := range []string{"hosts", "notHosts", "ports", "notPorts", "methods", "notMethods", "paths", "notPaths"} {
		t.fields = append(t.fields, "rules.to.operation."+field)
	}
	return t
}

// authorizationValues finds what cannot be compiled.
func authorizationValues(m proto.Message) []Field {
	n := &valueNotes{}
	spec, _ := m.(*security.AuthorizationPolicy)
	switch spec.GetAction() {
	case security.AuthorizationPolicy_AUDIT:
		n.add("action", "proxies have nothing that audits requests: the object has no effect")
	case security.AuthorizationPolicy_CUSTOM:
		n.add("action", asks)
	}
	for _, p := range authorization.Problems(spec) {
		n.add(p.Path, p.Message)
	}
	return n.found
}
