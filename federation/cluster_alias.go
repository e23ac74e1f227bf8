package federation

import (
	"slices"
	"strings"

	"isthmus.dev/isthmus/internal/btree"
)

// Aliases are further names under which proxies and tokens may name their cluster,
// sorted and joined by commas, so that they can be compared. Istio's default
// cluster ID, Kubernetes, and names with _ or . are not IDs here.
type Aliases string

// NewAliases are those names, each once.
func NewAliases(names []string) Aliases {
	sorted := slices.Compact(slices.Sorted(slices.Values(names)))
	return Aliases(strings.Join(sorted, ","))
}

// List is the names.
func (a Aliases) List() []string {
	if a == "" {
		return nil
	}
	return strings.Split(string(a), ",")
}

// maxAlias is the longest alias in bytes.
const maxAlias = 253

// AliasProblem says what is wrong with an alias; empty: nothing is.
func AliasProblem(alias string) string {
	allowed := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.", r)
	}
	if alias == "" || len(alias) > maxAlias || strings.ContainsFunc(alias, func(r rune) bool { return !allowed(r) }) {
		return "an alias has 1 to 253 characters of a-z, A-Z, 0-9, '-', '_' and '.'"
	}
	return ""
}

// ClusterNamed is the ID of the cluster that a proxy or a token names: by its ID,
// else by an alias that no other cluster has. A name of no cluster is
// returned as it is.
func (s *Snapshot) ClusterNamed(name ClusterID) ClusterID {
	if _, is := s.clusters.byID.Get(string(name)); is {
		return name
	}
	if id := s.clusters.named[string(name)]; id != "" {
		return id
	}
	return name
}

// nameClusters finds the cluster of each alias; one that several claim
// has none.
func nameClusters(clusters btree.Map[*Cluster]) map[string]ClusterID {
	named := map[string]ClusterID{}
	clusters.Walk(func(_ string, c *Cluster) bool {
		for _, alias := range c.Spec.Aliases.List() {
			id := c.ID
			if _, taken := named[alias]; taken {
				id = ""
			}
			named[alias] = id
		}
		return false
	})
	return named
}
