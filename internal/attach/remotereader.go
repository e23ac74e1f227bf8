package attach

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/kube"
	"isthmus.dev/isthmus/internal/kube/listwatch"
)

const remotePage = 100

// remoteLimits are what one cluster may name, whatever its API server answers (R06).
var remoteLimits = federation.Limits{Objects: 100 * remotePage, Pages: 100, Bytes: 128 << 20}

// remoteReader follows the Secrets of one cluster with one client.
type remoteReader struct {
	*Remotes
	holder  federation.ClusterID
	cluster *listwatch.Cluster
	turn    uint64
	known   map[listwatch.Key]remoteSecret // nil: never read

	complained bool // since all was well
}

// remoteSecret is what is kept of a Secret.
type remoteSecret struct {
	key  listwatch.Key
	data map[string]kube.Secret
}

func (f *remoteReader) run(ctx context.Context) {
	if !f.awaitIdentity(ctx) {
		return
	}
	r := listwatch.Of("secrets", f.cluster.Client().CoreV1().Secrets(f.o.Namespace), readRemote, remoteSecret.size)
	r.Labels, r.PageSize, r.Reconcile, r.Doubtful = RemoteLabel, remotePage, true, f.lacks
	listwatch.Keep(ctx, f.cluster, r, func(s remoteSecret) listwatch.Key { return s.key }, remoteLimits, f)
}

// awaitIdentity waits until it is known who the cluster is. A cluster that is attached
// under another ID, too, stays unknown and is not asked.
func (f *remoteReader) awaitIdentity(ctx context.Context) bool {
	for {
		s := f.o.Snapshots.Latest()
		if c, shown := s.Cluster(f.holder); shown && c.Identity.UID != "" {
			return true
		}
		select {
		case <-s.Superseded():
		case <-ctx.Done():
			return false
		}
	}
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
	for name, before := range f.known {
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
	f.known = all
	f.say()
}

// Following is part of listwatch.Keeper.
func (f *remoteReader) Following(err error) {
	if err == nil && f.complained {
		f.complained = false
		f.say() // what was told is over
	}
	d := kube.Diagnose(err)
	if why := f.reason(err, d); why != "" {
		f.complained = true
		f.complain(why, d.Trouble == kube.TroubleForbidden && !listwatch.Interrupted(err))
	}
}

// reason is the text of the error for users; empty for none.
func (f *remoteReader) reason(err error, d kube.Diagnosis) string {
	var other listwatch.ForeignError
	switch {
	case err == nil, errors.Is(err, listwatch.ErrRelist), listwatch.EndsAtOnce(err):
		return "" // what was read stays, and is read again
	case errors.As(err, &other):
		return "another cluster answers; its Secrets are not read"
	case listwatch.Endless(err):
		return "the list of Secrets has no end, or is larger than 128 MiB; nothing of it is used"
	case d.Trouble == kube.TroubleForbidden && !listwatch.Interrupted(err):
		return fmt.Sprintf("the hub may not read the Secrets that name clusters: grant it the verbs list and watch on secrets in the namespace %s, as deploy/kubernetes/remote-secrets.yaml does", f.o.Namespace)
	}
	return "the Secrets that name clusters cannot be read: " + d.Message
}
