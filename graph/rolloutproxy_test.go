package graph_test

import (
	"testing"

	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/graph"
)

// TestContractOfApplyShowsProxies word for word: a proxy that is no longer connected
// is null beside its node ID.
func TestContractOfApplyShowsProxies(t *testing.T) {
	connected := fleet.New()
	connected.Connect(fleet.Proxy{NodeID: "proxy-1", Type: "sidecar"})
	c := newConfigured(t, func(o *graph.Options) {
		o.Fleet, o.Config.Rollouts = connected, newRollouts(acked, rejected)
	})
	data := c.answer(contract(t)["Apply"], input(map[string]any{"manifests": route("shop", "cart", "a")}))
	c.want(data, map[string]any{
		"delivered": 2.0, "acked": 1.0, "rejected": 1.0, "pending": 0.0,
		"proxies": map[string]any{"nodes": []any{
			map[string]any{"nodeID": "proxy-1", "state": "REJECTED", "error": "port 0", "proxy": map[string]any{"clusterID": nil}},
			map[string]any{"nodeID": "proxy-2", "state": "ACKED", "error": nil, "proxy": nil},
		}},
	}, "apply", "rollout")
}

// TestAnswerToChangeShowsTheStateAfterIt: also what is found from it by relations.
func TestAnswerToChangeShowsTheStateAfterIt(t *testing.T) {
	c := newConfigured(t, nil)
	data := c.answer(`mutation($input:ApplyInput!){apply(input:$input){revision changes{object{revision current{revision name}}}}}`,
		input(map[string]any{"manifests": route("shop", "cart", "a")}))
	c.want(data, map[string]any{
		"revision": "1", "changes": []any{map[string]any{"object": map[string]any{
			"revision": "1",
			"current":  map[string]any{"revision": "1", "name": "cart"},
		}}},
	}, "apply")
}
