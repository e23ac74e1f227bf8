package kind

import (
	"maps"
	"slices"
	"strings"

	"isthmus.dev/isthmus/federation"
	selection "istio.io/api/type/v1beta1"
)

// GatewayName is the name under which routes that attach to a gateway are
// found.
func GatewayName(namespace, name string) string { return "gateway:" + namespace + "/" + name }

// ParseGatewayName reads what GatewayName writes; ok is false for other names.
func ParseGatewayName(text string) (key federation.ObjectKey, ok bool) {
	text, ok = strings.CutPrefix(text, "gateway:")
	namespace, name, _ := strings.Cut(text, "/")
	return federation.GatewayKind.Key(namespace, name), ok
}

// BackendName is the name under which routes are found that send requests to the service.
func BackendName(host federation.Hostname) string { return "backend:" + string(host) }

// ExportName is the name under which DestinationRules are found that are
// exported to the namespace by its name.
func ExportName(namespace string) string { return "export:" + namespace }

// WorkloadsName is the name under which policies are found that select workloads of a
// namespace by their labels: by the first one, or of all workloads.
func WorkloadsName(namespace string, labels map[string]string) string {
	name := federation.WorkloadsName + namespace
	for _, key := range slices.Sorted(maps.Keys(labels))[:min(len(labels), 1)] {
		name += "/" + key + "=" + labels[key]
	}
	return name
}

// hosts are the names of hosts as the object's namespace means them.
func (d Decoded) hosts(in ...string) []string {
	out := make([]string, len(in))
	for i, host := range in {
		out[i] = string(federation.ResolveHostIn(d.Domain, host, d.Key.Namespace))
	}
	return out
}

func lowerCase(hosts []string) []string {
	out := make([]string, len(hosts))
	for i, host := range hosts {
		out[i] = strings.ToLower(host)
	}
	return out
}

// attached are specs that choose workloads by a selector, or proxies by their gateways.
type attached interface {
	selecting
	GetTargetRef() *selection.PolicyTargetReference
	GetTargetRefs() []*selection.PolicyTargetReference
}

// gatewayLabels has the labels of the proxies of each gateway that the spec names.
func gatewayLabels(spec attached) []map[string]string {
	var all []map[string]string
	for _, t := range slices.Concat(spec.GetTargetRefs(), []*selection.PolicyTargetReference{spec.GetTargetRef()}) {
		if federation.IsGatewayAPI(t.GetGroup(), t.GetKind()) {
			all = append(all, map[string]string{federation.GatewayLabel: t.GetName()})
		}
	}
	return all
}

// policyNames are the names under which a policy is found for the workloads that it selects.
func policyNames[T attached](d Decoded, spec T) []string {
	if spec.GetTargetRef() == nil && len(spec.GetTargetRefs()) == 0 {
		return []string{WorkloadsName(d.Key.Namespace, spec.GetSelector().GetMatchLabels())}
	}
	var names []string
	for _, labels := range gatewayLabels(spec) {
		names = append(names, WorkloadsName(d.Key.Namespace, labels))
	}
	return names
}

// policyLabels is the proxyLabels of a policy.
func policyLabels[T attached](spec T, add func(map[string]string)) {
	add(spec.GetSelector().GetMatchLabels())
	for _, labels := range gatewayLabels(spec) {
		add(labels)
	}
}

// attachedToNothing reports whether all objects that a policy names have no proxies.
func attachedToNothing(spec attached) bool {
	return (spec.GetTargetRef() != nil || len(spec.GetTargetRefs()) > 0) && len(gatewayLabels(spec)) == 0
}

// selecting are specs that choose workloads by a selector.
type selecting interface {
	GetSelector() *selection.WorkloadSelector
}

// selector is the proxyLabels of a spec whose selector chooses workloads.
func selector[T selecting](spec T, add func(map[string]string)) {
	add(spec.GetSelector().GetMatchLabels())
}
