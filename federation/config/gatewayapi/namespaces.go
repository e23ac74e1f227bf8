package gatewayapi

import (
	"maps"
	"slices"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	gateway "sigs.k8s.io/gateway-api/apis/v1"
)

// nameOfNamespace is the label that every namespace has. The hub knows no others (ADR 143).
const nameOfNamespace = "kubernetes.io/metadata.name"

// namespaceSelector is which namespaces are meant.
type namespaceSelector struct {
	from     gateway.FromNamespaces
	selector labels.Selector // for NamespacesFromSelector; nil selects none
}

// selects reports whether the namespace is meant, seen from one's own.
func (s namespaceSelector) selects(own, namespace string) bool {
	switch s.from {
	case gateway.NamespacesFromAll:
		return true
	case gateway.NamespacesFromSame:
		return own == namespace
	case gateway.NamespacesFromSelector:
		return s.selector != nil && s.selector.Matches(labels.Set{nameOfNamespace: namespace})
	}
	return false
}

// readNamespaces reads which namespaces are meant. A selector by labels that the hub does not
// know selects none, and unknown has them.
func readNamespaces(from *gateway.FromNamespaces, selector *meta.LabelSelector) (s namespaceSelector, unknown []string) {
	s.from = gateway.NamespacesFromSame
	if from != nil {
		s.from = *from
	}
	if s.from != gateway.NamespacesFromSelector || selector == nil {
		return s, nil
	}
	keys := map[string]bool{}
	for key := range selector.MatchLabels {
		keys[key] = true
	}
	for _, e := range selector.MatchExpressions {
		keys[e.Key] = true
	}
	delete(keys, nameOfNamespace)
	if len(keys) > 0 {
		return s, slices.Sorted(maps.Keys(keys))
	}
	parsed, err := meta.LabelSelectorAsSelector(selector)
	if err != nil {
		return s, []string{err.Error()}
	}
	s.selector = parsed
	return s, nil
}
