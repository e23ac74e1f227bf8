package wanted_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	gateway "sigs.k8s.io/gateway-api/apis/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/gatewayapi"
	"isthmus.dev/isthmus/federation/config/writeback/wanted"
)

// TestG62PolicyAncestors: the status of a BackendTLSPolicy has an entry for each Gateway; those
// of other controllers stay.
func TestG62PolicyAncestors(t *testing.T) {
	key := federation.ObjectKey{Group: gateway.GroupName, Kind: "BackendTLSPolicy", Namespace: "shop", Name: "web", Cluster: "c1"}
	m := wanted.Mesh{Read: federation.Empty().Read(), Gateways: func(federation.ObjectKey) (gatewayapi.Status, bool) {
		return gatewayapi.Status{Parents: []gatewayapi.ParentStatus{{
			Ref: gateway.ParentReference{Name: "edge"}, Controller: "isthmus.dev/gateway-controller",
			Conditions: []gatewayapi.Condition{{Type: "Accepted", Status: true, Reason: "Accepted"}},
		}}}, true
	}}
	status, known := wanted.For(m, wanted.Object{Cluster: "c1", Key: key, Generation: 2})
	if !known || status == nil {
		t.Fatalf("the status is %+v, known: %t", status, known)
	}
	other := map[string]any{"ancestorRef": map[string]any{"name": "edge"}, "controllerName": "example.com/other"}
	current := map[string]any{"ancestors": []any{other}}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	ours := map[string]any{
		"ancestorRef":    map[string]any{"group": gateway.GroupName, "kind": "Gateway", "name": "edge"},
		"controllerName": "isthmus.dev/gateway-controller",
		"conditions": []any{map[string]any{
			"type": "Accepted", "status": "True", "reason": "Accepted", "message": "", "lastTransitionTime": "2026-01-02T03:04:05Z",
			"observedGeneration": int64(2),
		}},
	}
	want := map[string]any{"ancestors": []any{other, ours}}
	if diff := cmp.Diff(want, wanted.Change(key.Of(), current, status, now)); diff != "" {
		t.Errorf("the patch is another one: %s", diff)
	}
	if patch := wanted.Change(key.Of(), want, status, now.Add(time.Hour)); patch != nil {
		t.Errorf("without a change the patch is %v", patch)
	}
	if diff := cmp.Diff(current, wanted.Change(key.Of(), want, nil, now)); diff != "" {
		t.Errorf("after the policy has no effect any more: %s", diff)
	}
}
