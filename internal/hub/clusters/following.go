package clusters

import (
	"context"
	"sync"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/attach"
	"isthmus.dev/isthmus/internal/identity/rootmap"
	"isthmus.dev/isthmus/internal/kube"
	"isthmus.dev/isthmus/internal/kube/clients"
	"isthmus.dev/isthmus/internal/kube/listwatch"
	"isthmus.dev/isthmus/internal/serviceimport"
	"isthmus.dev/isthmus/registries/reconcile"
)

// following is what else the hub reads of a Kubernetes cluster.
type following struct {
	Options
	remotes map[attach.RemoteKind]*attach.Remotes // none: its objects name no clusters
}

// Attach is part of kubernetes.Following.
func (f following) Attach(id federation.ClusterID, reviewer clients.Interface, cluster *listwatch.Cluster, secrets bool) (detach func()) {
	done := f.Identities.Attach(id, reviewer, cluster)
	if !secrets {
		return done
	}
	let := f.Secrets.Attach(id, cluster)
	return func() { let(); done() }
}

// Follow is part of kubernetes.Following.
func (f following) Follow(ctx context.Context, id federation.ClusterID, cluster *listwatch.Cluster) {
	var all sync.WaitGroup
	for _, source := range f.Sources {
		all.Go(func() { source.Follow(ctx, id, cluster) })
	}
	for by, remotes := range f.remotes {
		if f.Settings.Remotes.Holders[reconcile.Holder{Cluster: id, By: by}] {
			all.Go(func() { remotes.Follow(ctx, id, cluster) })
		}
	}
	all.Wait()
}

// WriteRoots is part of kubernetes.Following.
func (f following) WriteRoots(ctx context.Context, id federation.ClusterID, cluster *listwatch.Cluster, overwrite bool) {
	rootmap.New(rootmap.Options{
		Roots: f.Identities.Trust, TrustDomain: f.Settings.Identity.TrustDomain, Metrics: f.Metrics.Clusters, Logger: f.Logger,
	}).Follow(ctx, id, cluster, overwrite)
}

// WriteImports is part of kubernetes.Following.
func (f following) WriteImports(ctx context.Context, id federation.ClusterID, cluster *listwatch.Cluster) {
	serviceimport.New(serviceimport.Options{
		Snapshots: f.Snapshots, Ready: f.Ready(), Leader: f.Leader, Meter: f.Metrics.Clusters, Logger: f.Logger,
	}).Follow(ctx, id, cluster)
}

// Expires is part of kubernetes.Following.
func (f following) Expires(id federation.ClusterID, credentials *kube.Credentials) {
	f.Metrics.Clusters.Expires(id, credentials.Expires)
}
