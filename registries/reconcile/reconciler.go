package reconcile

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/attach"
	"isthmus.dev/isthmus/internal/kube"
	"isthmus.dev/isthmus/internal/wake"
	"isthmus.dev/isthmus/registries"
)

// Metrics counts what objects of clusters name; metrics.Clusters does.
type Metrics interface {
	// Remotes is how many clusters the objects of the kind name; less than 0: they name
	// none any more.
	Remotes(holder federation.ClusterID, kind string, n int)
	RemotesUnreadable(holder federation.ClusterID, kind string)
}

// Options are what a Reconciler works with.
type Options struct {
	Hub       federation.ClusterID
	Snapshots interface{ Latest() *federation.Snapshot }
	// Attached is closed once every cluster of the start was attached.
	Attached chan<- struct{}
	// Holders may name further clusters, by objects in the namespace of the holder.
	Holders    map[Holder]bool
	Namespaces map[attach.RemoteKind]string
	// Remote makes a cluster of a kubeconfig that an object has; Rules are those by which
	// it is read.
	Remote  func(federation.ClusterID, *kube.Credentials) registries.Cluster
	Rules   kube.ParseOptions
	Metrics Metrics
	Logger  *slog.Logger
}

// Reconciler keeps the registries in step with what the sources say. Sources post
// changes from goroutines of their own; nothing else attaches clusters.
type Reconciler struct {
	o    Options
	to   Registries
	in   Inputs // of the goroutine that runs
	plan atomic.Pointer[Plan]
	wake wake.Signal

	keep []string // owners whose saved states were not compared yet with what is attached
	open bool     // Attached is not closed yet

	mu     sync.Mutex
	posted []posted
}

type posted struct {
	change func(*Inputs)
	done   chan struct{}
}

// New makes a Reconciler, which Start and then Run set going. Sources may post to it
// from the beginning.
func New(o Options) *Reconciler {
	r := &Reconciler{o: o, wake: wake.New(), open: true}
	r.in = Inputs{
		Hub: o.Hub, Namespaces: o.Namespaces, Folder: map[federation.ClusterID]Claim{},
		Objects: map[federation.ClusterID]Claim{}, Remotes: map[Holder]Remotes{},
	}
	r.plan.Store(Wanted(r.in))
	return r
}

// Start is what is known before anything is followed.
type Start struct {
	Config []Claim // in the order of the file
	Sample []Claim // attached where there is no Cluster object
	Folder bool    // a folder will be followed
}

// Start attaches the clusters of the config file, and shows those that other clusters named
// before the start.
func (r *Reconciler) Start(to Registries, first Start) error {
	r.to = to
	r.in.Config, r.in.Sample = first.Config, first.Sample
	r.in.FolderLooked, r.in.FolderRead = !first.Folder, !first.Folder
	r.keep = []string{objectSource().Owner}
	if first.Folder {
		r.keep = append(r.keep, folderSource().Owner)
	}
	if len(first.Sample) == 0 {
		r.keep = append(r.keep, configSource().Owner)
	}
	for _, d := range r.in.duplicates() {
		r.o.Logger.Warn("a cluster is skipped: its ID is taken", "cluster", d.id, "field", d.field, "holder", d.holder)
	}
	saved, err := to.Saved()
	if err != nil {
		return fmt.Errorf("looking for saved states: %w", err)
	}
	for _, s := range saved {
		h, named := holderOf(s.Owner)
		if named && s.Shard.Provider.HasObjects() && r.o.Holders[h] {
			of := r.in.Remotes[h]
			of.Waiting = append(of.Waiting, s.Shard.Cluster)
			r.in.Remotes[h] = of
		}
	}
	r.carryOut(nil)
	return nil
}

// Run follows what the sources post until the context ends.
func (r *Reconciler) Run(ctx context.Context) error {
	for {
		if all := r.take(); len(all) > 0 {
			r.carryOut(all)
		}
		s := r.o.Snapshots.Latest()
		if r.open && r.complete(s) {
			r.open = false
			close(r.o.Attached)
		}
		published := s.Superseded()
		if !r.open {
			published = nil // only whether the start is complete depends on it
		}
		select {
		case <-r.wake:
		case <-published:
		case <-ctx.Done():
			return nil
		}
	}
}

// Latest is the plan that was carried out last.
func (r *Reconciler) Latest() *Plan { return r.plan.Load() }

// post has the Reconciler apply a change. What it returns is closed once that was
// carried out.
func (r *Reconciler) post(change func(*Inputs)) <-chan struct{} {
	done := make(chan struct{})
	r.mu.Lock()
	r.posted = append(r.posted, posted{change, done})
	r.mu.Unlock()
	r.wake.Notify()
	return done
}

func (r *Reconciler) take() []posted {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.posted
	r.posted = nil
	return all
}

// carryOut applies what was posted, and does what follows from it.
func (r *Reconciler) carryOut(all []posted) {
	before := r.plan.Load()
	for _, p := range all {
		p.change(&r.in)
	}
	next := Wanted(r.in)
	for _, h := range next.ended {
		r.end(h)
	}
	next.apply(before, r.to)
	r.plan.Store(next)
	close(before.superseded)
	r.forget()
	for _, p := range all {
		close(p.done)
	}
}

// end lets go of what a holder named.
func (r *Reconciler) end(h Holder) {
	entries, _ := r.in.entries(h)
	for _, e := range entries {
		r.o.Logger.Info("detaching a cluster: the cluster whose object names it is detached", "cluster", e.Claim.ID,
			"holder", h.Cluster, "kind", remoteKinds[h.By].noun)
	}
	delete(r.in.Remotes, h)
	r.o.Metrics.Remotes(h.Cluster, remoteKinds[h.By].noun, -1)
}

// forget removes once, for each source that was read, the saved states of clusters
// that it names no more: they were detached while no hub ran.
func (r *Reconciler) forget() {
	read := map[string]bool{configSource().Owner: true, folderSource().Owner: r.in.FolderRead, objectSource().Owner: r.in.ObjectsLooked}
	r.keep = slices.DeleteFunc(r.keep, func(owner string) bool {
		if read[owner] {
			r.to.Forget(owner)
		}
		return read[owner]
	})
}

// complete reports whether all clusters of the start are attached: the sources of
// operators were looked at, and so were the holders of every cluster that answers.
func (r *Reconciler) complete(s *federation.Snapshot) bool {
	if !r.in.started() {
		return false
	}
	operators := r.in.operators()
	for h := range r.o.Holders {
		c, shown := s.Cluster(h.Cluster)
		if !shown || !c.Spec.Provider.HasObjects() || !operators[h.Cluster] {
			continue
		}
		answers := c.Status.Phase == federation.Pending || c.Status.Phase == federation.Syncing || c.Status.Phase == federation.Ready
		if answers && !r.in.Remotes[h].Asked {
			return false
		}
	}
	return true
}
