package facet

import (
	"iter"
	"slices"
	"strings"

	selection "istio.io/api/type/v1beta1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/node"
)

// Attached are policies that select workloads by labels, or the proxies of named gateways.
type Attached interface {
	GetSelector() *selection.WorkloadSelector
	GetTargetRef() *selection.PolicyTargetReference
	GetTargetRefs() []*selection.PolicyTargetReference
}

// Selects reports whether a policy of the namespace is for the facet's proxies. One that names
// gateways is for these, and they are of its own namespace.
func Selects(p Attached, namespace string, f node.Facet) bool {
	targets := p.GetTargetRefs()
	if p.GetTargetRef() != nil {
		targets = append([]*selection.PolicyTargetReference{p.GetTargetRef()}, targets...)
	}
	if len(targets) == 0 {
		return f.HasLabels(p.GetSelector().GetMatchLabels())
	}
	return namespace == f.Namespace && slices.ContainsFunc(targets, func(t *selection.PolicyTargetReference) bool {
		return federation.IsGatewayAPI(t.GetGroup(), t.GetKind()) && f.HasLabels(map[string]string{federation.GatewayLabel: t.GetName()})
	})
}

// Policies yields the objects of a kind that may select the view's proxies: those of their
// namespace and of the root namespace, for all workloads or for one of the proxies' labels.
func (v *View) Policies(kind federation.Kind) iter.Seq[*federation.Object] {
	namespaces := []string{v.Facet.Namespace}
	if root := v.Reader.Mesh().Root(); root != v.Facet.Namespace {
		namespaces = append(namespaces, root)
	}
	return func(yield func(*federation.Object) bool) {
		for _, namespace := range namespaces {
			names := []string{federation.WorkloadsName + namespace}
			for label := range strings.SplitSeq(v.Facet.Labels, ",") {
				names = append(names, federation.WorkloadsName+namespace+"/"+label)
			}
			for _, name := range names {
				found := slices.Collect(v.Reader.Objects().Named(kind, name))
				if slices.ContainsFunc(found, func(o *federation.Object) bool { return !yield(o) }) {
					return
				}
			}
		}
	}
}
