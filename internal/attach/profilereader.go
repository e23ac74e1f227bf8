package attach

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"

	"isthmus.dev/isthmus/internal/kube"
	"isthmus.dev/isthmus/internal/kube/clients"
	"isthmus.dev/isthmus/internal/kube/listwatch"
	"isthmus.dev/isthmus/internal/retry"
)

// profileGroup is that of ClusterProfiles, profileVersions those in which the hub reads
// them, the newest first (KEP-4322).
const profileGroup = "multicluster.x-k8s.io"

var profileVersions = []string{"v1alpha2", "v1alpha1"}

var (
	aboutProfiles = matter{"ClusterProfiles", "clusterprofiles." + profileGroup, "deploy/kubernetes/cluster-profiles.yaml"}
	aboutTokens   = matter{"Secrets with the tokens of ClusterProfiles", "secrets", "deploy/kubernetes/cluster-profiles.yaml"}
)

// NewProfiles reads ClusterProfiles, and the Secrets with their tokens.
func NewProfiles(o RemoteOptions, of ProfileOptions) *Remotes {
	return newRemotes(o, Profiles, func(ctx context.Context, v *clusterReader) {
		if v.cluster.Dynamic() != nil {
			(&profileReader{clusterReader: v, of: of}).run(ctx)
		}
	})
}

// profileToken is what is kept of a Secret in the namespace of ClusterProfiles.
type profileToken struct {
	key   listwatch.Key
	value kube.Secret
}

func readToken(in *corev1.Secret) profileToken {
	return profileToken{listwatch.Key{Namespace: in.Namespace, Name: in.Name}, kube.NewSecret(string(in.Data[TokenKey]))}
}

func (t profileToken) name() listwatch.Key { return t.key }
func (t profileToken) size() int64 {
	return int64(len(t.key.Namespace) + len(t.key.Name) + len(t.value.Reveal()))
}

// profileReader follows the ClusterProfiles of one cluster with one client.
type profileReader struct {
	*clusterReader
	of ProfileOptions

	mu       sync.Mutex
	profiles map[listwatch.Key]profile // nil: never read
	tokens   map[listwatch.Key]profileToken
}

// run reads until the context ends. It looks again in which version the cluster serves
// ClusterProfiles when it serves them no longer.
func (f *profileReader) run(ctx context.Context) {
	pauses := retry.Backoff{First: time.Second, Longest: 30 * time.Second}
	t := trouble{clusterReader: f.clusterReader, of: aboutProfiles}
	for ctx.Err() == nil {
		began := time.Now()
		at, err := f.discover(ctx)
		if ctx.Err() != nil {
			return
		}
		if t.take(err) {
			f.publishAll()
		}
		if err == nil {
			f.follow(ctx, at)
		}
		pauses.Began(began)
		pauses.Wait(ctx)
	}
}

// discover finds the version in which the cluster serves ClusterProfiles.
func (f *profileReader) discover(ctx context.Context) (at apischema.GroupVersionResource, err error) {
	at = apischema.GroupVersionResource{Group: profileGroup, Resource: "clusterprofiles"}
	err = f.cluster.Read(ctx, func(ctx context.Context, client clients.Interface) error {
		for _, version := range profileVersions {
			at.Version = version
			served, err := listwatch.Served(ctx, client, at.GroupVersion().String())
			if err != nil || slices.ContainsFunc(served, func(r metav1.APIResource) bool { return r.Name == at.Resource }) {
				return err
			}
		}
		return apierrors.NewNotFound(at.GroupResource(), "")
	})
	return at, err
}

// follow reads ClusterProfiles and Secrets until the cluster does not serve the former, or
// the context ends.
func (f *profileReader) follow(ctx context.Context, at apischema.GroupVersionResource) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var both sync.WaitGroup
	defer both.Wait()
	both.Go(func() {
		profiles := listwatch.Of(at.GroupResource().String(), f.cluster.Dynamic().Resource(at).Namespace(f.o.Namespace), f.of.read, profile.size)
		keep(ctx, f, profiles, part[profile]{
			key: profile.name, all: &f.profiles, gone: stop,
			trouble: trouble{clusterReader: f.clusterReader, of: aboutProfiles},
		})
	})
	both.Go(func() {
		tokens := listwatch.Of("secrets", f.cluster.Client().CoreV1().Secrets(f.o.Namespace), readToken, profileToken.size)
		keep(ctx, f, tokens, part[profileToken]{
			key: profileToken.name, all: &f.tokens, gone: func() {},
			trouble: trouble{clusterReader: f.clusterReader, of: aboutTokens},
		})
	})
}

// part is one of the resources that a profileReader joins.
type part[T any] struct {
	*profileReader
	key     func(T) listwatch.Key
	all     *map[listwatch.Key]T // of the reader; guarded by its mu
	gone    func()               // the cluster does not serve the resource
	trouble trouble
}

// keep reads one resource until the context ends.
func keep[T any](ctx context.Context, f *profileReader, r listwatch.Resource[T], p part[T]) {
	p.profileReader = f
	r.PageSize, r.Reconcile, r.Doubtful = remotePage, true, p.lacks
	listwatch.Keep(ctx, f.cluster, r, p.key, remoteLimits, &p)
}

// lacks reports whether an object of before is not in the list.
func (p *part[T]) lacks(list []T) bool {
	found := map[listwatch.Key]bool{}
	for _, value := range list {
		found[p.key(value)] = true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for key := range *p.all {
		if !found[key] {
			return true
		}
	}
	return false
}

// Now is part of listwatch.Keeper.
func (p *part[T]) Now(all map[listwatch.Key]T) {
	p.mu.Lock()
	*p.all = maps.Clone(all)
	p.mu.Unlock()
	p.publishAll()
}

// Following is part of listwatch.Keeper.
func (p *part[T]) Following(err error) {
	if p.trouble.take(err) {
		p.publishAll()
	}
	if apierrors.IsNotFound(err) {
		p.gone()
	}
}

// publishAll publishes what is named, once both resources were read.
func (f *profileReader) publishAll() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.profiles == nil || f.tokens == nil {
		return
	}
	var all []Remote
	for _, p := range f.profiles {
		all = append(all, f.of.remote(p, f.tokens))
	}
	f.publish(all)
}
