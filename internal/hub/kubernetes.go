package hub

import (
	"context"

	clientset "k8s.io/client-go/kubernetes"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/attach"
	"isthmus.dev/isthmus/internal/kube"
	"isthmus.dev/isthmus/internal/kube/listwatch"
	"isthmus.dev/isthmus/registries/kubernetes"
)

// kubernetes makes registries of Kubernetes clusters.
func (s surroundings) kubernetes() kubernetes.Opener {
	look := attach.KubernetesOptions{Allow: s.host().Allow, AllowLoopback: s.policy.AllowLoopback}
	if s.who != nil {
		look.Trusted = s.who.trust
	}
	return kubernetes.Opener{Host: s.host(), Following: following{s}, LookAt: attach.LookAtKubernetes(look)}
}

// following is what else the hub reads of a Kubernetes cluster.
type following struct{ surroundings }

// Attach is part of kubernetes.Following.
func (f following) Attach(id federation.ClusterID, reviewer clientset.Interface, cluster *listwatch.Cluster, secrets bool) (detach func()) {
	done := f.who.attach(id, reviewer, cluster)
	if !secrets {
		return done
	}
	let := f.secrets.Attach(id, cluster)
	return func() { let(); done() }
}

// Follow is part of kubernetes.Following.
func (f following) Follow(ctx context.Context, id federation.ClusterID, cluster *listwatch.Cluster) {
	if f.remotes != nil && f.holders[id] {
		f.remotes.Follow(ctx, id, cluster)
	}
}

// Expires is part of kubernetes.Following.
func (f following) Expires(id federation.ClusterID, credentials *kube.Credentials) {
	f.metrics.Clusters.Expires(id, credentials.Expires)
}
