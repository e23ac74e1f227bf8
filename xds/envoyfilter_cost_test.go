package xds

import (
	"fmt"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/structpb"
	api "istio.io/api/networking/v1alpha3"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/derive"
	"isthmus.dev/isthmus/xds/envoy"
)

// namedFilter is an EnvoyFilter of the namespace with a patch of the resource of that name.
func namedFilter(namespace, name, resource string, listener bool, stat string) *federation.Object {
	value, _ := structpb.NewStruct(map[string]any{"alt_stat_name": stat})
	p := &api.EnvoyFilter_EnvoyConfigObjectPatch{
		ApplyTo: api.EnvoyFilter_CLUSTER, Patch: &api.EnvoyFilter_Patch{Operation: api.EnvoyFilter_Patch_MERGE, Value: value},
		Match: &api.EnvoyFilter_EnvoyConfigObjectMatch{ObjectTypes: &api.EnvoyFilter_EnvoyConfigObjectMatch_Cluster{Cluster: &api.EnvoyFilter_ClusterMatch{Name: resource}}},
	}
	of := federation.PatchedCluster
	if listener {
		of, p.ApplyTo = federation.PatchedListener, api.EnvoyFilter_LISTENER
		p.Patch.Value, _ = structpb.NewStruct(map[string]any{"stat_prefix": stat})
		p.Match.ObjectTypes = &api.EnvoyFilter_EnvoyConfigObjectMatch_Listener{Listener: &api.EnvoyFilter_ListenerMatch{Name: resource}}
	}
	spec := &api.EnvoyFilter{ConfigPatches: []*api.EnvoyFilter_EnvoyConfigObjectPatch{p}}
	key := tenantKey("EnvoyFilter", name)
	key.Namespace = namespace
	return &federation.Object{Key: key, Digest: stat, Spec: spec, Names: []string{
		federation.WorkloadsName + namespace,
		federation.PatchName(namespace, of, resource),
	}}
}

func shopNode(t *testing.T, namespace string) envoy.Node {
	t.Helper()
	metadata, err := structpb.NewStruct(map[string]any{"CLUSTER_ID": "c1"})
	if err != nil {
		t.Fatal(err)
	}
	n, err := envoy.ParseNode(&corev3.Node{
		Id:       fmt.Sprintf("sidecar~10.9.0.1~w.%s~%s.svc.cluster.local", namespace, namespace),
		Metadata: metadata,
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// builtFor has all that a proxy gets in an index of what it was built from.
func builtFor(t *testing.T, n envoy.Node, s *federation.Snapshot) *derive.Index[string] {
	t.Helper()
	index := derive.NewIndex[string]()
	for _, kind := range pushOrder {
		for _, f := range envoy.Facets(kind, n, s) {
			for _, name := range envoy.Names(kind, f, s) {
				r := s.Read()
				if _, _, err := envoy.Build(kind, name, f, r); err != nil {
					t.Fatal(err)
				}
				index.Replace(fmt.Sprintf("%s %s", kind.Row().Title, name), federation.Deps{}, r.Deps())
			}
		}
	}
	return index
}

func affectedBy(index *derive.Index[string], s *federation.Snapshot, e federation.Edit) map[string]bool {
	after, changes := federation.Next(s, e)
	found := map[string]bool{}
	for _, name := range index.Affected(changes, after) {
		found[name] = true
	}
	return found
}

// TestK35EnvoyFiltersCostWhatTheyTouch: with 1,000 EnvoyFilters, a change of endpoints has the same
// resources built again as without, and a changed EnvoyFilter only the one that it patches. Proxies
// of other namespaces have the facets that they had.
func TestK35EnvoyFiltersCostWhatTheyTouch(t *testing.T) {
	start := func(filters int) *federation.Snapshot {
		s, _ := federation.Next(federation.Empty(), serving(10))
		s, _ = federation.Next(s, setObjects(enablingFilters("shop")))
		for i := range filters {
			s, _ = federation.Next(s, setObjects(namedFilter("shop", fmt.Sprint("f", i), fmt.Sprintf("outbound|%d||web.shop", 80+i), false, "a")))
		}
		return s
	}
	n, other := shopNode(t, "shop"), shopNode(t, "bank")
	without, with := start(0), start(1000)
	plain := affectedBy(builtFor(t, n, without), without, serving(9))
	index := builtFor(t, n, with)
	if got := affectedBy(index, with, serving(9)); len(got) != len(plain) {
		t.Errorf("a change of endpoints has %v built again without EnvoyFilters, and %v with them", plain, got)
	}
	if got := affectedBy(index, with, setObjects(namedFilter("shop", "f0", "outbound|80||web.shop", false, "b"))); len(got) != 1 {
		t.Errorf("an EnvoyFilter that patches one cluster has %v built again", got)
	}
	if got := affectedBy(index, with, setObjects(namedFilter("shop", "f7", "outbound|87||web.shop", false, "b"))); len(got) != 0 {
		t.Errorf("an EnvoyFilter that patches nothing has %v built again", got)
	}
	if got := affectedBy(index, with, setObjects(namedFilter("shop", "new", "virtualInbound", true, "b"))); len(got) > 1 {
		t.Errorf("a new EnvoyFilter for a listener has %v built again", got)
	}
	for _, kind := range pushOrder {
		if before, after := envoy.Facets(kind, other, without), envoy.Facets(kind, other, with); fmt.Sprint(before) != fmt.Sprint(after) {
			t.Errorf("%s of another namespace: %v, then %v", kind, before, after)
		}
	}
}
