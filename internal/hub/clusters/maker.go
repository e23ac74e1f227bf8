package clusters

import (
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/hub/kinds"
	"isthmus.dev/isthmus/internal/kube"
	"isthmus.dev/isthmus/registries"
	"isthmus.dev/isthmus/registries/provider"
	"isthmus.dev/isthmus/registries/reconcile"
)

// maker makes registries of clusters, with what they may use of the hub.
type maker struct {
	kinds.Hub
	known knownClusters // nil: only the data folder knows who clusters of files are
}

// opener makes a registry; see registries.Cluster.
type opener func(known federation.ClusterIdentity) (registries.Registry, error)

// open is the opener of a cluster whose config names its credentials, if it needs any.
func (m maker) open(k provider.Kind, c kinds.Cluster) opener {
	open := opener(func(known federation.ClusterIdentity) (registries.Registry, error) {
		return k.Open(m.cluster(c, known))
	})
	if k.Identified {
		return m.remember(c.ID, open)
	}
	return open
}

func (m maker) cluster(c kinds.Cluster, known federation.ClusterIdentity) provider.Cluster {
	return provider.Cluster{ID: c.ID, Network: c.Network, Limits: c.LimitsOr(m.Limits), Section: c.Section(c.Provider), Known: known}
}

// registry is the cluster as the supervisor takes it. The digest is that of the
// file with its credentials, if it has one.
func (m maker) registry(c kinds.Cluster, digest string) (registries.Cluster, error) {
	k, err := m.Of(c.Provider)
	if err != nil {
		return registries.Cluster{}, err
	}
	fingerprint, err := c.Fingerprint(digest)
	return registries.Cluster{ID: c.ID, Spec: c.Spec(), Identified: k.Identified, Fingerprint: fingerprint, Open: m.open(k, c)}, err
}

// configured are the clusters of the config file, and the kubeconfigs that they name.
func (m maker) configured(all []kinds.Cluster) (claims []reconcile.Claim, files []*reconcile.Kubeconfig, err error) {
	taken := map[federation.ClusterID]bool{}
	for _, c := range all {
		if k, err := m.Of(c.Provider); err == nil && k.File != nil && !taken[c.ID] {
			files = append(files, &reconcile.Kubeconfig{
				ID: c.ID, Path: k.File(c.Section(c.Provider)),
				Claim: func(digest string) (reconcile.Claim, error) {
					cluster, err := m.registry(c, digest)
					return reconcile.Claim{Cluster: cluster}, err
				},
			})
		}
		taken[c.ID] = true
		cluster, err := m.registry(c, "")
		if err != nil {
			return nil, nil, err
		}
		claims = append(claims, reconcile.Claim{Cluster: cluster})
	}
	return claims, reconcile.Kubeconfigs(files), nil
}

// folderCluster is a cluster of the watched folder.
func (m maker) folderCluster(id federation.ClusterID, credentials *kube.Credentials) registries.Cluster {
	c := m.kubeconfigCluster(id, credentials)
	c.Open = m.remember(id, c.Open)
	return c
}

// kubeconfigCluster is a cluster of which only the kubeconfig is given.
func (m maker) kubeconfigCluster(id federation.ClusterID, credentials *kube.Credentials) registries.Cluster {
	return registries.Cluster{
		ID: id, Spec: federation.ClusterSpec{Provider: federation.Kubernetes}, Identified: true, Fingerprint: credentials.Fingerprint(),
		Open: func(known federation.ClusterIdentity) (registries.Registry, error) {
			return m.Kubernetes().Open(m.cluster(kinds.Cluster{ID: id}, known), credentials)
		},
	}
}
