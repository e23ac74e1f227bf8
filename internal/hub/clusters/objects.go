package clusters

import (
	"cmp"
	"context"
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
	credentials *attach.CredentialStore
	metrics     *metrics.Clusters
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
		return reconcile.Refuse(c.ID, c.Spec(),
			fmt.Sprintf("it has no credentials: isthmus cluster rotate %s --kubeconfig FILE gives it some", c.ID))
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
		open = o.record(k, c, version).opener(c.ID, o.Logger)
	}
	return registries.Cluster{ID: c.ID, Spec: c.Spec(), Identified: k.Identified, Fingerprint: fingerprint, Open: open}, err
}

// record is that of a cluster with kept credentials, which have who it is beside them.
// Those of an earlier version of the hub, or after an operator confirmed another cluster,
// have not.
func (o objectClusters) record(k provider.Kind, c kinds.Cluster, version string) record {
	r := record{
		read: func(ctx context.Context) (string, opener, error) {
			credentials, err := o.credentials.Open(ctx, c.ID, version)
			return credentials.UID, func(known federation.ClusterIdentity) (registries.Registry, error) {
				of := o.cluster(c, known)
				of.Kept = &credentials
				return k.Open(of)
			}, err
		},
		unread: func(err error) string {
			o.metrics.Unusable(c.ID)
			return fmt.Sprintf("%v; or give it others: isthmus cluster rotate %s", err, c.ID)
		},
	}
	if k.Identified {
		r.learn = func(ctx context.Context, uid string) error { return o.credentials.Learn(ctx, c.ID, uid) }
	}
	return r
}
