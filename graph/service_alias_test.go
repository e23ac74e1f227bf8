package graph

import (
	"slices"
	"testing"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/graph/model"
)

// TestR82AliasesAreShown: those of the registry, and ExternalNames over any steps.
func TestR82AliasesAreShown(t *testing.T) {
	key := func(host federation.Hostname) federation.ServiceKey { return federation.ServiceKey{Hostname: host} }
	s, _ := federation.Next(federation.Empty(), federation.Edit{
		Clusters: federation.Delta[federation.ClusterID,
			federation.ClusterSpec]{Set: map[federation.ClusterID]federation.ClusterSpec{"c1": {Provider: federation.Mock}}},
	})
	s, _ = federation.Next(s, federation.Edit{
		Source: federation.ShardKey{Cluster: "c1", Provider: federation.Mock},
		Services: federation.Delta[federation.ServiceKey, *federation.Shard]{Set: map[federation.ServiceKey]*federation.Shard{
			key("web.service.consul"): {Aliases: []federation.Hostname{"web.service.dc1.consul"}},
			key("alias.shop"):         {ExternalName: "web.service.consul"},
			key("chain.shop"):         {ExternalName: "alias.shop"},
			key("loop.shop"):          {ExternalName: "loop.shop"},
		}},
	})
	of, _ := s.Service(key("web.service.consul"))
	got := model.Service{From: s, Of: of}.Aliases()
	if want := []string{"web.service.dc1.consul", "alias.shop", "chain.shop"}; !slices.Equal(got, want) {
		t.Errorf("the aliases are %q, want %q", got, want)
	}
}
