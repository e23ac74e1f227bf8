package gatewayapi

import (
	"maps"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	gateway "sigs.k8s.io/gateway-api/apis/v1"

	"isthmus.dev/isthmus/federation"
)

// nameOfNamespace is the label that every namespace has.
const nameOfNamespace = "kubernetes.io/metadata.name"

// namespaceSelector is which namespaces are meant.
type namespaceSelector struct {
	from     gateway.FromNamespaces
	selector labels.Selector // for NamespacesFromSelector; nil selects none
	// labels are those of a namespace; false: they are not known.
	labels func(namespace string) (labels.Set, bool)
}

// selects reports whether the namespace is meant, seen from one's own. One of which the labels
// are not known is not.
func (s namespaceSelector) selects(own, namespace string) bool {
	switch s.from {
	case gateway.NamespacesFromAll:
		return true
	case gateway.NamespacesFromSame:
		return own == namespace
	case gateway.NamespacesFromSelector:
		if s.selector == nil {
			return false
		}
		has, known := s.labels(namespace)
		return known && s.selector.Matches(has)
	}
	return false
}

// readNamespaces reads which namespaces are meant by an object. If a selector cannot be applied,
// it selects none, and why says the reason.
func readNamespaces(
	r *federation.Reader, by federation.ObjectKey, from *gateway.FromNamespaces, selector *meta.LabelSelector,
) (s namespaceSelector, why string) {
	s.from = gateway.NamespacesFromSame
	if from != nil {
		s.from = *from
	}
	if s.from != gateway.NamespacesFromSelector || selector == nil {
		return s, ""
	}
	s.labels = func(namespace string) (labels.Set, bool) { return labelsOf(r, by.Cluster, namespace) }
	if onlyNames(selector) {
		s.labels = func(namespace string) (labels.Set, bool) { return labels.Set{nameOfNamespace: namespace}, true }
	} else if _, known := s.labels(by.Namespace); !known {
		return s,
			"the hub does not read the labels of namespaces; name the kind Namespace among the kinds of the cluster in sources of MeshSettings, or select by the label " + nameOfNamespace
	}
	parsed, err := meta.LabelSelectorAsSelector(selector)
	if err != nil {
		return s, err.Error()
	}
	s.selector = parsed
	return s, ""
}

// onlyNames reports whether the selector is about the names of namespaces alone.
func onlyNames(selector *meta.LabelSelector) bool {
	keys := maps.Clone(selector.MatchLabels)
	if keys == nil {
		keys = map[string]string{}
	}
	for _, e := range selector.MatchExpressions {
		keys[e.Key] = ""
	}
	delete(keys, nameOfNamespace)
	return len(keys) == 0
}

// labelsOf are the labels of a namespace of a cluster, if its source reads them.
func labelsOf(r *federation.Reader, of federation.ClusterID, namespace string) (labels.Set, bool) {
	if of == "" {
		return nil, false
	}
	o, exists := r.Object(federation.ObjectKey{Kind: federation.NamespaceKind.Name, Name: namespace, Cluster: of})
	if !exists {
		return nil, false
	}
	spec, ok := o.Spec.(*federation.Namespace)
	if !ok {
		return nil, false
	}
	all := maps.Clone(labels.Set(spec.Labels))
	if all == nil {
		all = labels.Set{}
	}
	all[nameOfNamespace] = namespace
	return all, true
}
