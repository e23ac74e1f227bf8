package graph_test

import (
	"sync/atomic"
	"testing"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/apply"
	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/graph"
)

// TestR97OverviewFollowsWhatWasBuilt: findings that come of a build are counted, although
// neither the mesh nor a stream has changed since the overview was asked for before.
func TestR97OverviewFollowsWhatWasBuilt(t *testing.T) {
	var wrong atomic.Bool
	var counted atomic.Int64
	proxies := fleet.New()
	c := newConfigured(t, func(o *graph.Options) {
		o.Fleet = proxies
		o.Config.Findings = func(_ *federation.Snapshot, _ *fleet.Value, key federation.ObjectKey) []apply.Finding {
			counted.Add(1)
			if !wrong.Load() || key != routeKey("shop", "cart") {
				return nil
			}
			return []apply.Finding{{Code: "NO_PORT", Key: key}}
		}
	})
	c.apply(route("shop", "cart", "a"))
	const query = `{overview{configObjects{total withFindings}}}`
	c.want(c.answer(query, nil), 0.0, "overview", "configObjects", "withFindings")
	wrong.Store(true)
	proxies.Built()
	c.want(c.answer(query, nil), 1.0, "overview", "configObjects", "withFindings")
	before := counted.Load()
	c.want(c.answer(query, nil), 1.0, "overview", "configObjects", "withFindings")
	if counted.Load() != before {
		t.Error("the objects are counted again though nothing was built")
	}
}
