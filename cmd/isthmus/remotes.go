package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/attach"
	"isthmus.dev/isthmus/internal/kube"
	"isthmus.dev/isthmus/registries"
)

// remoteClusters attaches the clusters that Secrets of attached clusters name
// (ADR 0025). Only what operators attached is asked for such Secrets.
type remoteClusters struct {
	with      surroundings // of the clusters that are named: they name none themselves
	hub       federation.ClusterID
	namespace string
	holders   map[federation.ClusterID]bool // whose Secrets are read
	snapshots *federation.Aggregate
	looked    chan struct{} // closed once all that are there at the start were asked
	wake      chan struct{}
	certain   atomic.Bool // the places where operators name clusters could all be read

	sources  clusterSources
	starting <-chan struct{} // closed once all that operators attach is known
	mu       sync.Mutex
	of       map[federation.ClusterID]*holding
}

// holding is what is known of the Secrets of one cluster.
type holding struct {
	asked   bool
	claims  map[remoteKey]remoteClaim
	waiting map[federation.ClusterID]*registries.Source // known from before the start, until the Secrets are read
	told    map[string]bool                             // problems that are shown
}

// remoteKey is one entry of one Secret.
type remoteKey struct{ secret, key string }

type remoteClaim struct {
	by     *registries.Source
	id     federation.ClusterID
	digest string
}

func newRemoteClusters(s settings, with surroundings, snapshots *federation.Aggregate) *remoteClusters {
	return &remoteClusters{
		with: with, hub: federation.ClusterID(s.clusterID), namespace: s.remoteNamespace, holders: s.remoteHolders, snapshots: snapshots,
		looked: make(chan struct{}), wake: make(chan struct{}, 1), of: map[federation.ClusterID]*holding{},
	}
}

// holders are the clusters whose Secrets may name further clusters. Whoever may write
// Secrets there attaches clusters, so that an operator names them one by one.
func (c remoteSecretsConfig) holders() (map[federation.ClusterID]bool, error) {
	holders := map[federation.ClusterID]bool{}
	for i, id := range c.Clusters {
		if err := kube.ValidateClusterID(string(id)); err != nil {
			return nil, fmt.Errorf("remoteSecrets.clusters[%d]: %q: %w", i, id, err)
		}
		holders[id] = true
	}
	return holders, nil
}

// reader reads the Secrets; nil where none are read.
func (r *remoteClusters) reader() *attach.Remotes {
	if len(r.holders) == 0 {
		return nil
	}
	return attach.NewRemotes(attach.RemoteOptions{Namespace: r.namespace, Snapshots: r.snapshots, To: r, Logger: r.with.logger})
}

// remoteOwner begins the owner of clusters that Secrets name; the ID of the cluster
// with the Secrets follows.
const remoteOwner = "Secrets of "

// join takes the sources. What was known of clusters that Secrets named is kept
// until the Secrets can be read.
func (r *remoteClusters) join(sources clusterSources, starting <-chan struct{}) error {
	r.sources, r.starting = sources, starting
	saved, err := sources.supervisor.Saved()
	if err != nil {
		return fmt.Errorf("looking for saved states: %w", err)
	}
	for _, s := range saved {
		holder, named := strings.CutPrefix(s.Owner, remoteOwner)
		if !named || s.Shard.Provider != federation.Kubernetes || !r.holders[federation.ClusterID(holder)] {
			continue
		}
		by := sources.claims.Yielding(remoteRank, "the Secrets of cluster "+holder+", which were not read yet", s.Owner)
		r.holding(federation.ClusterID(holder)).waiting[s.Shard.Cluster] = by
		by.Attach(registries.Cluster{
			ID: s.Shard.Cluster, Spec: federation.ClusterSpec{Provider: federation.Kubernetes}, Fingerprint: "not read yet",
			Open: func(federation.Identity) (registries.Registry, error) { return awaiting{holder}, nil },
		})
	}
	return nil
}

// awaiting stands for a cluster whose credentials are in Secrets that were not read
// yet.
type awaiting struct{ holder string }

// Run is part of registries.Registry.
func (a awaiting) Run(ctx context.Context, to registries.Sink) error {
	to.Status(federation.RegistryStatus{Phase: federation.Stale, Message: fmt.Sprintf("its credentials are in a Secret of cluster %s, whose Secrets were not read yet", a.holder)})
	<-ctx.Done()
	return nil
}

func (r *remoteClusters) holding(holder federation.ClusterID) *holding {
	h := r.of[holder]
	if h == nil {
		h = &holding{claims: map[remoteKey]remoteClaim{}, waiting: map[federation.ClusterID]*registries.Source{}, told: map[string]bool{}}
		r.of[holder] = h
	}
	return h
}

// run detaches what Secrets named of clusters that are detached themselves, until
// the context ends.
func (r *remoteClusters) run(ctx context.Context) error {
	select {
	case <-r.starting:
	case <-ctx.Done():
		return nil
	}
	for open := true; ; {
		s := r.snapshots.Latest()
		r.drop(s)
		if open && r.allAsked(s) {
			open = false
			close(r.looked)
		}
		select {
		case <-s.Superseded():
		case <-r.wake:
		case <-ctx.Done():
			return nil
		}
	}
}

// know notes that a cluster that is not attached now is none.
func (r *remoteClusters) know() {
	r.certain.Store(true)
	r.look()
}

// ask notes that the Secrets of a cluster were asked for. The caller holds mu.
func (r *remoteClusters) ask(h *holding) {
	if !h.asked {
		h.asked = true
		r.look()
	}
}

// look has run look again.
func (r *remoteClusters) look() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// drop takes back what clusters named that no operator has attached any more.
func (r *remoteClusters) drop(s *federation.Snapshot) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for holder, h := range r.of {
		_, attached := s.Cluster(holder)
		if attached && !r.remote(holder) || len(h.waiting) > 0 && !r.certain.Load() {
			continue
		}
		for _, c := range h.claims {
			r.with.logger.Info("detaching a cluster: the cluster whose Secret names it is detached", "cluster", c.id, "holder", holder)
			c.by.Detach(c.id)
		}
		h.read()
		delete(r.of, holder)
		r.with.metrics.Clusters.Remotes(holder, -1)
	}
}

// read lets go of what was only waited for.
func (h *holding) read() {
	for id, by := range h.waiting {
		by.Detach(id)
	}
	clear(h.waiting)
}

// allAsked tells whether the Secrets of every cluster that can be asked were.
func (r *remoteClusters) allAsked(s *federation.Snapshot) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for c := range s.Clusters() {
		if c.Spec.Provider != federation.Kubernetes || !r.holders[c.ID] || r.remote(c.ID) {
			continue
		}
		answers := c.Status.Phase == federation.Pending || c.Status.Phase == federation.Syncing || c.Status.Phase == federation.Ready
		if h := r.of[c.ID]; answers && (h == nil || !h.asked) {
			return false
		}
	}
	return true
}

// remote tells whether a Secret named the cluster and no operator did.
func (r *remoteClusters) remote(id federation.ClusterID) bool {
	_, yields, found := r.sources.claims.Holder(id)
	return found && yields
}

// Unreadable is part of attach.RemoteTaker. What was named stays.
func (r *remoteClusters) Unreadable(holder federation.ClusterID, why string, unasked bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.holding(holder)
	if unasked {
		r.ask(h)
	}
	if unasked && len(h.waiting) == 0 {
		return // most accounts may not, and need not
	}
	r.with.logger.Warn("the Secrets that name clusters are not read; those that were named stay", "cluster", holder, "reason", why)
	r.with.metrics.Clusters.RemotesUnreadable(holder)
	r.show(holder, h, map[string]federation.Problem{"all": {Code: "REMOTE_SECRETS_UNREADABLE", Object: "Secrets in " + r.namespace, Message: why + "; what they named stays"}})
}

// maxRemotes bounds the clusters that the Secrets of one cluster may name.
const maxRemotes = 500

// Named is part of attach.RemoteTaker.
func (r *remoteClusters) Named(holder federation.ClusterID, all []attach.Remote) {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.holding(holder)
	r.ask(h)
	wrong, wanted := map[string]federation.Problem{}, map[remoteKey]bool{}
	for i, named := range all {
		p, ok := r.problem(named, i)
		if !ok {
			wrong[named.Secret+" "+named.Key] = p
			continue
		}
		wanted[remoteKey{named.Secret, named.Key}] = true
		r.claim(holder, h, named)
	}
	for key, c := range h.claims {
		if !wanted[key] {
			r.with.logger.Info("detaching a cluster: no Secret names it any more", "cluster", c.id, "holder", holder, "secret", key.secret)
			c.by.Detach(c.id)
			delete(h.claims, key)
		}
	}
	h.read()
	r.show(holder, h, wrong)
	r.with.metrics.Clusters.Remotes(holder, len(h.claims))
}

// problem is why an entry names no cluster.
func (r *remoteClusters) problem(named attach.Remote, at int) (p federation.Problem, ok bool) {
	p = federation.Problem{Code: "REMOTE_SECRET_INVALID", Object: "Secret " + named.Secret, Field: fmt.Sprintf("data[%.80q]", named.Key)}
	switch err := kube.ValidateClusterID(named.Key); {
	case at >= maxRemotes:
		p.Message = fmt.Sprintf("the Secrets of a cluster may name %d others; this one is skipped", maxRemotes)
	case err != nil:
		p.Message = "the key is no cluster ID: " + err.Error()
	case federation.ClusterID(named.Key) == r.hub:
		p.Message = "the hub itself has this ID; give the cluster another one"
	default:
		return p, true
	}
	return p, false
}

// claim attaches what an entry names, or takes up what is new about it.
func (r *remoteClusters) claim(holder federation.ClusterID, h *holding, named attach.Remote) {
	id, key, digest := federation.ClusterID(named.Key), remoteKey{named.Secret, named.Key}, digestOf([]byte(named.Kubeconfig.Reveal()))
	c, known := h.claims[key]
	if known && c.digest == digest {
		return
	}
	if !known {
		name := fmt.Sprintf("the Secret %s of cluster %s", named.Secret, holder)
		c = remoteClaim{by: r.sources.claims.Yielding(remoteRank, name, remoteOwner+string(holder)), id: id}
		r.with.logger.Info("attaching a cluster: a Secret names it", "cluster", id, "holder", holder, "secret", named.Secret)
	}
	c.digest = digest
	h.claims[key] = c
	spec := federation.ClusterSpec{Provider: federation.Kubernetes}
	credentials, err := kube.Parse([]byte(named.Kubeconfig.Reveal()), r.with.kubeconfigRules(""))
	if err != nil {
		c.by.Refuse(id, spec, fmt.Sprintf("Secret %s of cluster %s: %s", named.Secret, holder, err))
		return
	}
	c.by.Attach(registries.Cluster{
		ID: id, Spec: spec, Fingerprint: credentials.Fingerprint(),
		Open: func(known federation.Identity) (registries.Registry, error) {
			return r.with.followKubernetes(clusterConfig{ID: id, Provider: federation.Kubernetes}, credentials, known)
		},
	})
}

// show shows exactly these problems at the cluster with the Secrets.
func (r *remoteClusters) show(holder federation.ClusterID, h *holding, wrong map[string]federation.Problem) {
	for name := range h.told {
		if _, still := wrong[name]; !still {
			r.sources.supervisor.Problem(holder, "remote "+name, nil)
			delete(h.told, name)
		}
	}
	for name, p := range wrong {
		r.sources.supervisor.Problem(holder, "remote "+name, &p)
		h.told[name] = true
	}
}
