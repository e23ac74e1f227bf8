package settings

import (
	"fmt"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/kube"
)

// holders are the clusters whose Secrets may name further clusters. A user who may
// write Secrets there can attach clusters, so operators name them one by one.
func (c remoteSecretsConfig) holders() (map[federation.ClusterID]bool, error) {
	holders := map[federation.ClusterID]bool{}
	for i, id := range c.Clusters {
		if err := kube.ValidateClusterID(string(id)); err != nil {
			return nil, fmt.Errorf("remoteSecrets.clusters[%d]: %q: %w", i, id, err)
		}
		holders[id] = true
	}
	return holders, nil
}
