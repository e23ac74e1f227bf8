package registries

import (
	"fmt"

	"isthmus.dev/isthmus/federation"
)

// operator writes the part of a cluster that does not come from its registry.
type operator struct {
	cluster   federation.ClusterID
	writer    *federation.Writer
	duplicate federation.ClusterID // see showDuplicate; guarded by member.mu
}

// show has the cluster in the snapshot.
func (o *operator) show(spec federation.ClusterSpec) {
	o.writer.Update(federation.Edit{Clusters: federation.Delta[federation.ClusterID, federation.ClusterSpec]{
		Set: map[federation.ClusterID]federation.ClusterSpec{o.cluster: spec},
	}})
}

// remove takes the cluster out of the snapshot, with everything in it.
func (o *operator) remove() {
	o.writer.Update(federation.Edit{Clusters: federation.Delta[federation.ClusterID,
		federation.ClusterSpec]{Gone: []federation.ClusterID{o.cluster}}})
	o.writer.Close()
}

// problem shows a problem under a name; nil takes it away.
func (o *operator) problem(name string, p *federation.Problem) {
	e := federation.Edit{Problems: federation.Delta[string, federation.Problem]{Gone: []string{name}}}
	if p != nil {
		e.Problems = federation.Delta[string, federation.Problem]{Set: map[string]federation.Problem{name: *p}}
	}
	o.writer.Update(e)
}

// showDuplicate shows the ID under which the cluster is served instead; empty: it is this one.
func (o *operator) showDuplicate(by federation.ClusterID) {
	if o.duplicate == by {
		return
	}
	o.duplicate = by
	if by == "" {
		o.problem("duplicate", nil)
		return
	}
	o.problem("duplicate", &federation.Problem{
		Code: "DUPLICATE_CLUSTER", Object: "cluster " + string(o.cluster),
		Message: fmt.Sprintf("it is the cluster that is attached as %s: it is served under that ID; detach one of the two", by),
	})
}
