package settings

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/kube"
)

// checkAliases returns what is wrong with the aliases of clusters in the file: each
// names one cluster.
func (c configFile) checkAliases() error {
	holders := map[string]federation.ClusterID{string(c.ClusterID): c.ClusterID}
	for _, cluster := range c.Clusters {
		holders[string(cluster.ID)] = cluster.ID
	}
	var wrong []error
	take := func(field string, id federation.ClusterID, aliases []string) {
		for i, alias := range aliases {
			holder, taken := holders[alias]
			switch problem := federation.AliasProblem(alias); {
			case problem != "":
				wrong = append(wrong, fmt.Errorf("%s[%d]: %q: %s", field, i, alias, problem))
			case taken && holder != id:
				wrong = append(wrong, fmt.Errorf("%s[%d]: %q already names the cluster %s; give this cluster another alias", field, i, alias, holder))
			}
			holders[alias] = id
		}
	}
	for i, cluster := range c.Clusters {
		take(fmt.Sprintf("clusters[%d].aliases", i), cluster.ID, cluster.Aliases)
	}
	for _, id := range slices.Sorted(maps.Keys(c.ClusterAliases)) {
		if err := kube.ValidateClusterID(string(id)); err != nil {
			wrong = append(wrong, fmt.Errorf("clusterAliases: %q: %w", id, err))
		}
		take("clusterAliases."+string(id), id, c.ClusterAliases[id])
	}
	return errors.Join(wrong...)
}
