package graph_test

import "testing"

func TestClusterShowsItsStateAndProblems(t *testing.T) {
	h := newHub(t)
	data := h.answer(`{hub{version clusterID snapshotVersion} cluster(clusterID:"c2"){precedence identity{uid networkID}
	  status{lastEventAt lastSyncAt message lastKnownGoodAt lastKnownGoodAge} problems{totalCount nodes{code object field message}}}
	  gone:cluster(clusterID:"c9"){id} c1:cluster(clusterID:"c1"){precedence status{lastEventAt lastSyncAt message lastKnownGoodAt lastKnownGoodAge} problems{totalCount}}}`, nil)
	h.want(data, map[string]any{"version": "test", "clusterID": "hub", "snapshotVersion": "3"}, "hub")
	h.want(data, 100.0, "cluster", "precedence")
	h.want(data, 10.0, "c1", "precedence")
	h.want(data, nil, "cluster", "identity")
	h.want(data, map[string]any{
		"lastEventAt": nil, "lastSyncAt": nil, "message": "the link is lost", "lastKnownGoodAt": "2026-11-21T09:00:00.000Z",
		"lastKnownGoodAge": "1m30s",
	}, "cluster", "status")
	h.want(data, map[string]any{
		"lastEventAt": "2026-11-21T10:00:02.000Z", "lastSyncAt": "2026-11-21T10:00:01.000Z", "message": nil,
		"lastKnownGoodAt": nil, "lastKnownGoodAge": nil,
	}, "c1", "status")
	h.want(data, map[string]any{"totalCount": 1.0, "nodes": []any{
		map[string]any{"code": "PORT_RANGE", "object": "Service load/x", "field": "spec.ports[0]", "message": "port 70000"},
	}}, "cluster", "problems")
	h.want(data, 0.0, "c1", "problems", "totalCount")
	h.want(data, nil, "gone")
	data = h.answer(`{c1:cluster(clusterID:"c1"){status{usage{objects objectsLimit bytes bytesLimit pagesLimit}}} c2:cluster(clusterID:"c2"){status{usage{objects}}}}`, nil)
	h.want(data, map[string]any{"objects": 7.0, "objectsLimit": 10.0, "bytes": 3221225472.0, "bytesLimit": 4294967296.0, "pagesLimit": 20.0},
		"c1", "status", "usage")
	h.want(data, nil, "c2", "status", "usage")
}

func TestClusterShowsItsOwnEndpointsOnly(t *testing.T) {
	h := newHub(t)
	data := h.answer(`{cluster(clusterID:"c1"){endpoints{totalCount nodes{address clusterID}} services{totalCount nodes{hostname}}}}`, nil)
	h.want(data, map[string]any{"totalCount": 2.0, "nodes": []any{
		map[string]any{"address": "10.0.0.1", "clusterID": "c1"}, map[string]any{"address": "10.0.0.2", "clusterID": "c1"},
	}}, "cluster", "endpoints")
	h.want(data, map[string]any{"totalCount": 1.0, "nodes": []any{map[string]any{"hostname": "web.shop.svc.cluster.local"}}},
		"cluster", "services")
}
