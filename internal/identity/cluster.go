package identity

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/kube/listwatch"
)

// object is a Secret of a cluster.
type object struct {
	cluster         federation.ClusterID
	namespace, name string
}

// Attach lets secrets of the cluster be read, by name and only those that are
// followed, until detach is called. A later client of the same cluster takes the
// place of an earlier one; what was read stays.
func (s *Secrets) Attach(id federation.ClusterID, cluster *listwatch.Cluster) (detach func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clusters[id] = cluster
	s.changed.Notify()
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.clusters[id] == cluster {
			delete(s.clusters, id)
			s.cache.detached(id)
			s.changed.Notify()
		}
	}
}

// following is one object that is being read.
type following struct {
	by     *listwatch.Cluster
	cancel context.CancelFunc
}

// Run reads the secrets of attached clusters, and renews the own certificates of
// proxies, until the context ends and then returns nil.
func (s *Secrets) Run(ctx context.Context) error {
	running := map[object]following{}
	var group sync.WaitGroup
	defer group.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	group.Go(func() { s.own.run(ctx) })
	for {
		s.adjust(ctx, running, &group)
		select {
		case <-s.changed:
		case <-ctx.Done():
			return nil
		}
	}
}

// adjust has exactly those objects read that are wanted and can be had.
func (s *Secrets) adjust(ctx context.Context, running map[object]following, group *sync.WaitGroup) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for o, f := range running {
		if s.wanted[o] == 0 || s.clusters[o.cluster] != f.by {
			f.cancel()
			delete(running, o)
		}
	}
	for o := range s.wanted {
		by := s.clusters[o.cluster]
		if _, reads := running[o]; reads || by == nil {
			continue
		}
		mine, cancel := context.WithCancel(ctx)
		running[o] = following{by, cancel}
		group.Go(func() { s.read(mine, o, by) })
	}
}

// objects are those of the cluster that may hold what is meant.
func (r Ref) objects() (all []object) {
	if r.Cluster == "" || r.Namespace == "" {
		return nil // may have files only
	}
	for _, name := range r.names() {
		all = append(all, object{r.Cluster, r.Namespace, name})
	}
	return all
}

// forget drops what no client wants any more: key material is not kept for later.
func (s *Secrets) forget(o object) {
	for _, ref := range o.refs() {
		s.cache.set(ref, nil)
	}
	s.cache.complain("source "+o.String(), nil)
	s.cache.answered(o)
}

func (o object) String() string { return string(o.cluster) + "/" + o.namespace + "/" + o.name }

// refs are what the object may hold.
func (o object) refs() []Ref {
	refs := refsOf(o.namespace + "/" + o.name)
	for i := range refs {
		refs[i].Cluster = o.cluster
	}
	return refs
}

// watched is how long a watch lasts at most. Then the object is listed again.
const watched = 30 * time.Minute

// secretLimits are what a server may answer that is asked for one object.
var secretLimits = federation.Limits{Objects: 10, Pages: 10, Bytes: 16 << 20}

// secret is what is kept of a Secret.
type secret struct {
	key   listwatch.Key
	parts parts
}

// read follows one object until the context ends: it is listed and watched by name, once
// the cluster has proven who it is, and until it does no more (R08). On trouble what was
// read stays.
func (s *Secrets) read(ctx context.Context, o object, by *listwatch.Cluster) {
	r := listwatch.Of("secrets", by.Client().CoreV1().Secrets(o.namespace), readSecret, secret.size)
	r.Fields, r.Renew, r.Reconcile = listwatch.Named(o.name), watched, true
	listwatch.Keep(ctx, by, r, func(s secret) listwatch.Key { return s.key }, secretLimits, reading{s, o})
}

func readSecret(in *corev1.Secret) secret {
	s := secret{key: listwatch.Key{Namespace: in.Namespace, Name: in.Name}}
	switch in.Type {
	case corev1.SecretTypeTLS, corev1.SecretTypeOpaque, "":
		s.parts = in.Data
	default: // tokens and other people's secrets are not for gateways
	}
	return s
}

func (s secret) size() (n int64) {
	for name, content := range s.parts {
		n += int64(len(name) + len(content))
	}
	return n
}

// reading is an object on its way to the cache.
type reading struct {
	*Secrets
	of object
}

// Now is part of listwatch.Keeper.
func (r reading) Now(all map[listwatch.Key]secret) {
	r.take(r.of, all[listwatch.Key{Namespace: r.of.namespace, Name: r.of.name}].parts)
}

// Following is part of listwatch.Keeper.
func (r reading) Following(err error) {
	if listwatch.Interrupted(err) {
		return // the status of the cluster says why
	}
	defer r.cache.answered(r.of)
	if err == nil {
		r.cache.complain("source "+r.of.String(), nil)
		return
	}
	r.options.Logger.Warn("a secret cannot be read; what was read before stays in use",
		slog.String("cluster", string(r.of.cluster)), slog.String("secret", r.of.namespace+"/"+r.of.name), slog.Any("err", err))
	r.complain(r.of, err)
}

func (s *Secrets) complain(o object, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wanted[o] > 0 {
		s.cache.complain("source "+o.String(), &federation.Problem{
			Code: ProblemSource, Object: "secret " + o.String(),
			Message: o.unreadable(err),
		})
	}
}

// unreadable says why the object cannot be read and what to do.
func (o object) unreadable(err error) string {
	if access := (listwatch.AccessError{}); errors.As(err, &access) {
		err = access.Err
	}
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Sprintf("the hub may not read it: grant it the verbs list and watch on secrets in the namespace %s, as deploy/kubernetes/secrets.yaml does (%v)", o.namespace, err)
	case apierrors.IsUnauthorized(err):
		return fmt.Sprintf("the cluster does not accept the hub's credentials: rotate them (%v)", err)
	}
	return fmt.Sprintf("it cannot be read: %v; the hub retries", err)
}

// take gives the cache what the object holds; nil: there is nothing.
func (s *Secrets) take(o object, p parts) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wanted[o] == 0 {
		return
	}
	for _, ref := range o.refs() {
		if p.has(ref.Authorities) {
			s.cache.set(ref, p)
		} else {
			s.cache.set(ref, nil)
		}
	}
}
