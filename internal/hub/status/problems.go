package status

import (
	"slices"
	"sync/atomic"
	"weak"

	"isthmus.dev/isthmus/federation"
)

// problems has the problems of the latest snapshot that was asked about, by object. Without
// the index the statuses of all objects would cost the square of their problems.
type problems struct{ latest atomic.Pointer[indexed] }

type indexed struct {
	// snapshot is weak so that the index does not keep a superseded snapshot in memory. The
	// version would not identify it: previews have snapshots of their own.
	snapshot weak.Pointer[federation.Snapshot]
	byObject map[string][]federation.Problem
}

// all are those of the snapshot, by object.
func (p *problems) all(snapshot *federation.Snapshot, hub federation.ClusterID) map[string][]federation.Problem {
	at := weak.Make(snapshot)
	index := p.latest.Load()
	if index == nil || index.snapshot != at {
		index = &indexed{snapshot: at, byObject: map[string][]federation.Problem{}}
		for problem := range snapshot.Problems(hub) {
			index.byObject[problem.Object] = append(index.byObject[problem.Object], problem)
		}
		p.latest.Store(index)
	}
	return index.byObject
}

// of are the problems that the hub's cluster has with the object.
func (p *problems) of(snapshot *federation.Snapshot, hub federation.ClusterID, key federation.ObjectKey) []federation.Problem {
	byObject := p.all(snapshot, hub)
	// Two groups have a kind Gateway: some problems name the group, too.
	return slices.Concat(byObject[key.Title()], byObject[key.String()])
}
