package attach

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/kube"
	"isthmus.dev/isthmus/internal/kube/listwatch"
)

// RemoteLabel marks the Secrets that name clusters, as Istio has them.
const RemoteLabel = "istio/multiCluster=true"

const remotePage = 100

// remoteLimits are what one cluster may name, whatever its API server answers (R06).
var remoteLimits = federation.Limits{Objects: 100 * remotePage, Pages: 100, Bytes: 128 << 20}

// NewRemotes reads Istio's remote secrets.
func NewRemotes(o RemoteOptions) *Remotes {
	return newRemotes(o, Secrets, func(ctx context.Context, v *clusterReader) { (&remoteReader{clusterReader: v}).run(ctx) })
}

// remoteReader follows the Secrets of one cluster with one client.
type remoteReader struct {
	*clusterReader
	secrets map[listwatch.Key]remoteSecret // nil: never read
	trouble trouble
}

// remoteSecret is what is kept of a Secret.
type remoteSecret struct {
	key  listwatch.Key
	data map[string]kube.Secret
}

func (f *remoteReader) run(ctx context.Context) {
	f.trouble = trouble{clusterReader: f.clusterReader, of: matter{
		"Secrets that name clusters", "secrets", "deploy/kubernetes/remote-secrets.yaml",
	}}
	r := listwatch.Of("secrets", f.cluster.Client().CoreV1().Secrets(f.o.Namespace), readRemote, remoteSecret.size)
	r.Labels, r.PageSize = RemoteLabel, remotePage
	r.Reconcile, r.Doubtful = true, f.lacks
	listwatch.Keep(ctx, f.cluster, r, remoteSecret.name, remoteLimits, f)
}

func (s remoteSecret) name() listwatch.Key { return s.key }

// named are the clusters that the Secrets name.
func (f *remoteReader) named() (all []Remote) {
	for name, s := range f.secrets {
		for key, value := range s.data {
			all = append(all, Remote{Object: name.String(), Key: key, Kubeconfig: value})
		}
	}
	return all
}

func readRemote(in *corev1.Secret) remoteSecret {
	s := remoteSecret{key: listwatch.Key{Namespace: in.Namespace, Name: in.Name}, data: make(map[string]kube.Secret, len(in.Data))}
	for key, value := range in.Data {
		s.data[key] = kube.NewSecret(string(value))
	}
	return s
}

func (s remoteSecret) size() int64 {
	n := len(s.key.Namespace) + len(s.key.Name)
	for key, value := range s.data {
		n += len(key) + len(value.Reveal())
	}
	return int64(n)
}

// lacks reports whether a Secret of before, or an ID in it, is not in the list.
func (f *remoteReader) lacks(list []remoteSecret) bool {
	found := map[listwatch.Key]remoteSecret{}
	for _, s := range list {
		found[s.key] = s
	}
	for name, before := range f.secrets {
		for key := range before.data {
			if _, there := found[name].data[key]; !there {
				return true
			}
		}
	}
	return false
}

// Now is part of listwatch.Keeper.
func (f *remoteReader) Now(all map[listwatch.Key]remoteSecret) {
	f.secrets = all
	f.publish(f.named())
}

// Following is part of listwatch.Keeper.
func (f *remoteReader) Following(err error) {
	if f.trouble.take(err) {
		f.publish(f.named())
	}
}
