package wanted_test

import (
	"slices"
	"testing"

	gateway "sigs.k8s.io/gateway-api/apis/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/gatewayapi"
	"isthmus.dev/isthmus/federation/config/writeback/wanted"
)

// TestG91ListenerSetsAreProgrammedApart: what proxies reject of one ListenerSet does not change the status of another one of
// the Gateway.
func TestG91ListenerSetsAreProgrammedApart(t *testing.T) {
	mesh := federation.NewAggregate(nil)
	objects := map[federation.ObjectKey]*federation.Object{}
	sets := map[string]federation.ObjectKey{}
	var made []federation.ObjectKey
	for _, name := range []string{"good", "bad"} {
		set := edgeOf("ListenerSet")
		set.Name = name
		sets[name] = set
		objects[set] = &federation.Object{
			Key:  set,
			Spec: &gateway.ListenerSetSpec{ParentRef: gateway.ParentGatewayReference{Name: "edge"}},
		}
		server := federation.ObjectKey{Group: "networking.istio.io", Kind: "Gateway", Namespace: "shop", Name: "of-" + name, Cluster: "c1"}
		objects[server] = &federation.Object{Key: server, Origin: federation.Origin{Key: set, Field: "spec.listeners[0]"}}
		made = append(made, server)
	}
	mesh.Open(federation.ShardKey{Cluster: "hub", Provider: federation.External}).Update(federation.Edit{
		Objects: federation.Delta[federation.ObjectKey, *federation.Object]{Set: objects},
	})
	m := wanted.Mesh{
		Read: mesh.Latest().Read().For(federation.AnyCluster),
		Gateways: func(key federation.ObjectKey) (gatewayapi.Status, bool) {
			status := gatewayapi.Status{Conditions: []gatewayapi.Condition{{Type: "Programmed", Status: true, Reason: "Programmed"}}}
			if key == edgeOf("Gateway") {
				status.Made = made
			}
			return status, true
		},
		Delivered: func(of ...federation.ObjectKey) (wanted.Delivery, bool) {
			if slices.Contains(of, made[1]) {
				return wanted.Delivery{Refused: 1}, true
			}
			return wanted.Delivery{Accepted: len(of)}, true
		},
	}
	for name, want := range map[string]string{"good": "Programmed True Programmed", "bad": "Programmed False Invalid"} {
		status, _ := wanted.For(m, wanted.Object{Cluster: "c1", Key: sets[name]})
		if got := says(status.Conditions); !slices.Equal(got, []string{want}) {
			t.Errorf("the conditions of the ListenerSet %s are %q, want %q", name, got, want)
		}
	}
}
