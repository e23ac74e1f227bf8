package facet

import (
	"iter"
	"slices"
	"strings"

	"isthmus.dev/isthmus/federation"
)

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
