package clusters

import (
	"cmp"
	"fmt"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/internal/attach"
	"isthmus.dev/isthmus/internal/hub/kinds"
	"isthmus.dev/isthmus/internal/metrics"
	"isthmus.dev/isthmus/registries"
	"isthmus.dev/isthmus/registries/provider"
	"isthmus.dev/isthmus/registries/reconcile"
)

// objectClusters makes clusters of Cluster objects.
type objectClusters struct {
	maker
	vault   *attach.Vault
	metrics *metrics.Clusters
}

// claim is what a Cluster object says.
func (o objectClusters) claim(object *config.Object) reconcile.Claim {
	c, err := kinds.OfObject(object)
	if err != nil {
		return reconcile.Refuse(c.ID, c.Spec(), err.Error())
	}
	k, err := o.Of(c.Provider)
	if err != nil {
		return reconcile.Refuse(c.ID, c.Spec(), err.Error())
	}
	version := attach.VersionOf(object)
	if k.NeedsCredentials && version == "" {
		return reconcile.Refuse(c.ID, c.Spec(), fmt.Sprintf("it has no credentials: isthmus cluster rotate %s --kubeconfig FILE gives it some", c.ID))
	}
	cluster, err := o.sealed(k, c, version)
	if err != nil {
		return reconcile.Refuse(c.ID, c.Spec(), err.Error())
	}
	return reconcile.Claim{Cluster: cluster}
}

// sealed is the cluster as the supervisor takes it: other credentials make
// another registry.
func (o objectClusters) sealed(k provider.Kind, c kinds.Cluster, version string) (registries.Cluster, error) {
	fingerprint, err := c.Fingerprint(cmp.Or(version, "none"))
	open := o.open(k, c)
	if version != "" {
		open = func(known federation.Identity) (registries.Registry, error) {
			return &storedRegistry{objectClusters: o, kind: k, config: c, version: version, known: known}, nil
		}
	}
	return registries.Cluster{ID: c.ID, Spec: c.Spec(), Identified: k.Identified, Fingerprint: fingerprint, Open: open}, err
}
