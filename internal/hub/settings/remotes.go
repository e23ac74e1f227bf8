package settings

import (
	"cmp"
	"fmt"
	"strings"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/attach"
	"isthmus.dev/isthmus/internal/kube"
	"isthmus.dev/isthmus/registries/reconcile"
)

// Remotes are where objects of attached clusters name further clusters. A user who may
// write such objects can attach clusters, so operators name the holders one by one.
type Remotes struct {
	Holders    map[reconcile.Holder]bool
	Namespaces map[attach.RemoteKind]string
	Profiles   attach.ProfileOptions
}

// The defaults of the config file.
const (
	defaultRemoteNamespace  = "istio-system" // where Istio has its remote secrets
	defaultProfileNamespace = "isthmus"
	defaultAccessProvider   = "secretreader" // of the Cluster Inventory API
)

func (c configFile) remotes() (Remotes, error) {
	of := Remotes{
		Holders: map[reconcile.Holder]bool{},
		Namespaces: map[attach.RemoteKind]string{
			attach.Secrets:  cmp.Or(c.RemoteSecrets.Namespace, defaultRemoteNamespace),
			attach.Profiles: cmp.Or(c.ClusterProfiles.Namespace, defaultProfileNamespace),
		},
		Profiles: attach.ProfileOptions{
			Provider: cmp.Or(c.ClusterProfiles.Provider, defaultAccessProvider),
			Secret:   cmp.Or(c.ClusterProfiles.Secret, attach.NamePlaceholder),
		},
	}
	if !strings.Contains(of.Profiles.Secret, attach.NamePlaceholder) {
		return Remotes{}, fmt.Errorf("clusterProfiles.secret: %q: it must contain %s, or all clusters would have the same token",
			of.Profiles.Secret, attach.NamePlaceholder)
	}
	if err := of.hold("remoteSecrets.clusters", attach.Secrets, c.RemoteSecrets.Clusters); err != nil {
		return Remotes{}, err
	}
	return of, of.hold("clusterProfiles.clusters", attach.Profiles, c.ClusterProfiles.Clusters)
}

// hold adds the clusters of a field.
func (r Remotes) hold(field string, by attach.RemoteKind, clusters []federation.ClusterID) error {
	for i, id := range clusters {
		if err := kube.ValidateClusterID(string(id)); err != nil {
			return fmt.Errorf("%s[%d]: %q: %w", field, i, id, err)
		}
		r.Holders[reconcile.Holder{Cluster: id, By: by}] = true
	}
	return nil
}
