package envoy_test

import (
	"fmt"
	"iter"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"sigs.k8s.io/yaml"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/federationtest"
	"isthmus.dev/isthmus/internal/prototest"
	"isthmus.dev/isthmus/xds/envoy"
	"isthmus.dev/isthmus/xds/envoy/supported"
)

// TestSupportedFieldsHaveAnEffect takes each field that is listed as supported out of
// a valid object, one at a time, and expects that some proxy gets other bytes. Every
// other field of a kind must be listed with the reason why it has no effect.
func TestSupportedFieldsHaveAnEffect(t *testing.T) {
	s := federationtest.Load(t, "testdata/supported/mesh.txtar")
	proxies := map[string]envoy.Node{}
	for _, proxy := range s.Proxies {
		proxies[proxy.Name] = nodeOf(t, proxy)
	}
	for _, k := range supported.Kinds() {
		fields, refused := supported.Fields(k)
		if len(fields) == 0 || supported.Merged(k) || !isMessage(t, k) {
			continue // no part of a resource is made of its fields, or TestG76 tries them
		}
		kind := k.Name
		t.Run(kind, func(t *testing.T) {
			f := fieldTrial{
				t: t, mesh: s.Snapshot(), proxies: proxies, pieces: piecesOf(maps.Keys(proxies)), set: map[string]bool{}, works: map[string]bool{},
			}
			for _, o := range triedObjects(t, kind) {
				for _, field := range envoy.NotHonoured(o) {
					t.Errorf("%s: %s: %s", o.Key.Name, field.Path, field.Reason)
				}
				f.object(o)
			}
			for _, path := range leavesOf(specOf(t, kind).ProtoReflect().Descriptor(), "", 0) {
				switch {
				case isBelow(path, refused), isBelow(path, supported.OfHub(k)): // users get the reason, or the hub acts by it
				case !isBelow(path, fields):
					t.Errorf("%s is neither supported nor listed as not supported", path)
				case !f.set[path]:
					t.Errorf("no object of testdata/supported has %s", path)
				case !f.works[path]:
					t.Errorf("%s is listed as supported, but no proxy gets other bytes without it", path)
				}
			}
		})
	}
}

// TestG81EveryFieldOfEntriesIsListed, as supported or with the reason why not. Package external tries
// what the supported ones change.
func TestG81EveryFieldOfEntriesIsListed(t *testing.T) {
	count := 0
	for _, k := range supported.Kinds() {
		if !supported.Merged(k) {
			continue
		}
		count++
		fields, refused := supported.Fields(k)
		for _, path := range leavesOf(specOf(t, k.Name).ProtoReflect().Descriptor(), "", 0) {
			if isBelow(path, fields) == isBelow(path, refused) {
				t.Errorf("%s: %s is neither supported nor listed as not supported, or both", k, path)
			}
		}
	}
	if count != 3 {
		t.Errorf("%d kinds are merged, want ServiceEntry, WorkloadEntry and WorkloadGroup", count)
	}
}

// TestG81ProbesOfGroupsAreReported: the hub sends no probes, and says where they belong.
func TestG81ProbesOfGroupsAreReported(t *testing.T) {
	w := newFixture().config(t,
		"kind: WorkloadGroup\nmetadata: {name: n, namespace: shop}\nspec: {metadata: {labels: {a: b}}, template: {serviceAccount: a}, probe: {periodSeconds: 1, httpGet: {port: 80}}}")
	for o := range w.snapshot.Objects().All() {
		found := envoy.NotHonoured(o)
		if len(found) != 1 || found[0].Path != "probe" || !strings.Contains(found[0].Reason, "readinessProbe") {
			t.Errorf("reported are %v, want the probe", found)
		}
	}
}

// triedObjects are those of the kind's file; policies are at each place of a
// DestinationRule that takes them.
func triedObjects(t *testing.T, kind string) []*federation.Object {
	t.Helper()
	w := newFixture().config(t, string(readFile(t, "testdata/supported/"+strings.ToLower(kind)+".yaml")))
	if kind == "DestinationRule" {
		var policies []map[string]any
		if err := yaml.UnmarshalStrict(readFile(t, "testdata/supported/policies.yaml"), &policies); err != nil {
			t.Fatal(err)
		}
		for i, policy := range policies {
			ofPort := maps.Clone(policy)
			ofPort["port"] = map[string]any{"number": 80}
			everywhere := []any{ofPort}
			for place, p := range map[string]map[string]any{"all": policy, "port": {"portLevelSettings": everywhere}} {
				w.config(t, ruleText(t, fmt.Sprintf("%s-%d", place, i), map[string]any{"trafficPolicy": p}))
				subset := map[string]any{"name": "v1", "labels": map[string]any{"version": "v1"}, "trafficPolicy": p}
				w.config(t, ruleText(t, fmt.Sprintf("subset-%s-%d", place, i), map[string]any{"subsets": []any{subset}}))
			}
		}
	}
	return slices.Collect(w.snapshot.Objects().All())
}

func ruleText(t *testing.T, name string, spec map[string]any) string {
	t.Helper()
	spec["host"] = "store.shop.svc.cluster.local"
	text, err := yaml.Marshal(map[string]any{"kind": "DestinationRule", "metadata": map[string]any{
		"name":      name,
		"namespace": "shop",
	}, "spec": spec})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// fieldTrial finds out which fields have an effect on proxies of a mesh.
type fieldTrial struct {
	t       *testing.T
	mesh    *federation.Snapshot
	proxies map[string]envoy.Node
	pieces  pieces
	set     map[string]bool // paths that some object has
	works   map[string]bool // paths without which some proxy gets other bytes
}

// object tries the fields of one object, beside nothing but the mesh.
func (f *fieldTrial) object(o *federation.Object) {
	spec, ok := o.Spec.(proto.Message)
	if !ok {
		f.t.Fatalf("%s has no spec of Istio", o.Key)
	}
	whole := remembered(f.resources(o, spec))
	prototest.WithoutEach(spec, func(path string) {
		f.set[path] = true
		f.works[path] = f.works[path] || f.pieces.differ(whole, f.resources(o, spec))
	})
}

// resources are what the proxies get if the object has that spec.
func (f *fieldTrial) resources(o *federation.Object, spec proto.Message) func(piece) map[string]string {
	tried := *o
	tried.Spec = proto.Clone(spec)
	index(&tried)
	tried.Digest = fmt.Sprint(spec)
	w := fixture{snapshot: f.mesh}
	w.configure(&tried)
	return func(p piece) map[string]string {
		got := map[string]string{}
		for _, facet := range envoy.Facets(p.typ, f.proxies[p.proxy], w.snapshot) {
			for _, name := range envoy.Names(p.typ, facet, w.snapshot) {
				m, _, err := envoy.Build(p.typ, name, facet, w.snapshot.Read())
				if err != nil {
					f.t.Fatalf("%s without a field: building %s: %v", o.Key, name, err)
				}
				if m != nil {
					got[fmt.Sprint(facet, name)] = string(marshal(f.t, m))
				}
			}
		}
		return got
	}
}

// piece is what one proxy gets of one type.
type piece struct {
	proxy string
	typ   envoy.Type
}

// pieces are those of all proxies. What differed last comes first: the next field of an object mostly
// shows there, too.
type pieces []piece

func piecesOf(proxies iter.Seq[string]) pieces {
	var all pieces
	for _, proxy := range slices.Sorted(proxies) {
		for _, typ := range allTypes {
			all = append(all, piece{proxy, typ})
		}
	}
	return all
}

// differ reports whether some proxy gets other resources.
func (all pieces) differ(before, after func(piece) map[string]string) bool {
	at := slices.IndexFunc(all, func(p piece) bool { return !maps.Equal(before(p), after(p)) })
	if at < 0 {
		return false
	}
	found := all[at]
	copy(all[1:], all[:at])
	all[0] = found
	return true
}

// remembered builds each piece once.
func remembered(resources func(piece) map[string]string) func(piece) map[string]string {
	known := map[piece]map[string]string{}
	return func(p piece) map[string]string {
		if known[p] == nil {
			known[p] = resources(p)
		}
		return known[p]
	}
}

// leavesOf are the paths of all values of a message, as deep as specs go.
func leavesOf(d protoreflect.MessageDescriptor, path string, depth int) []string {
	var leaves []string
	for i := range d.Fields().Len() {
		field := d.Fields().Get(i)
		below := strings.TrimPrefix(path+"."+field.JSONName(), ".")
		switch {
		case prototest.IsLeaf(field) || depth > 8:
			leaves = append(leaves, below)
		case field.IsMap():
			leaves = append(leaves, leavesOf(field.MapValue().Message(), below, depth+1)...)
		default:
			leaves = append(leaves, leavesOf(field.Message(), below, depth+1)...)
		}
	}
	return leaves
}

// isBelow reports whether the path is one of the paths or below one.
func isBelow(path string, paths []string) bool {
	return slices.ContainsFunc(paths, func(p string) bool { return path == p || strings.HasPrefix(path, p+".") })
}
