package xds

import (
	"fmt"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/structpb"
	security "istio.io/api/security/v1"
	selection "istio.io/api/type/v1beta1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/derive"
	"isthmus.dev/isthmus/xds/envoy"
)

// plainFor has the workloads of the label accept plain text alone, as configuration indexes it.
func plainFor(app string) federation.Edit {
	key := federation.ObjectKey{Group: "security.istio.io", Kind: "PeerAuthentication", Namespace: "shop", Name: app}
	spec := &security.PeerAuthentication{
		Selector: &selection.WorkloadSelector{MatchLabels: map[string]string{"app": app}},
		Mtls:     &security.PeerAuthentication_MutualTLS{Mode: security.PeerAuthentication_MutualTLS_DISABLE},
	}
	o := &federation.Object{
		Key: key, Digest: "1", Names: []string{"workloads:shop/app=" + app, "plain-text:shop"},
		ProxyLabels: []string{"app"}, Spec: spec,
	}
	return federation.Edit{Objects: federation.Delta[federation.ObjectKey,
		*federation.Object]{Set: map[federation.ObjectKey]*federation.Object{key: o}}}
}

// takingMutualTLS are the endpoints of a service whose workloads have a sidecar.
func takingMutualTLS(workloads int) federation.Edit {
	e := serving(workloads)
	for _, shard := range e.Services.Set {
		for i := range shard.Endpoints {
			shard.Endpoints[i].TLSMode, shard.Endpoints[i].Labels = federation.MutualTLS, map[string]string{"app": "a1", "pod": fmt.Sprint(i)}
		}
	}
	return e
}

// TestK07EndpointsCostTheSameWithPeerAuthentications: a change of endpoints has the same
// resources built again, and building them reads as few objects, whether there is a
// PeerAuthentication for one workload or for each of 1,000.
func TestK07EndpointsCostTheSameWithPeerAuthentications(t *testing.T) {
	const workloads = 1000
	measured := func(policies int) (again, read int, allocated float64) {
		s, _ := federation.Next(federation.Empty(), federation.Edit{Clusters: federation.Delta[federation.ClusterID, federation.ClusterSpec]{
			Set: map[federation.ClusterID]federation.ClusterSpec{"c1": {Provider: federation.Mock}},
		}})
		s, _ = federation.Next(s, takingMutualTLS(workloads))
		for i := range policies {
			s, _ = federation.Next(s, plainFor(fmt.Sprint("a", i+1)))
		}
		metadata, err := structpb.NewStruct(map[string]any{"CLUSTER_ID": "c1", "IDENTITY_SOURCE": "ads"})
		if err != nil {
			t.Fatal(err)
		}
		n, err := envoy.ParseNode(&corev3.Node{Id: "sidecar~10.9.0.1~client.shop~shop.svc.cluster.local", Metadata: metadata})
		if err != nil {
			t.Fatal(err)
		}
		index, seen := derive.NewIndex[string](), map[federation.ObjectKey]bool{}
		for _, typ := range []envoy.Type{envoy.ClusterType, envoy.EndpointType} {
			for _, f := range envoy.Facets(typ, n, s) {
				for _, name := range envoy.Names(typ, f, s) {
					r := s.Read()
					if m, _, err := envoy.Build(typ, name, f, r); m == nil || err != nil {
						continue // of another place
					}
					index.Replace(fmt.Sprint(typ, f, name), federation.Deps{}, r.Deps())
					if typ == envoy.EndpointType {
						for key := range r.Deps().Objects.All() {
							if key.Kind == "PeerAuthentication" {
								seen[key] = true
							}
						}
						allocated += testing.AllocsPerRun(3, func() { envoy.Build(typ, name, f, s.Read()) })
					}
				}
			}
		}
		after, changes := federation.Next(s, takingMutualTLS(workloads-1))
		found := map[string]bool{}
		for _, name := range index.Affected(changes, after) {
			found[name] = true
		}
		return len(found), len(seen), allocated
	}
	again, read, few := measured(1)
	againOf, readOf, many := measured(workloads)
	t.Logf("1 object: %d resources built again, %d objects read, %.0f allocations; 1,000 objects: %d, %d, %.0f", again,
		read, few, againOf, readOf, many)
	if again == 0 || againOf != again || readOf != read || many > few*1.1 {
		t.Errorf("a change of endpoints has %d resources built again, which read %d objects with %.0f allocations, and %d, %d, %.0f where there are 1,000 objects", again, read, few, againOf, readOf, many)
	}
}
