package supported

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"
	api "istio.io/api/networking/v1alpha3"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/envoyfilter"
	"isthmus.dev/isthmus/xds/envoy/node"
)

var _ = add(row{
	kind: federation.EnvoyFilterKind, table: envoyFilterFields(),
	concerns: func(o *federation.Object, f node.Facet, _ *federation.Reader) bool {
		return slices.ContainsFunc(node.PatchesOf(f), func(ref node.PatchRef) bool { return ref.Object == o.Key })
	},
})

func envoyFilterFields() *table {
	t := &table{
		fields: []string{
			"workloadSelector.labels", "targetRefs.group", "targetRefs.kind", "targetRefs.name", "priority", "configPatches.applyTo",
			"configPatches.match.context", "configPatches.match.proxy.proxyVersion", "configPatches.match.proxy.metadata",
			"configPatches.patch.operation", "configPatches.patch.value", "configPatches.patch.filterClass",
		},
		refused: map[string]string{
			"targetRefs.namespace":                  ownTargets,
			"configPatches.match.listener.portName": "Istio does not implement it either; write the portNumber",
			"configPatches.match.waypoint":          "there are no waypoints",
		},
		values: envoyFilterValues,
	}
	for match, fields := range map[string][]string{
		"listener": {
			"name", "portNumber", "listenerFilter", "filterChain.name", "filterChain.sni", "filterChain.transportProtocol",
			"filterChain.applicationProtocols",
			"filterChain.destinationPort", "filterChain.filter.name", "filterChain.filter.subFilter.name",
		},
		"routeConfiguration": {
			"name", "portNumber", "portName", "gateway", "vhost.name", "vhost.domainName",
			"vhost.route.name", "vhost.route.action",
		},
		"cluster": {"name", "portNumber", "service", "subset"},
	} {
		for _, field := range fields {
			t.fields = append(t.fields, "configPatches.match."+match+"."+field)
		}
	}
	return t
}

// envoyFilterValues finds patches that never have an effect.
func envoyFilterValues(m proto.Message) []Field {
	n := &valueNotes{}
	spec, _ := m.(*api.EnvoyFilter)
	for i, t := range spec.GetTargetRefs() {
		if !federation.IsGatewayAPI(t.GetGroup(), t.GetKind()) {
			n.add(fmt.Sprintf("targetRefs[%d]", i), noTarget)
		}
	}
	for _, p := range envoyfilter.Problems(spec) {
		n.add(p.Path, p.Message)
	}
	return n.found
}
