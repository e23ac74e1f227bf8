package node

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"isthmus.dev/isthmus/federation"
)

// patchesFor finds the patches for the proxy: of the EnvoyFilters of the root namespace, then of
// its own; of each namespace by priority, then the oldest first.
func patchesFor(n Node, labels string, r *federation.Reader, mesh *federation.MeshSettings) (lists patchLists) {
	if n.GRPC || mesh == nil || len(mesh.EnvoyFilters.Namespaces) == 0 {
		return patchLists{}
	}
	for _, namespace := range slices.Compact([]string{mesh.Root(), n.Namespace}) {
		if !mesh.AllowsEnvoyFilters(namespace) {
			continue
		}
		for _, o := range envoyFiltersOf(n, namespace, labels, r) {
			lists.add(n, o)
		}
	}
	return lists
}

// envoyFiltersOf are those of the namespace for the proxy, in their order.
func envoyFiltersOf(n Node, namespace, labels string, r *federation.Reader) []*federation.Object {
	names := []string{federation.WorkloadsName + namespace}
	for label := range strings.SplitSeq(labels, ",") {
		names = append(names, federation.WorkloadsName+namespace+"/"+label)
	}
	found := map[federation.ObjectKey]bool{}
	var all []*federation.Object
	for _, name := range names {
		for o := range r.Objects().Named(federation.EnvoyFilterKind, name) {
			if spec, ok := o.Spec.(*networking.EnvoyFilter); ok && !found[o.Key] && selectsProxy(spec, namespace, n) {
				found[o.Key] = true
				all = append(all, o)
			}
		}
	}
	slices.SortFunc(all, func(a, b *federation.Object) int {
		return cmp.Or(cmp.Compare(priorityOf(a), priorityOf(b)), a.CompareAge(b))
	})
	return all
}

func priorityOf(o *federation.Object) int32 { return o.Spec.(*networking.EnvoyFilter).GetPriority() }

// selectsProxy reports whether an EnvoyFilter of the namespace is for the proxy.
func selectsProxy(spec *networking.EnvoyFilter, namespace string, n Node) bool {
	if len(spec.GetTargetRefs()) == 0 {
		return federation.MatchesLabels(n.Labels, []map[string]string{spec.GetWorkloadSelector().GetLabels()})
	}
	for _, t := range spec.GetTargetRefs() {
		if namespace == n.Namespace && federation.IsGatewayAPI(t.GetGroup(), t.GetKind()) && n.Labels[federation.GatewayLabel] == t.GetName() {
			return true
		}
	}
	return false
}

// meets reports whether a match may be for the proxy, by its type, version and metadata.
// claims: what nothing confirms decided that.
func meets(n Node, match *networking.EnvoyFilter_EnvoyConfigObjectMatch) (matched, claims bool) {
	switch match.GetContext() {
	case networking.EnvoyFilter_SIDECAR_INBOUND, networking.EnvoyFilter_SIDECAR_OUTBOUND:
		matched = n.Type == Sidecar
	case networking.EnvoyFilter_GATEWAY:
		matched = n.Type != Sidecar
	default:
		matched = match.GetContext() == networking.EnvoyFilter_ANY
	}
	proxy := match.GetProxy()
	if version := proxy.GetProxyVersion(); version != "" {
		pattern, err := regexp.Compile(version)
		claims = true
		matched = matched && err == nil && n.MeshVersion != "" && pattern.MatchString(n.MeshVersion)
	}
	for key, value := range proxy.GetMetadata() {
		claims = true
		matched = matched && hasShortText(n.Metadata, key, value)
	}
	return matched, claims
}
