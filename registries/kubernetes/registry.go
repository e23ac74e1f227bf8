// Package kubernetes is the registry of one Kubernetes cluster: it follows the
// API server and says, in the federation's values, what the cluster offers.
// What an object says itself (parse…) and how objects are joined (join) are
// pure functions; model keeps their results; internal/kube/listwatch speaks to the
// server.
package kubernetes

import (
	"cmp"
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/flowcontrol"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/kube/clients"
	"isthmus.dev/isthmus/internal/kube/listwatch"
)

const usualReconcile = 5 * time.Minute

// Sink gets what the registry reports. Update returns after its version is
// published.
type Sink interface {
	Update(federation.Edit)
	Status(federation.RegistryStatus)
}

// Options say which cluster to follow and how. Client and Cluster are required.
type Options struct {
	Cluster      federation.ClusterID
	Network      federation.NetworkID // "": kube-system's label, else the default network
	DomainSuffix string               // "": cluster.local
	Client       clients.Interface    // its rate limit must leave room for a request every few seconds
	Dynamic      dynamic.Interface    // of the same cluster, for others that read it; nil: they read no custom resources
	Expect       string               // UID of kube-system when the cluster was attached; "": not known yet
	Explain      func(error) string   // says an error for people, without secrets; nil: its own text
	PageSize     int64                // of lists; 0: 500
	Canary       time.Duration        // between two reads of kube-system, and their time limit; 0: 5 s
	// Reconcile is how often everything is listed again, to find events that
	// never came; 0: 5 min, negative: never. Lists that bring nothing new say
	// nothing.
	Reconcile time.Duration
	Limits    federation.Limits      // of what the cluster may have; zero: the defaults
	Used      func(federation.Usage) // called with the usage; it must not block; nil: not called
	Logger    *slog.Logger           // nil: the default logger

	poison func(subject) // tests make the handling of an object panic; nil: no test
}

// Registry follows one cluster. It is made by New and used for one Run.
type Registry struct {
	options Options
	cluster *listwatch.Cluster
	budget  *listwatch.Budget
	shares  [kinds]*listwatch.Share
	tries   flowcontrol.RateLimiter
	log     *slog.Logger

	lastEvent, lastSync atomic.Int64 // nanoseconds since 1970; 0 is never
}

// New makes a registry that does nothing before Run.
func New(o Options) *Registry {
	o.DomainSuffix = cmp.Or(o.DomainSuffix, "cluster.local")
	o.Reconcile = cmp.Or(o.Reconcile, usualReconcile)
	if o.Explain == nil {
		o.Explain = error.Error
	}
	log := cmp.Or(o.Logger, slog.Default()).With("cluster", string(o.Cluster), "provider", string(federation.Kubernetes))
	r := &Registry{
		options: o, log: log,
		cluster: listwatch.NewCluster(o.Client, listwatch.ClusterOptions{UID: o.Expect, Probe: o.Canary, Logger: log, Dynamic: o.Dynamic}),
		budget:  listwatch.NewBudget(o.Limits, o.Used),
		tries:   flowcontrol.NewTokenBucketRateLimiter(1, 2*int(kinds)), // F42
	}
	for k := range r.shares {
		r.shares[k] = r.budget.Share()
	}
	return r
}

// Cluster is for others that read the cluster while Run does: what they read is proven as
// what the registry reads.
func (r *Registry) Cluster() *listwatch.Cluster { return r.cluster }

// Run follows the cluster until the context ends, and then returns nil: there
// is never trouble that no retry can heal, so trouble is reported by Status. The
// first Update is full. Update and Status are called by one goroutine. A panic of
// any of its goroutines is one of Run.
func (r *Registry) Run(ctx context.Context, to Sink) error {
	ctx, cancel := context.WithCancel(ctx)
	all := &workerGroup{stop: cancel}
	defer all.end()
	events := make(chan event, 256)
	say := func(ctx context.Context, e event) bool {
		select {
		case <-ctx.Done():
			return false
		case events <- e:
			return true
		}
	}
	all.start(func() {
		r.cluster.Run(ctx, func(uid string, trouble error) { say(ctx, probed{uid: uid, err: trouble}) })
	})
	for _, res := range resources(r.options.Client, r.options.DomainSuffix) {
		res.Read, res.Tries, res.PageSize = r.poisoned(res.kind, res.Read), r.tries, r.options.PageSize
		res.Renew, res.Reconcile = r.options.Reconcile, r.options.Reconcile > 0
		if !res.Reconcile {
			res.Renew = 2 * usualReconcile
		}
		all.start(func() {
			listwatch.Follow(ctx, r.cluster, res.Resource, r.shares[res.kind], changes{kind: res.kind, say: say})
		})
	}
	newFollower(r, to).run(ctx, events)
	return nil
}

func (r *Registry) newModel() *model {
	m := newModel(r.options.Network)
	m.log = r.log
	return m
}

// poisoned is the reading of objects with what a test adds to it.
func (r *Registry) poisoned(k kind, read func(runtime.Object) (object, bool)) func(runtime.Object) (object, bool) {
	if r.options.poison == nil {
		return read
	}
	return func(in runtime.Object) (object, bool) {
		if about, err := meta.Accessor(in); err == nil {
			r.options.poison(subject{k, key{Namespace: about.GetNamespace(), Name: about.GetName()}})
		}
		return read(in)
	}
}

// Relist reads every list again; a full edit follows even if nothing changed.
// It is how a suspicious list is asked for a second time.
func (r *Registry) Relist() { r.cluster.Relist() }

// Activity returns when the last event came and when the registry last knew
// that it had seen everything; zero times are never.
func (r *Registry) Activity() (lastEvent, lastSync time.Time) {
	at := func(n *atomic.Int64) time.Time {
		if v := n.Load(); v != 0 {
			return time.Unix(0, v)
		}
		return time.Time{}
	}
	return at(&r.lastEvent), at(&r.lastSync)
}
