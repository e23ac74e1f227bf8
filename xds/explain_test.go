package xds

import (
	"testing"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy"
)

// TestR36ProxiesOfTwoClustersAreToldApart by the cluster before their node ID.
func TestR36ProxiesOfTwoClustersAreToldApart(t *testing.T) {
	n := envoy.Node{ID: "sidecar~10.0.0.1~web-1.shop~shop.svc.cluster.local", Name: "web-1.shop", Cluster: federation.ClusterID("c1")}
	for given, want := range map[string]bool{
		n.ID: true, n.Name: true, "c1/" + n.ID: true, "c1/" + n.Name: true,
		"c2/" + n.ID: false, "c2/" + n.Name: false, "web-1": false, "c1/": false, "": false,
	} {
		if got := isNamed(&n, given); got != want {
			t.Errorf("%q names the proxy: %v, want %v", given, got, want)
		}
	}
}
