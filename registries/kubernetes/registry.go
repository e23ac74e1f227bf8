// Package kubernetes is the registry of one Kubernetes cluster: it follows the
// API server and says, in the federation's values, what the cluster offers.
// What an object says itself (parse…) and how objects are joined (join) are
// pure functions; model keeps their results; reflector and gate speak to the
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
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/flowcontrol"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/retry"
)

const usualReconcile = 5 * time.Minute

// Sink hears what the registry says. Update returns after its version is
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
	Client       clientset.Interface  // its rate limit must leave room for a request every few seconds
	Expect       string               // UID of kube-system when the cluster was attached; "": not known yet
	Explain      func(error) string   // says an error for people, without secrets; nil: its own text
	PageSize     int64                // of lists; 0: 500
	Canary       time.Duration        // between two reads of kube-system, and their time limit; 0: 5 s
	// Reconcile is how often everything is listed again, to find events that
	// never came; 0: 5 min, negative: never. Lists that bring nothing new say
	// nothing.
	Reconcile time.Duration
	Limits    federation.Limits      // of what the cluster may have; zero: the defaults
	Used      func(federation.Usage) // is told what is kept; it must not block; nil: nobody
	Logger    *slog.Logger           // nil: the default logger

	poison func(subject) // tests make the handling of an object panic; nil: no test
}

// Registry follows one cluster. It is made by New and used for one Run.
type Registry struct {
	options Options
	gate    *gate
	budget  *budget
	tries   flowcontrol.RateLimiter
	log     *slog.Logger

	lastEvent, lastSync atomic.Int64 // nanoseconds since 1970; 0 is never
}

// New makes a registry that does nothing before Run.
func New(o Options) *Registry {
	o.DomainSuffix = cmp.Or(o.DomainSuffix, "cluster.local")
	o.PageSize = cmp.Or(o.PageSize, 500)
	o.Canary = cmp.Or(o.Canary, 5*time.Second)
	o.Reconcile = cmp.Or(o.Reconcile, usualReconcile)
	if o.Explain == nil {
		o.Explain = error.Error
	}
	if o.Used == nil {
		o.Used = func(federation.Usage) {}
	}
	log := cmp.Or(o.Logger, slog.Default()).With("cluster", string(o.Cluster), "provider", string(federation.Kubernetes))
	return &Registry{
		options: o, log: log,
		gate:   newGate(o.Client, o.Expect, o.Canary),
		budget: newBudget(o.Limits, o.Used),
		tries:  flowcontrol.NewTokenBucketRateLimiter(1, 2*int(kinds)), // F42
	}
}

// Run follows the cluster until the context ends, and then returns nil: there
// is no trouble that a retry may not heal, so trouble is said by Status. The
// first Update is full. Update and Status are called by one goroutine. A panic of
// any of its goroutines is one of Run.
func (r *Registry) Run(ctx context.Context, to Sink) error {
	ctx, cancel := context.WithCancel(ctx)
	all := &crew{stop: cancel}
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
		r.gate.run(ctx, func(uid string, trouble error) { say(ctx, probed{uid: uid, err: trouble}) })
	})
	for _, res := range resources(r.options.Client, r.options.DomainSuffix) {
		res.read = contained(res.kind, r.poisoned(res.kind, res.read))
		f := &reflector{
			resource: res, log: r.log, gate: r.gate, budget: r.budget, tries: r.tries, page: r.options.PageSize, say: say,
			renew: r.options.Reconcile, check: r.options.Reconcile > 0,
			pauses: retry.Backoff{First: time.Second, Longest: longestPause},
		}
		if !f.check {
			f.renew = 2 * usualReconcile
		}
		all.start(func() { f.run(ctx) })
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
func (r *Registry) poisoned(k kind, read func(runtime.Object) object) func(runtime.Object) object {
	if r.options.poison == nil {
		return read
	}
	return func(in runtime.Object) object {
		if about, err := meta.Accessor(in); err == nil {
			r.options.poison(subject{k, key{Namespace: about.GetNamespace(), Name: about.GetName()}})
		}
		return read(in)
	}
}

// Relist reads every list again; a full edit follows even if nothing changed.
// It is how a suspicious list is asked for a second time.
func (r *Registry) Relist() { r.gate.relist() }

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
