package kind

import (
	"fmt"
	"slices"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/validation"
)

var _ = add(of[federation.ClusterObject]{
	kind:    federation.ClusterKind,
	columns: []Column{{"PROVIDER", "spec.provider"}, {"NETWORK", "spec.network"}, {"PRECEDENCE", "spec.precedence"}},
})

var _ = add(of[federation.NetworkObject]{
	kind: federation.NetworkKind,
	translate: func(d Decoded, _ *federation.NetworkObject) Meaning {
		return Meaning{Problems: unused(d, NetworkFields, "this field has no effect yet")}
	},
})

// NetworkFields are the fields of a Network that the hub supports.
var NetworkFields = []string{"cidrs", "clusters", "gateways"}

var _ = add(of[federation.MeshSettings]{
	kind: federation.MeshSettingsKind,
	proxyLabels: func(s *federation.MeshSettings, add func(map[string]string)) {
		add(priorityLabels(s.LocalityLoadBalancing.FailoverPriority))
	},
	translate: func(d Decoded, s *federation.MeshSettings) Meaning {
		problems := unused(d, slices.Concat(MeshSettingsFields, MeshSettingsOfSources), UnusedSetting)
		return Meaning{Problems: append(problems, labelsOfNodes(d, s.LocalityLoadBalancing.FailoverPriority)...)}
	},
	check: func(_ string, s *federation.MeshSettings) []validation.Problem {
		return slices.Concat(
			validation.DefaultExportTo("defaultServiceExportTo", s.DefaultServiceExportTo),
			validation.DefaultExportTo("defaultVirtualServiceExportTo", s.DefaultVirtualServiceExportTo),
			validation.DefaultExportTo("defaultDestinationRuleExportTo", s.DefaultDestinationRuleExportTo),
		)
	},
})

// labelsOfNodes reports the label by which endpoints cannot be ordered.
func labelsOfNodes(d Decoded, labels []string) []federation.Problem {
	var found []federation.Problem
	for _, i := range federation.NodeLabels(labels) {
		found = append(found, federation.Problem{
			Code: federation.CodeNotHonoured, Object: d.Key.Title(), Field: fmt.Sprintf("spec.localityLoadBalancing.failoverPriority[%d]", i),
			Message: federation.NoNodes,
		})
	}
	return found
}

// UnusedSetting is why other fields of MeshSettings are reported.
const UnusedSetting = "this setting has no effect yet"

// MeshSettingsOfSources are those that say what the hub reads of clusters.
var MeshSettingsOfSources = []string{
	"sources", "ingressControllerMode", "ingressClass", "ingressService", "ingressSelector", "ingressStatus",
}

// MeshSettingsFields are the fields of MeshSettings that proxies are configured by.
var MeshSettingsFields = []string{
	"rootNamespace", "trustDomain", "trustDomainAliases", "outboundTrafficPolicy.mode", "pathNormalization.normalization", "gatewayNamespaces",
	"protocolDetection.outbound", "protocolDetection.inbound", "protocolDetectionTimeout",
	"clusterLocalHosts", "clusterLocalExceptions", "localityLoadBalancing.enabled", "localityLoadBalancing.failover",
	"localityLoadBalancing.distribute", "localityLoadBalancing.failoverPriority", "extensionProviders",
	"defaultProviders.accessLogging", "defaultProviders.tracing", "envoyFilters.namespaces", "quicListeners",
	"defaultServiceExportTo", "defaultVirtualServiceExportTo", "defaultDestinationRuleExportTo",
}
