package attach

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/apply"
)

// Engine changes the configuration; an apply.Engine does.
type Engine interface {
	Apply(context.Context, apply.Request) (apply.Result, error)
	Delete(context.Context, apply.Deletion) (apply.Result, error)
}

// Registries runs what is attached.
type Registries interface {
	// Held reports whether there is a change that Confirm would accept.
	Held(federation.ClusterID) bool
	// Confirm accepts the change that a cluster is held for.
	Confirm(federation.ClusterID) error
	// Leaving shows that a cluster is being detached, or is not after all.
	Leaving(id federation.ClusterID, leaving bool)
}

// Options are what Clusters works with. All but the last two are needed.
type Options struct {
	Engine      Engine
	Views       interface{ Latest() *config.View }
	Snapshots   interface{ Latest() *federation.Snapshot }
	Registries  Registries
	Plans       interface{ Latest() Plan }
	Credentials *CredentialStore
	// Forget has the identity of a cluster that is not an object learnt again; nil: none is kept.
	Forget   func(context.Context, federation.ClusterID) error
	Kinds    Kinds
	Hub      federation.ClusterID
	Patience time.Duration // how long a look may take, and how long an answer waits; 0: 10 s
	Now      func() time.Time
}

// Kind is what is known of clusters of one provider.
type Kind struct {
	Access Access // nil: none is attached by a request
	Look   Looker // nil: they are attached unseen
	// Identified: their UID lasts, and is kept with the credentials.
	Identified bool
}

// Plan is which clusters are attached.
type Plan interface {
	// Holder names the source that has an ID: ObjectSource where it is a Cluster
	// object. One that yields lets a Cluster object have it.
	Holder(federation.ClusterID) (source string, yields, found bool)
	// AliasHolder is the cluster that has the name as its ID or as an alias.
	AliasHolder(name string) (federation.ClusterID, bool)
	// Superseded is closed once there is a newer plan.
	Superseded() <-chan struct{}
}

// ObjectSource is the name of the source of clusters that are Cluster objects.
const ObjectSource = "a Cluster object"

// Clusters attaches and detaches. Its methods are safe for concurrent use; of those for
// one cluster, one works at a time.
type Clusters struct {
	o     Options
	turns turns
	mu    sync.Mutex
	given map[federation.ClusterID]string // UIDs that were found when credentials were given
}

// New makes Clusters.
func New(o Options) *Clusters {
	if o.Patience == 0 {
		o.Patience = 10 * time.Second
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Clusters{o: o, turns: turns{taken: map[string]chan struct{}{}}, given: map[federation.ClusterID]string{}}
}

// Result is the result of a request. With Errors nothing was changed.
type Result struct {
	Findings []apply.Finding
	Errors   []apply.Error
}

func refuse(code apply.Code, field, format string, args ...any) Result {
	return Result{Errors: []apply.Error{{Code: code, Field: field, Message: fmt.Sprintf(format, args...)}}}
}

// remember notes the UID of a cluster whose credentials were given; empty: it has none.
func (c *Clusters) remember(id federation.ClusterID, uid string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.given[id] = uid
	if uid == "" {
		delete(c.given, id)
	}
}

// object is the Cluster object of the ID.
func (c *Clusters) object(id federation.ClusterID) (*config.Object, bool) {
	return c.o.Views.Latest().State.Object(KeyOf(id))
}

// Attach looks at the cluster and, unless it is a dry run or something speaks
// against it, applies its object together with its credentials. It returns when
// the hub shows the cluster.
func (c *Clusters) Attach(ctx context.Context, r Request) (Result, error) {
	leave, err := c.turns.take(ctx, append([]string{string(r.ID)}, r.Aliases...)...)
	if err != nil {
		return Result{}, err
	}
	defer leave()
	wrong := append(c.check(r), c.takenAliases(r)...)
	report, leave, err := c.preflight(ctx, r, false)
	if err != nil {
		return Result{}, err
	}
	defer leave()
	report.judgeID(c.taken(r.ID))
	result := Result{Findings: report.shown(r.DryRun), Errors: append(wrong, report.refusals()...)}
	if len(result.Errors) > 0 || r.DryRun {
		return result, nil
	}
	return c.write(ctx, result, writing{request: r, uid: report.UID, spec: r.spec(), fresh: true})
}

// takenAliases are the aliases of other clusters, and those that are not allowed.
func (c *Clusters) takenAliases(r Request) []apply.Error {
	var wrong []apply.Error
	for i, alias := range r.Aliases {
		field := fmt.Sprintf("aliases[%d]", i)
		if problem := federation.AliasProblem(alias); problem != "" {
			wrong = append(wrong, apply.Error{Code: InvalidClusterID, Field: field, Message: fmt.Sprintf("%q: %s", alias, problem)})
		}
		holder, taken := c.o.Plans.Latest().AliasHolder(alias)
		if alias == string(c.o.Hub) {
			holder, taken = c.o.Hub, true
		}
		if taken && holder != r.ID {
			wrong = append(wrong, apply.Error{
				Code: DuplicateAlias, Field: field,
				Message: fmt.Sprintf("%q already names the cluster %s: give this cluster another alias", alias, holder),
			})
		}
	}
	return wrong
}

func (c *Clusters) taken(id federation.ClusterID) string {
	if id == c.o.Hub {
		return fmt.Sprintf("%s is the hub's own ID, which external services have: give the cluster another one", id)
	}
	_, exists := c.object(id)
	holder, yields, found := c.o.Plans.Latest().Holder(id)
	switch {
	case exists:
		return fmt.Sprintf("the ID %s is taken by %s: give this cluster another one, or rotate the credentials of the attached cluster", id, ObjectSource)
	case found && !yields:
		return fmt.Sprintf("the ID %s is taken by %s: give this cluster another one", id, holder)
	}
	return ""
}

// Rotate gives an attached cluster other credentials: they take over once the
// cluster was read with them. It returns when the hub has taken them up.
func (c *Clusters) Rotate(ctx context.Context, r Request) (Result, error) {
	leave, err := c.turns.take(ctx, string(r.ID))
	if err != nil {
		return Result{}, err
	}
	defer leave()
	wrong := append(c.check(r), c.notOurs(r.ID)...)
	if o, found := c.object(r.ID); found && len(wrong) == 0 {
		if now := providerOf(o); now != r.Provider {
			wrong = append(wrong, apply.Error{
				Code: OtherProvider, Field: "clusterID",
				Message: fmt.Sprintf("%s is of provider %s: detach it, and attach the other one", r.ID, now),
			})
		}
	}
	report, leave, err := c.preflight(ctx, r, true)
	if err != nil {
		return Result{}, err
	}
	defer leave()
	result := Result{Findings: report.shown(r.DryRun), Errors: append(wrong, report.refusals()...)}
	if len(result.Errors) > 0 || r.DryRun {
		return result, nil
	}
	return c.write(ctx, result, writing{request: r, uid: report.UID, spec: r.place()})
}

// notOurs is why a cluster cannot be changed here.
func (c *Clusters) notOurs(id federation.ClusterID) []apply.Error {
	if _, exists := c.object(id); exists {
		return nil
	}
	// A plan may still have a Cluster object that was just deleted.
	if holder, _, found := c.o.Plans.Latest().Holder(id); found && holder != ObjectSource {
		return []apply.Error{{Code: AttachedElsewhere, Field: "clusterID", Message: fmt.Sprintf("%s comes from %s: change it there", id, holder)}}
	}
	return []apply.Error{{Code: NotAttached, Field: "clusterID", Message: fmt.Sprintf("no cluster %s is attached", id)}}
}

func providerOf(o *config.Object) federation.Provider {
	var m struct {
		Spec struct {
			Provider federation.Provider `json:"provider"`
		} `json:"spec"`
	}
	_ = json.Unmarshal(o.Manifest, &m) // what the store has can be read
	return m.Spec.Provider
}

// preflight checks the cluster of a request before anything changes. Until leave is called, no
// other request works with the cluster that it found.
func (c *Clusters) preflight(asking context.Context, r Request, rotating bool) (report *Report, leave func(), err error) {
	report, leave = &Report{}, func() {}
	looker := c.o.Kinds[r.Provider].Look
	if looker == nil {
		return report, leave, nil
	}
	ctx, cancel := context.WithTimeout(asking, c.o.Patience)
	defer cancel()
	*report = looker(ctx, r)
	if len(report.refusals()) > 0 && report.UID == "" {
		return report, leave, nil // it did not come so far that it could be compared
	}
	if report.UID != "" {
		leave, err = c.turns.take(asking, "UID "+report.UID)
		if err != nil {
			return report, leave, err
		}
	}
	known := c.known()
	if !rotating {
		delete(known.uids, r.ID) // whose ID it is, is judged by itself
	}
	if rotating {
		c.rotates(asking, &r, known)
	}
	report.judge(r, known, c.o.Now())
	if !slices.ContainsFunc(report.Findings, func(f apply.Finding) bool { return f.Code == string(TrustDomain) }) {
		report.Add(TrustDomain, apply.Info, "trust domains are not compared")
	}
	return report, leave, nil
}

// known are the clusters that are attached, also those that were not read yet.
func (c *Clusters) known() others {
	known := othersIn(c.o.Snapshots.Latest())
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, uid := range c.given {
		if _, still := c.object(id); still && known.uids[id] == "" {
			known.uids[id] = uid
		}
	}
	return known
}

// rotates adds what is known of a cluster that is to have other credentials. Who it
// is, is kept with the old ones; that they cannot be opened is a reason to rotate.
func (c *Clusters) rotates(ctx context.Context, r *Request, known others) {
	if of, shown := c.o.Snapshots.Latest().Cluster(r.ID); shown {
		r.Network = of.Network()
	}
	o, found := c.object(r.ID)
	if !found {
		return
	}
	if kept, err := c.o.Credentials.Open(ctx, r.ID, VersionOf(o)); err == nil && kept.UID != "" {
		known.uids[r.ID] = kept.UID
	}
}

// Confirm accepts the change that a cluster is held for.
func (c *Clusters) Confirm(ctx context.Context, id federation.ClusterID) (Result, error) {
	if _, shown := c.o.Snapshots.Latest().Cluster(id); !shown {
		return refuse(NotAttached, "clusterID", "no cluster %s is attached", id), nil
	}
	if c.o.Registries.Held(id) { // in any phase: new credentials of a cluster that cannot be read may be held
		if err := c.unlearn(ctx, id); err != nil {
			return Result{}, fmt.Errorf("confirming cluster %s: %w", id, err)
		}
	}
	if err := c.o.Registries.Confirm(id); err != nil {
		return refuse(NothingHeld, "clusterID", "cluster %s is not held: there is nothing to confirm", id),
			nil //nolint:nilerr // it is the caller's mistake
	}
	return Result{}, nil
}

// unlearn has the registry learn and record the cluster's identity again.
func (c *Clusters) unlearn(ctx context.Context, id federation.ClusterID) error {
	if _, exists := c.object(id); exists {
		c.remember(id, "")
		return c.o.Credentials.Unlearn(ctx, id)
	}
	if c.o.Forget == nil {
		return nil
	}
	return c.o.Forget(ctx, id)
}

// Detach removes the object of a cluster and with it, in the same transaction, its
// credentials. It returns when nothing of the cluster is left in the hub.
func (c *Clusters) Detach(ctx context.Context, id federation.ClusterID, author string) (Result, error) {
	leave, err := c.turns.take(ctx, string(id))
	if err != nil {
		return Result{}, err
	}
	defer leave()
	if wrong := c.notOurs(id); len(wrong) > 0 {
		return Result{Errors: wrong}, nil
	}
	c.o.Registries.Leaving(id, true)
	deleted, err := c.o.Engine.Delete(ctx, apply.Deletion{
		Objects: []federation.ObjectKey{KeyOf(id)}, Origin: apply.Origin{Author: author, Message: "cluster " + string(id) + " detached"},
	})
	if err != nil || len(deleted.Errors) > 0 {
		c.o.Registries.Leaving(id, false)
		return Result{Errors: deleted.Errors}, err
	}
	c.remember(id, "")
	if !c.await(ctx, func(s *federation.Snapshot) bool { return c.isLeft(s, id) }) {
		err = errors.New("the cluster is detached; removing its data has not finished")
	}
	return Result{}, err
}

// isThere reports whether the cluster is shown as it was asked for, and not as
// another source had it before.
func (c *Clusters) isThere(s *federation.Snapshot, r Request) bool {
	of, shown := s.Cluster(r.ID)
	holder, _, found := c.o.Plans.Latest().Holder(r.ID)
	return shown && found && holder == ObjectSource && (r.Network == "" || of.Spec.Network == r.Network)
}

// isLeft reports whether nothing of the cluster of an object is left: the plan does not
// have it, and it is not shown, or it is that of another source.
func (c *Clusters) isLeft(s *federation.Snapshot, id federation.ClusterID) bool {
	if holder, _, found := c.o.Plans.Latest().Holder(id); found {
		return holder != ObjectSource
	}
	_, shown := s.Cluster(id)
	return !shown
}
