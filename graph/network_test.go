package graph_test

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/graph"
)

// bridged is the fixture with two gateways of n2, one of which is for n3 alone, and
// one that is refused.
func bridged(t *testing.T) *federation.Snapshot {
	t.Helper()
	key := federation.ObjectKey{Group: federation.MeshGroup, Kind: federation.NetworkKind.Name, Name: "n2"}
	spec := &federation.NetworkObject{CIDRs: []netip.Prefix{netip.MustParsePrefix("10.2.0.0/16")}, Gateways: []federation.NetworkGateway{
		{Address: "192.0.2.1", Locality: "r2/z1"}, {Address: "192.0.2.2", From: []federation.NetworkID{"n3"}}, {Address: "127.0.0.1"},
	}}
	e := federation.Edit{Objects: federation.Delta[federation.ObjectKey,
		*federation.Object]{Set: map[federation.ObjectKey]*federation.Object{key: {Key: key, Spec: spec}}}}
	s, _ := federation.Next(fixture(t), e)
	return s
}

// probed is what n1 finds of the first gateway.
func probed(reachable bool) federation.Edit {
	way := federation.VerdictKey{Observer: "n1", Gateway: netip.MustParseAddrPort("192.0.2.1:15443")}
	return federation.Edit{Verdicts: federation.Delta[federation.VerdictKey, federation.Verdict]{
		Set: map[federation.VerdictKey]federation.Verdict{way: {
			Reachable: reachable,
			Since:     time.Date(2026, 11, 21, 9, 0, 0, 5_000_000, time.UTC),
		}},
	}}
}

const shownNetwork = `{ networkID cidrs clusterIDs gated gateways { address locality { region zone } fromNetworkIDs health { observer observerNetworkID reachable since state } } refusedGateways { gateway message } }`

func TestNetworksAreShown(t *testing.T) {
	h := hubOver(t, bridged(t), proxies())
	h.source.next(probed(false))
	all := h.answer("{ networks { totalCount nodes "+shownNetwork+" } }", nil)
	h.want(all, "n1", "networks", "nodes", 0, "networkID")
	h.want(all, false, "networks", "nodes", 0, "gated")
	h.want(all, "n2", "networks", "nodes", 1, "networkID")
	one := h.answer(`{ network(networkID: "n2") `+shownNetwork+" }", nil)
	if fmt.Sprint(at(one, "network")) != fmt.Sprint(at(all, "networks", "nodes", 1)) {
		t.Errorf("alone n2 is %v, among others %v", at(one, "network"), at(all, "networks", "nodes", 1))
	}
	h.want(one, []any{"10.2.0.0/16"}, "network", "cidrs")
	h.want(one, []any{"c2"}, "network", "clusterIDs")
	h.want(one, true, "network", "gated")
	h.want(one, map[string]any{
		"address": "192.0.2.1:15443", "fromNetworkIDs": []any{}, "locality": map[string]any{"region": "r2", "zone": "z1"},
		"health": []any{map[string]any{
			"observer": "n1", "observerNetworkID": "n1", "reachable": false, "since": "2026-11-21T09:00:00.005Z",
			"state": "LAST_RESORT",
		}},
	}, "network", "gateways", 0)
	h.want(one, []any{"n3"}, "network", "gateways", 1, "fromNetworkIDs")
	h.want(one, []any{map[string]any{"gateway": "127.0.0.1:15443", "message": "is a loopback address"}}, "network", "refusedGateways")
	h.want(h.answer(`{ network(networkID: "none") { networkID } }`, nil), nil, "network")
}

// TestChangesHaveNetworks: all of them in a resync, and then one whose gateway is
// found to be another than before.
func TestChangesHaveNetworks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from := bridged(t)
		l := newLive(attached(from), networkEdit(from))
		s := newSubscriber(t, graph.Options{Snapshots: l})
		s.text = `subscription($after: String, $filter: ChangeFilter) { changes(after: $after, filter: $filter) { cursor networks { action network { networkID gateways { health { state } } } } } }`
		changes := s.changes("", nil)
		defer changes.stop()
		if got := networksOf(t, changes); got != `n1 CREATE [] n2 CREATE [{[]} {[]}]` {
			t.Errorf("the picture has %s", got)
		}
		l.publish(probed(true))
		waitUntilIdle()
		if got := networksOf(t, changes); got != `n2 UPDATE [{[{REACHABLE}]} {[]}]` {
			t.Errorf("the change has %s", got)
		}
	})
}

// attached attaches the clusters of the snapshot, and networkEdit has its networks.
func attached(s *federation.Snapshot) federation.Edit {
	e := federation.Edit{Clusters: federation.Delta[federation.ClusterID,
		federation.ClusterSpec]{Set: map[federation.ClusterID]federation.ClusterSpec{}}}
	for c := range s.Clusters() {
		e.Clusters.Set[c.ID] = c.Spec
	}
	return e
}

func networkEdit(s *federation.Snapshot) federation.Edit {
	e := federation.Edit{Objects: federation.Delta[federation.ObjectKey,
		*federation.Object]{Set: map[federation.ObjectKey]*federation.Object{}}}
	for o := range s.Objects().All() {
		e.Objects.Set[o.Key] = o
	}
	return e
}

// networksOf are the networks in the next events, up to one with a cursor.
func networksOf(t *testing.T, changes *stream) string {
	t.Helper()
	var all []string
	for {
		var event struct {
			Changes struct {
				Cursor   *string
				Networks []struct {
					Action  string
					Network struct {
						NetworkID string
						Gateways  []struct{ Health []struct{ State string } }
					}
				}
			}
		}
		r := changes.next()
		if r == nil || len(r.Errors) > 0 {
			t.Fatalf("the event is %+v", r)
		}
		if err := json.Unmarshal(r.Data, &event); err != nil {
			t.Fatal(err)
		}
		for _, n := range event.Changes.Networks {
			all = append(all, fmt.Sprint(n.Network.NetworkID, " ", n.Action, " ", n.Network.Gateways))
		}
		if event.Changes.Cursor != nil {
			slices.Sort(all)
			return strings.Join(all, " ")
		}
	}
}
