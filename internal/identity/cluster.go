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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/retry"
)

// object is a Secret of a cluster.
type object struct {
	cluster         federation.ClusterID
	namespace, name string
}

// Gate proves that the cluster that answers is the one that is known; the
// cluster's registry does. Enter blocks until it is. What is read from then on
// counts if prove returns nil afterwards; a watch ends when lost is closed.
type Gate interface {
	Enter(ctx context.Context) (lost <-chan struct{}, prove func(context.Context) error, err error)
}

// attached is a client of a cluster, for as long as it is the latest.
type attached struct {
	client kubernetes.Interface
	gate   Gate
}

// Attach lets secrets of the cluster be read, by name and only those that are
// followed, until detach is called. A later client of the same cluster takes the
// place of an earlier one; what was read stays.
func (s *Secrets) Attach(cluster federation.ClusterID, client kubernetes.Interface, gate Gate) (detach func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	mine := &attached{client, gate}
	s.clients[cluster] = mine
	s.notify()
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.clients[cluster] == mine {
			delete(s.clients, cluster)
			s.notify()
		}
	}
}

// following is one object that is being read.
type following struct {
	by     *attached
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
		if s.wanted[o] == 0 || s.clients[o.cluster] != f.by {
			f.cancel()
			delete(running, o)
		}
	}
	for o := range s.wanted {
		by := s.clients[o.cluster]
		if _, reads := running[o]; reads || by == nil {
			continue
		}
		mine, cancel := context.WithCancel(ctx)
		running[o] = following{by, cancel}
		group.Go(func() { s.read(mine, o, by) })
	}
}

// forget drops what nobody wants any more: key material is not kept for later.
func (s *Secrets) forget(o object) {
	for _, ref := range o.refs() {
		s.shelf.put(ref, nil)
	}
	s.shelf.complain("source "+o.String(), nil)
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

// How long a reader waits after trouble: it doubles up to the limit.
const (
	firstPause = 250 * time.Millisecond
	maxPause   = 30 * time.Second
)

// read follows one object until the context ends. On trouble what was read stays.
func (s *Secrets) read(ctx context.Context, o object, by *attached) {
	pauses := retry.Backoff{First: firstPause, Longest: maxPause}
	for ctx.Err() == nil {
		began := time.Now()
		err := s.readOnce(ctx, o, by)
		if ctx.Err() != nil {
			return
		}
		if err != nil && !errors.Is(err, errUnproven) {
			s.options.Logger.Warn("a secret cannot be read; what was read before stays in use",
				slog.String("cluster", string(o.cluster)), slog.String("secret", o.namespace+"/"+o.name), slog.Any("err", err))
			s.complain(o, err)
		}
		pauses.Began(began)
		pauses.Wait(ctx)
	}
}

func (s *Secrets) complain(o object, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wanted[o] > 0 {
		s.shelf.complain("source "+o.String(), &federation.Problem{Code: ProblemSource, Object: "secret " + o.String(), Message: o.unreadable(err)})
	}
}

// unreadable says why the object cannot be read and what to do.
func (o object) unreadable(err error) string {
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Sprintf("the hub may not read it: grant it the verbs list and watch on secrets in the namespace %s, as deploy/kubernetes/secrets.yaml does (%v)", o.namespace, err)
	case apierrors.IsUnauthorized(err):
		return fmt.Sprintf("the cluster does not accept the hub's credentials: rotate them (%v)", err)
	}
	return fmt.Sprintf("it cannot be read: %v; it is tried again", err)
}

// errUnproven says that the cluster did not prove who it is after it was read: the
// registry's status says why.
var errUnproven = errors.New("the cluster did not prove who it is")

// readOnce lists and watches the object by name, once the cluster has proven who it
// is, and until it does no more (R08). It returns nil when the watch ended in the
// usual way.
func (s *Secrets) readOnce(ctx context.Context, o object, by *attached) error {
	lost, prove, err := by.gate.Enter(ctx)
	if err != nil {
		return err
	}
	named := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", o.name).String()}
	found, version, err := list(ctx, o, by.client, named)
	if err != nil {
		return err
	}
	if err := prove(ctx); err != nil {
		return errUnproven
	}
	s.take(o, found)
	named.ResourceVersion = version
	watcher, err := by.client.CoreV1().Secrets(o.namespace).Watch(ctx, named)
	if err != nil {
		return err
	}
	defer watcher.Stop()
	if err := prove(ctx); err != nil {
		return errUnproven
	}
	s.shelf.complain("source "+o.String(), nil)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-lost:
			return nil // listed again once it is proven again
		case event, more := <-watcher.ResultChan():
			if !more || event.Type == watch.Error {
				return nil // listed again
			}
			s.hear(o, event)
		}
	}
}

// list returns the object, nil if there is none, and the version of the list.
func list(ctx context.Context, o object, client kubernetes.Interface, named metav1.ListOptions) (*corev1.Secret, string, error) {
	all, err := client.CoreV1().Secrets(o.namespace).List(ctx, named)
	if err != nil {
		return nil, "", err
	}
	for i := range all.Items {
		if all.Items[i].Name == o.name {
			return &all.Items[i], all.ResourceVersion, nil
		}
	}
	return nil, all.ResourceVersion, nil
}

func (s *Secrets) hear(o object, event watch.Event) {
	secret, ok := event.Object.(*corev1.Secret)
	switch {
	case !ok || secret.Name != o.name:
	case event.Type == watch.Deleted:
		s.take(o, nil)
	case event.Type == watch.Added, event.Type == watch.Modified:
		s.take(o, secret)
	}
}

// take gives the shelf what the object holds; nil: there is none.
func (s *Secrets) take(o object, secret *corev1.Secret) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wanted[o] == 0 {
		return
	}
	var p parts
	if secret != nil {
		switch secret.Type {
		case corev1.SecretTypeTLS, corev1.SecretTypeOpaque, "":
			p = secret.Data
		default: // tokens and other people's secrets are not for gateways
			p = parts{}
		}
	}
	for _, ref := range o.refs() {
		if p.has(ref.Authorities) {
			s.shelf.put(ref, p)
		} else {
			s.shelf.put(ref, nil)
		}
	}
}
