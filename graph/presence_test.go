package graph_test

import (
	"testing"
	"testing/synctest"

	"isthmus.dev/isthmus/graph"
	"isthmus.dev/isthmus/graph/model"
)

// TestR73WaitsTellThatOtherHubsAreNotCounted: that the proxies of this hub have a
// change, all or none, is not an answer while other hubs have proxies of their own; that
// one of its own does not have it is.
func TestR73WaitsTellThatOtherHubsAreNotCounted(t *testing.T) {
	for name, step := range map[string]struct {
		states  []model.RolloutState
		others  int
		reached any
	}{
		"no proxies, no other hub":      {nil, 0, true},
		"no proxies, other hubs":        {nil, 2, nil},
		"all proxies, other hubs":       {[]model.RolloutState{acked}, 2, nil},
		"a proxy refused it, other hub": {[]model.RolloutState{acked, acked, rejected}, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newConfigured(t, func(o *graph.Options) {
					o.Config.Rollouts, o.Config.OtherHubs = newRollouts(step.states...), func() int { return step.others }
				})
				const query = `mutation($m:[String!]){apply(input:{manifests:$m,waitFor:{state:ACKED,timeout:"1s"}}){rollout{reached} findings{code severity message}}}`
				data := c.answer(query, map[string]any{"m": route("shop", "a", "x")})
				c.want(data, step.reached, "apply", "rollout", "reached")
				findings := at(data, "apply", "findings").([]any)
				if step.reached != nil {
					for _, f := range findings {
						if at(f, "code") == "OTHER_HUBS_NOT_COUNTED" {
							t.Errorf("it says %v", f)
						}
					}
					return
				}
				last := findings[len(findings)-1]
				c.want(last, "OTHER_HUBS_NOT_COUNTED", "code")
				c.want(last, "WARNING", "severity")
			})
		})
	}
}
