package xds

import (
	"fmt"
	"testing"

	"google.golang.org/protobuf/types/known/structpb"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/xdstest"
)

func aliased(aliases ...string) federation.Edit {
	return federation.Edit{Clusters: federation.Delta[federation.ClusterID, federation.ClusterSpec]{
		Set: map[federation.ClusterID]federation.ClusterSpec{"c1": {Provider: federation.Mock, Aliases: federation.NewAliases(aliases)}},
	}}
}

// An Envoy whose metadata names its cluster as Istio does by default is one of the
// cluster that has this alias.
func TestR48ASidecarNamesItsClusterByAnAlias(t *testing.T) {
	r := startMeshProxy(t, newFakeSecrets(), "NODE", node("web-1").Id, "API", "DELTA_GRPC", "CLUSTER_ID: c1", "CLUSTER_ID: Kubernetes")
	operator := r.server.options.Snapshots.(*federation.Aggregate).Open(federation.ShardKey{Provider: federation.Operator})
	operator.Update(aliased("Kubernetes", "gke_my.project_Zone"))
	r.await("the proxy to be one of c1", func() error {
		for p := range r.fleet.Latest().Proxies() {
			if p.Cluster == "c1" {
				return nil
			}
			return fmt.Errorf("it is of %q", p.Cluster)
		}
		return fmt.Errorf("it is not connected")
	})
	r.await("everything to be accepted", r.inSync)
}

// An alias that moves to another cluster ends the streams that name it.
func TestR48StreamsFollowTheirAlias(t *testing.T) {
	bothVariants(t, func(t *testing.T, delta bool) {
		h := newHub(t)
		operator := h.aggregate.Open(federation.ShardKey{Provider: federation.Operator})
		operator.Update(aliased("Kubernetes"))
		h.set(service("web", 1))
		n := node("web-1")
		n.Metadata.Fields["CLUSTER_ID"] = structpb.NewStringValue("Kubernetes")
		c := h.client(xdstest.Options{Delta: delta, Node: n})
		c.get(xdstest.Request{Type: xdstest.CDS})
		for p := range h.fleet.Latest().Proxies() {
			if p.Cluster != "c1" {
				t.Errorf("the proxy is of %s", p.Cluster)
			}
		}
		operator.Update(aliased("another"))
		testbed.WaitFor(t, patience, "the stream to end", func() error {
			if n := h.fleet.Latest().Count(); n != 0 {
				return fmt.Errorf("%d streams are open", n)
			}
			return nil
		})
	})
}
