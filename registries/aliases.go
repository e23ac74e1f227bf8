package registries

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"isthmus.dev/isthmus/federation"
)

// aliases give each name to the one cluster that it stands for.
type aliases struct {
	granted map[federation.ClusterID]federation.Aliases
	refused map[federation.ClusterID][]string
}

func newAliases() aliases {
	return aliases{granted: map[federation.ClusterID]federation.Aliases{}, refused: map[federation.ClusterID][]string{}}
}

// aliasHolders decides which cluster has each alias: the first by the rank and the
// name of its source, then by its ID. An ID is nobody's alias. The caller holds mu.
func (c *Claims) aliasHolders() map[string]federation.ClusterID {
	order := slices.SortedFunc(maps.Keys(c.of), func(a, b federation.ClusterID) int {
		x, y := c.of[a][0].by, c.of[b][0].by
		return cmp.Or(cmp.Compare(x.rank, y.rank), cmp.Compare(x.name, y.name), cmp.Compare(a, b))
	})
	holders := map[string]federation.ClusterID{}
	for _, id := range order {
		holders[string(id)] = id
	}
	for _, id := range order {
		for _, alias := range c.of[id][0].cluster.Spec.Aliases.List() {
			if _, taken := holders[alias]; !taken {
				holders[alias] = id
			}
		}
	}
	return holders
}

// grant gives the aliases to their clusters anew, and has all but the one cluster
// take up what changed for them. The caller holds mu.
func (c *Claims) grant(except federation.ClusterID) {
	holders := c.aliasHolders()
	for id, all := range c.of {
		var granted []string
		for _, alias := range all[0].cluster.Spec.Aliases.List() {
			if holders[alias] == id {
				granted = append(granted, alias)
			}
		}
		if now := federation.NewAliases(granted); now != c.granted[id] {
			c.granted[id] = now
			if id != except {
				c.admit(all[0])
			}
		}
	}
	maps.DeleteFunc(c.granted, func(id federation.ClusterID, _ federation.Aliases) bool { return len(c.of[id]) == 0 })
}

// showRefused says at each cluster which of its aliases stand for other clusters.
// The caller holds mu.
func (c *Claims) showRefused() {
	holders := c.aliasHolders()
	for id, all := range c.of {
		refused := slices.DeleteFunc(all[0].cluster.Spec.Aliases.List(), func(alias string) bool { return holders[alias] == id })
		for _, alias := range c.refused[id] {
			if !slices.Contains(refused, alias) {
				c.to.Problem(id, "alias "+alias, nil)
			}
		}
		for _, alias := range refused {
			c.to.Problem(id, "alias "+alias, &federation.Problem{
				Code: "DUPLICATE_CLUSTER_ALIAS", Object: "cluster " + string(id), Field: "aliases",
				Message: fmt.Sprintf("the alias %s stands for the cluster %s, and proxies that name it are not of %s; give this cluster another alias", alias, holders[alias], id),
			})
		}
		c.refused[id] = refused
	}
	maps.DeleteFunc(c.refused, func(id federation.ClusterID, _ []string) bool { return len(c.of[id]) == 0 })
}

// admit has the supervisor take up the claim, with the aliases that the cluster
// has. The caller holds mu.
func (c *Claims) admit(first claim) {
	cluster := first.cluster
	cluster.Spec.Aliases = c.granted[cluster.ID]
	if first.refused != "" {
		c.to.Refuse(cluster.ID, cluster.Spec, first.refused)
		return
	}
	c.to.Attach(cluster)
}

// AliasHolder is the cluster that the name stands for, as its ID or as an alias.
func (c *Claims) AliasHolder(name string) (federation.ClusterID, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	id, taken := c.aliasHolders()[name]
	return id, taken
}
