package fetch

import (
	"fmt"
	"iter"
	"slices"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/derive"
	"isthmus.dev/isthmus/internal/jwks"
)

// Limits of the URIs from which keys are fetched. The oldest objects come first.
const (
	mostSources     = 1000
	mostOfNamespace = 100
)

// demand is which sources the rules of a mesh need.
type demand struct {
	fetched map[federation.KeySource]time.Duration // each with the longest timeout of its rules
	refused map[federation.KeySource]string        // and why they are beyond the limits
}

// demands keeps the demand of the latest snapshot.
func demands() *derive.Table[struct{}, *demand] {
	return derive.NewTable(func(r *federation.Reader, _ struct{}) *demand { return demandOf(r) })
}

func demandOf(r *federation.Reader) *demand {
	return demandFor(r.For(federation.AnyCluster).Objects().Of(federation.RequestAuthenticationKind))
}

func demandFor(objects iter.Seq[*federation.Object]) *demand {
	fetched, refused := map[federation.KeySource]time.Duration{}, map[federation.KeySource]string{}
	count := map[string]int{}
	for _, o := range slices.SortedFunc(objects, (*federation.Object).CompareAge) {
		for _, rule := range jwks.Rules(o) {
			from, remote := jwks.SourceOf(rule)
			_, known := fetched[from]
			why := beyond(len(fetched), count[o.Key.Namespace], o.Key.Namespace)
			switch {
			case !remote:
				continue
			case !known && why != "":
				refused[from] = why
				continue
			case !known:
				count[o.Key.Namespace]++
				delete(refused, from)
			}
			fetched[from] = max(fetched[from], jwks.Timeout(rule))
		}
	}
	return &demand{fetched, refused}
}

// beyond says why one more source is too many; empty: it is not.
func beyond(all, ofNamespace int, namespace string) string {
	switch {
	case ofNamespace >= mostOfNamespace:
		return fmt.Sprintf("older objects of namespace %s name %d other URIs, the most of one namespace", namespace, mostOfNamespace)
	case all >= mostSources:
		return fmt.Sprintf("older objects name %d other URIs, the most of a mesh", mostSources)
	}
	return ""
}
