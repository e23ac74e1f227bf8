package service_test

import (
	"slices"
	"testing"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/node"
	"isthmus.dev/isthmus/xds/envoy/service"
)

// TestN04ExportedServicesHaveAutomaticVIPs: also callers in a cluster that exports the service
// know it by its automatic VIP, and it is not cluster-local by its namespace.
func TestN04ExportedServicesHaveAutomaticVIPs(t *testing.T) {
	exported := &federation.Service{
		Key:       federation.ServiceKey{Hostname: "web.kube-system.svc.clusterset.local", Namespace: "kube-system"},
		Endpoints: []federation.ShardEndpoints{{Shard: federation.ShardKey{Cluster: "c1", Provider: federation.Kubernetes}}},
	}
	automatic := exported.Key.AutomaticVIPs()
	for _, cluster := range []federation.ClusterID{"c1", "c2"} {
		got := service.ListenerVIPs(exported, node.Facet{Cluster: cluster, Automatic: true})
		if !slices.Equal(got, automatic[:1]) {
			t.Errorf("a proxy of %s catches connections to %v, want %v", cluster, got, automatic[:1])
		}
	}
	if service.IsClusterLocal(exported.Key.Hostname, nil) {
		t.Error("an exported service of kube-system is cluster-local")
	}
	settings := &federation.MeshSettings{ClusterLocalHosts: []string{"*.svc.cluster.local"}}
	if service.IsClusterLocal("web.shop.svc.clusterset.local", settings) || !service.IsClusterLocal("web.shop.svc.cluster.local", settings) {
		t.Error("names of cluster.local can be local beside those of clusterset.local")
	}
}
