package graph_test

import (
	"net/netip"
	"strings"
	"testing"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/fleet"
)

func TestX40StreamsOfOneNodeAreShownEach(t *testing.T) {
	h := newHub(t)
	data := h.answer("{proxies{totalCount nodes{id nodeID connectedAt}}}", nil)
	h.want(data, 3.0, "proxies", "totalCount")
	h.want(data, routerID, "proxies", "nodes", 0, "nodeID")
	h.want(data, routerID, "proxies", "nodes", 1, "nodeID")
	if at(data, "proxies", "nodes", 0, "id") == at(data, "proxies", "nodes", 1, "id") {
		t.Error("two streams have one ID")
	}
	latest := h.answer("query($n:String!){proxy(nodeID:$n){id connectedAt}}", map[string]any{"n": routerID})
	h.want(latest, at(data, "proxies", "nodes", 1, "id"), "proxy", "id")
	h.want(latest, "2026-11-21T10:00:01.000Z", "proxy", "connectedAt")
	h.want(h.answer(`{proxy(nodeID:"router"){id}}`, nil), nil, "proxy")
}

func TestProxyShowsWhereItIsAndWhatItCan(t *testing.T) {
	h := newHub(t)
	query := "query($n:String!){proxy(nodeID:$n){networkID locality{region zone subZone} addresses labels{key value} httpProxyPort dnsCapture userAgent delivery namespace}}"
	h.want(h.answer(query, map[string]any{"n": sidecarID}), map[string]any{
		"networkID": "n1", "locality": map[string]any{"region": "r1", "zone": "z1", "subZone": nil}, "addresses": []any{"10.0.0.1"},
		"labels": []any{map[string]any{"key": "app", "value": "web"}}, "httpProxyPort": 15080.0, "dnsCapture": false,
		"userAgent": "envoy/1.40.0", "delivery": "DELTA", "namespace": "shop",
	}, "proxy")
	h.want(h.answer(query, map[string]any{"n": routerID}), map[string]any{
		"networkID": "edge", "locality": map[string]any{"region": "r2", "zone": "z1", "subZone": nil}, "addresses": []any{}, "labels": []any{},
		"httpProxyPort": nil, "dnsCapture": false, "userAgent": nil, "delivery": "SOTW", "namespace": nil,
	}, "proxy")
}

// TestProxiesAreShownAsTheirRegistryKnowsThem: what a proxy reports about its network,
// locality and labels counts where no registry has an entry of its workload.
func TestProxiesAreShownAsTheirRegistryKnowsThem(t *testing.T) {
	h := newHub(t)
	known := federation.WorkloadKey{Namespace: "shop", Name: "known-1"}
	h.source.next(federation.Edit{Source: first, Workloads: federation.Delta[federation.WorkloadKey, *federation.Workload]{
		Set: map[federation.WorkloadKey]*federation.Workload{known: {
			Addresses: []netip.Addr{netip.MustParseAddr("10.0.0.7")}, Network: "n1", Locality: federation.Locality{Region: "r1", Zone: "z7"},
			Labels: map[string]string{"app": "known"},
		}},
	}})
	for name, c := range map[string]struct {
		address         string
		cluster         federation.ClusterID
		network, locale string
	}{
		"known":             {"10.0.0.7", "c1", "n1", "r1/z7/known"},
		"by another's name": {"10.0.0.8", "c1", "n2", "r9/z9/said"},
		"elsewhere":         {"10.0.0.7", "c2", "n2", "r9/z9/said"},
	} {
		id := "sidecar~" + c.address + "~known-1.shop~shop"
		stream := h.fleet.Connect(fleet.Proxy{
			NodeID: id, Type: "sidecar", Cluster: c.cluster, Network: "n2", Addresses: []netip.Addr{netip.MustParseAddr(c.address)},
			Namespace: "shop", Workload: known,
			Locality: federation.Locality{Region: "r9", Zone: "z9"}, Labels: map[string]string{"app": "said"},
		})
		data := h.answer("query($n:String!){proxy(nodeID:$n){networkID locality{region zone} labels{value}}}", map[string]any{"n": id})
		is := strings.Join([]string{
			at(data, "proxy", "locality", "region").(string), at(data, "proxy", "locality", "zone").(string),
			at(data, "proxy", "labels", 0, "value").(string),
		}, "/")
		if network := at(data, "proxy", "networkID"); network != c.network || is != c.locale {
			t.Errorf("%s: it is shown in %v as %s, want %s and %s", name, network, is, c.network, c.locale)
		}
		stream.Close()
	}
}

func TestFleetIsReadAnewByEachOperation(t *testing.T) {
	h := newHub(t)
	stream := h.fleet.Connect(fleet.Proxy{NodeID: "sidecar~10.0.0.9~new.shop~shop", Type: "sidecar"})
	const query = `{proxy(nodeID:"sidecar~10.0.0.9~new.shop~shop"){id sync{state} networkID} proxies{totalCount}}`
	data := h.answer(query, nil)
	h.want(data, "NOT_REQUESTED", "proxy", "sync", 3, "state")
	h.want(data, "default", "proxy", "networkID")
	stream.Report("type.googleapis.com/x.Secret", fleet.Sync{State: fleet.Synced})
	h.want(h.answer(query, nil), "SYNCED", "proxy", "sync", 4, "state")
	stream.Close()
	h.want(h.answer(query, nil), map[string]any{"proxy": nil, "proxies": map[string]any{"totalCount": 3.0}})
	gone := h.answer("query($id:ID!){node(id:$id){id}}", map[string]any{"id": at(data, "proxy", "id")})
	h.want(gone, nil, "node")
}
