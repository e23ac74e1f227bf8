package reconcile

import (
	"context"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
)

// Objects is the source of clusters that are Cluster objects of the configuration.
type Objects struct {
	Views interface {
		Latest() *config.View
		WaitSyncedFor(context.Context, federation.Kind) (*config.View, error)
	}
	// Claim is what an object says.
	Claim func(object *config.Object) Claim
}

// FollowObjects follows the configuration until the context ends.
func (r *Reconciler) FollowObjects(o Objects) func(context.Context) error {
	return func(ctx context.Context) error {
		view, err := o.Views.WaitSyncedFor(ctx, federation.ClusterKind) // others may wait for these clusters
		if err != nil {
			return nil // the hub ends
		}
		said := map[federation.ClusterID]*config.Object{}
		for first := true; ; first = false {
			if set, gone := o.since(view, said); first || len(set)+len(gone) > 0 {
				r.post(func(in *Inputs) { r.takeObjects(in, set, gone) })
			}
			select {
			case <-view.Superseded():
			case <-ctx.Done():
				return nil
			}
			view = o.Views.Latest()
		}
	}
}

// since is what is new about Cluster objects. The claim of one that is set aside is nil:
// it changes nothing, and what runs goes on.
func (o Objects) since(view *config.View, said map[federation.ClusterID]*config.Object) (set map[federation.ClusterID]*Claim,
	gone []federation.ClusterID,
) {
	set = map[federation.ClusterID]*Claim{}
	there := map[federation.ClusterID]bool{}
	for object := range view.State.ObjectsOf(federation.ClusterKind) {
		id := federation.ClusterID(object.Key.Name)
		there[id] = true
		if said[id] == object {
			continue
		}
		said[id], set[id] = object, nil
		if _, ok := view.State.Decoded(object.Key); ok {
			c := o.Claim(object)
			set[id] = &c
		}
	}
	for id := range said {
		if !there[id] {
			delete(said, id)
			gone = append(gone, id)
		}
	}
	return set, gone
}

func (r *Reconciler) takeObjects(in *Inputs, set map[federation.ClusterID]*Claim, gone []federation.ClusterID) {
	for id, c := range set {
		switch {
		case c == nil:
		case id == in.Hub:
			r.o.Logger.Warn("a Cluster object is skipped: the hub itself has this ID", "cluster", id)
		default:
			in.Objects[id] = *c
		}
	}
	for _, id := range gone {
		r.o.Logger.Info("detaching a cluster: its object is gone", "cluster", id)
		delete(in.Objects, id)
	}
	if len(set) > 0 {
		in.Sample = nil
	}
	in.ObjectsLooked = true
}
