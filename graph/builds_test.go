package graph_test

import (
	"sync/atomic"
	"testing"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/apply"
	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/graph"
)

// TestOverviewFollowsWhatWasBuilt: findings that come of a build are counted, although
// neither the mesh nor the fleet has changed since the overview was asked for before.
func TestOverviewFollowsWhatWasBuilt(t *testing.T) {
	var builds, counted atomic.Int64
	c := newConfigured(t, func(o *graph.Options) {
		o.Config.Builds = func() uint64 { return uint64(builds.Load()) }
		o.Config.Findings = func(_ *federation.Snapshot, _ *fleet.Value, key federation.ObjectKey) []apply.Finding {
			counted.Add(1)
			if builds.Load() == 0 || key != routeKey("shop", "cart") {
				return nil
			}
			return []apply.Finding{{Code: "NO_PORT", Key: key}}
		}
	})
	c.apply(route("shop", "cart", "a"))
	const query = `{overview{configObjects{total withFindings}}}`
	c.want(c.answer(query, nil), 0.0, "overview", "configObjects", "withFindings")
	builds.Add(1)
	c.want(c.answer(query, nil), 1.0, "overview", "configObjects", "withFindings")
	before := counted.Load()
	c.want(c.answer(query, nil), 1.0, "overview", "configObjects", "withFindings")
	if counted.Load() != before {
		t.Error("the objects are counted again though nothing was built")
	}
}
