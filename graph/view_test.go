package graph_test

import (
	"fmt"
	"testing"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/graph"
)

// restless has another snapshot each time it is asked.
type restless struct{ *source }

func (r restless) Latest() *federation.Snapshot {
	id := federation.ClusterID(fmt.Sprintf("x%03d", r.snapshot.Version()))
	r.next(federation.Edit{Clusters: federation.Delta[federation.ClusterID, federation.ClusterSpec]{
		Set: map[federation.ClusterID]federation.ClusterSpec{id: {Provider: federation.Mock}},
	}})
	return r.snapshot
}

// restlessFleet has one proxy more each time it is asked.
type restlessFleet struct{ *fleet.Fleet }

func (r restlessFleet) Latest() *fleet.Value {
	r.Connect(fleet.Proxy{NodeID: "sidecar~10.0.0.1~a.b~b"})
	return r.Fleet.Latest()
}

func TestOneOperationSpeaksOfOneSnapshotAndOneFleet(t *testing.T) {
	h := hubWith(t, graph.Options{
		Snapshots: restless{&source{federation.Empty()}}, Fleet: restlessFleet{fleet.New()},
	})
	const query = `{a:hub{snapshotVersion} clusters{totalCount nodes{clusterID}} p:proxies{totalCount} q:proxies{totalCount nodes{nodeID}}
	  b:hub{snapshotVersion} again:clusters{totalCount nodes{services{totalCount}}}}`
	for turn := 1.0; turn <= 3; turn++ {
		data := h.answer(query, nil)
		h.want(data, fmt.Sprint(turn), "a", "snapshotVersion")
		h.want(data, fmt.Sprint(turn), "b", "snapshotVersion")
		h.want(data, turn, "clusters", "totalCount")
		h.want(data, turn, "again", "totalCount")
		h.want(data, turn, "p", "totalCount")
		h.want(data, turn, "q", "totalCount")
	}
}

func TestHubWithoutFleetAndCountersAnswers(t *testing.T) {
	h := hubWith(t, graph.Options{Snapshots: &source{fixture(t)}})
	data := h.answer(`{proxies{totalCount nodes{id}} proxy(nodeID:"a"){id} cluster(clusterID:"c1"){status{lastEventAt lastSyncAt}}}`, nil)
	h.want(data, map[string]any{
		"proxies": map[string]any{"totalCount": 0.0, "nodes": []any{}}, "proxy": nil,
		"cluster": map[string]any{"status": map[string]any{"lastEventAt": nil, "lastSyncAt": nil}},
	})
}
