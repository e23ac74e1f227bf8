package virtualservice

import (
	"testing"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/encoding/protojson"
	networking "istio.io/api/networking/v1"
)

// TestK67HashedRequestsAreTriedAgainWhereTheHashLeads: as with Istio, unless the object says which endpoints a retry has.
func TestK67HashedRequestsAreTriedAgainWhereTheHashLeads(t *testing.T) {
	hash := []*routev3.RouteAction_HashPolicy{{}}
	one := &routev3.RouteAction_Cluster{Cluster: "a"}
	split := &routev3.RouteAction_WeightedClusters{}
	for name, c := range map[string]struct {
		action  *routev3.RouteAction
		retries string
		others  bool
	}{
		"no hash":              {&routev3.RouteAction{ClusterSpecifier: one}, "", true},
		"a hash":               {&routev3.RouteAction{ClusterSpecifier: one, HashPolicy: hash}, "", false},
		"a hash, and attempts": {&routev3.RouteAction{ClusterSpecifier: one, HashPolicy: hash}, `{"attempts": 3}`, false},
		"a hash, and other hosts": {
			&routev3.RouteAction{ClusterSpecifier: one, HashPolicy: hash},
			`{"attempts": 3, "retryIgnorePreviousHosts": true}`, true,
		},
		"no hash, and the same host": {&routev3.RouteAction{ClusterSpecifier: one}, `{"attempts": 3, "retryIgnorePreviousHosts": false}`, false},
		"several destinations":       {&routev3.RouteAction{ClusterSpecifier: split, HashPolicy: hash}, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			var in *networking.HTTPRetry
			if c.retries != "" {
				in = &networking.HTTPRetry{}
				if err := protojson.Unmarshal([]byte(c.retries), in); err != nil {
					t.Fatal(err)
				}
			}
			if err := SetRetries(c.action, in); err != nil {
				t.Fatal(err)
			}
			if got := len(c.action.GetRetryPolicy().GetRetryHostPredicate()) > 0; got != c.others {
				t.Errorf("a retry goes to another endpoint: %v, want %v", got, c.others)
			}
		})
	}
}
