package envoy_test

import (
	"cmp"
	"slices"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"sigs.k8s.io/yaml"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy"
	"isthmus.dev/isthmus/xds/envoy/check"
	"isthmus.dev/isthmus/xds/envoy/node"
)

// fataler is a *testing.T or a *rapid.T.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// builtResource is a built resource with its name.
type builtResource struct {
	name    string
	message proto.Message
	reasons []envoy.Reason
	deps    federation.Deps
}

var allTypes = []envoy.Type{envoy.ClusterType, envoy.EndpointType, envoy.ListenerType, envoy.RouteType, envoy.NamesType}

// build makes all resources of a type for a node, by name. What is built must
// be valid, and no name may exist in two facets but for what is a namespace's own.
func build(t fataler, typ envoy.Type, n envoy.Node, s *federation.Snapshot) []builtResource {
	t.Helper()
	var found []builtResource
	facets := map[string]envoy.Facet{}
	for _, facet := range envoy.Facets(typ, n, s) {
		for _, name := range envoy.Names(typ, facet, s) {
			r := s.Read()
			m, reasons, err := envoy.Build(typ, name, facet, r)
			if err != nil {
				t.Fatalf("building: %v", err)
			}
			if m == nil {
				continue
			}
			if err := check.Resource(m); err != nil {
				t.Fatalf("%s: %v\n%s", facet, err, protojson.Format(m))
			}
			other, twice := facets[name]
			if twice && (other.Has(node.Prior) || other.Scope == node.ScopeBound || other.Balanced) {
				continue // what is for fewer proxies comes first
			}
			if twice {
				t.Fatalf("%s exists in facet %s and in facet %s", name, other, facet)
			}
			facets[name] = facet
			found = append(found, builtResource{name, m, reasons, r.Deps()})
		}
	}
	slices.SortFunc(found, func(a, b builtResource) int { return cmp.Compare(a.name, b.name) })
	return found
}

func namesOf(resources []builtResource) []string {
	names := []string{}
	for _, r := range resources {
		names = append(names, r.name)
	}
	return names
}

// find returns the resource of that name.
func find[M proto.Message](t testing.TB, resources []builtResource, name string) (M, []envoy.Reason) {
	t.Helper()
	for _, r := range resources {
		if r.name == name {
			return r.message.(M), r.reasons
		}
	}
	t.Fatalf("there is no %s, only %q", name, namesOf(resources))
	var none M
	return none, nil
}

// render is the resources as YAML with sorted keys.
func render(t testing.TB, resources []builtResource) []byte {
	t.Helper()
	var out []byte
	for _, r := range resources {
		json, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(r.message)
		if err != nil {
			t.Fatalf("rendering %s: %v", r.name, err)
		}
		text, err := yaml.JSONToYAML(append(append([]byte("["), json...), ']'))
		if err != nil {
			t.Fatalf("rendering %s: %v", r.name, err)
		}
		out = append(out, text...)
	}
	return out
}

// parse reads a node from an ID and metadata.
func parse(t fataler, id string, metadata map[string]any) envoy.Node {
	t.Helper()
	return parseAt(t, id, "", metadata)
}

// parseAt parses a node that says where it is, as region/zone/sub-zone.
func parseAt(t fataler, id, place string, metadata map[string]any) envoy.Node {
	t.Helper()
	l := locality(place)
	n, err := envoy.ParseNode(&corev3.Node{
		Id: id, Metadata: fields(t, metadata), Locality: &corev3.Locality{Region: l.Region, Zone: l.Zone, SubZone: l.SubZone},
	})
	if err != nil {
		t.Fatalf("parsing %s: %v", id, err)
	}
	return n
}

// fixture makes a snapshot in which each cluster says what is given, in its own
// network if it is named.
type fixture struct {
	snapshot *federation.Snapshot
}

func newFixture() *fixture {
	w := &fixture{snapshot: federation.Empty()}
	w.apply(federation.Edit{Settings: &federation.Settings{Addresses: federation.AddressPolicy{AllowLoopback: true}}})
	return w
}

func (w *fixture) apply(e federation.Edit) *fixture {
	w.snapshot, _ = federation.Next(w.snapshot, e)
	return w
}

func (w *fixture) attach(id federation.ClusterID, network federation.NetworkID) *fixture {
	return w.apply(federation.Edit{Clusters: federation.Delta[federation.ClusterID, federation.ClusterSpec]{
		Set: map[federation.ClusterID]federation.ClusterSpec{id: {Provider: federation.Mock, Network: network}},
	}})
}

func (w *fixture) say(id federation.ClusterID, key federation.ServiceKey, shard *federation.Shard) *fixture {
	return w.apply(federation.Edit{
		Source:   federation.ShardKey{Cluster: id, Provider: federation.Mock},
		Services: federation.Delta[federation.ServiceKey, *federation.Shard]{Set: map[federation.ServiceKey]*federation.Shard{key: shard}},
	})
}

func fields(t fataler, metadata map[string]any) *structpb.Struct {
	t.Helper()
	fields, err := structpb.NewStruct(metadata)
	if err != nil {
		t.Fatalf("metadata: %v", err)
	}
	return fields
}
