package graph_test

import (
	"testing"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/fleet"
)

// TestR43WeightsAboveInt: the weight of an endpoint is a uint32, which an Int of GraphQL does not hold. Both ways of
// answering have it: a field that is read from the snapshot at once, and one behind a connection.
func TestR43WeightsAboveInt(t *testing.T) {
	const weight = 1<<31 + 5
	heavy := endpoint("n1", "10.0.0.1")
	heavy.Weight = weight
	snapshot, _ := federation.Next(fixture(t),
		federation.Edit{Source: first, Services: federation.Delta[federation.ServiceKey, *federation.Shard]{
			Full: true, Set: map[federation.ServiceKey]*federation.Shard{web: shard("10.1.0.1/32", heavy)},
		}})
	h := hubOver(t, snapshot, fleet.New())
	for _, query := range []string{
		`{ cluster(clusterID: "c1") { endpoints(first: 1) { edges { node { weight } } } } }`,
		`{ service(hostname: "web.shop.svc.cluster.local", namespace: "shop") { endpoints(first: 1) { edges { node { weight } } } } }`,
	} {
		data := h.answer(query, nil)
		for _, outer := range []string{"cluster", "service"} {
			if data[outer] == nil {
				continue
			}
			if got := at(data, outer, "endpoints", "edges", 0, "node", "weight"); got != float64(weight) {
				t.Errorf("%s answers %v, want %d", query, got, weight)
			}
		}
	}
}
