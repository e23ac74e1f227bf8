package envoy_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy"
	"isthmus.dev/isthmus/xds/envoy/check"
)

// Whatever registries say and whatever proxy asks: every resource is valid, no
// name exists twice, every name that is referred to exists, and the same
// arguments give the same bytes.
func TestAnySnapshotGivesValidResources(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, n := drawSnapshot(t), drawNode(t)
		built := buildAll(t, n, s)
		checkReferences(t, n, built)
		for typ, again := range buildAll(t, n, s) {
			for i, r := range again {
				if !bytes.Equal(marshal(t, r.message), marshal(t, built[typ][i].message)) {
					t.Fatalf("%s %s has other bytes when built again", typ, r.name)
				}
			}
		}
	})
}

// Envoy itself takes what is built from arbitrary snapshots. That at hand has none of Istio's
// filters.
func TestEnvoyTakesAnySnapshot(t *testing.T) {
	for seed := range 12 {
		fixture := rapid.Custom(func(t *rapid.T) map[envoy.Type][]builtResource {
			n := drawNode(t)
			n.Stats = false
			return buildAll(t, n, drawSnapshot(t))
		}).Example(seed)
		if err := testbed.ValidateEnvoy(t, withProxyFiles(t, bootstrap(t, fixture))); err != nil {
			t.Errorf("seed %d: %v\n%s", seed, err, bootstrap(t, fixture))
		}
	}
}

// FuzzBuild builds every name that anything refers to, under every facet: no
// name is a reason to panic, and what exists is valid.
func FuzzBuild(f *testing.F) {
	choices := make([]byte, 64<<10) // enough for rapid to draw everything from
	_, _ = rand.NewChaCha8([32]byte{1}).Read(choices)
	for _, name := range []string{
		"", "outbound|80||web.shop.svc.cluster.local", "outbound|80|v1|web", "outbound|99999||x", "0.0.0.0_80", "10.1.0.1_443",
		"fd00::1_443", "_", "80", "http_proxy", "virtualInbound", "PassthroughCluster", "::_80",
		"web.shop.svc.cluster.local:80", "web:80", ":", "*.example.com:443", "front.example:80",
	} {
		f.Add(name, choices)
	}
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		rapid.MakeFuzz(func(t *rapid.T) {
			s, n, g := drawSnapshot(t), drawNode(t), drawGRPCNode(t)
			for _, typ := range allTypes {
				for _, facet := range append(envoy.Facets(typ, n, s), envoy.Facets(typ, g, s)...) {
					m, _, err := envoy.Build(typ, name, facet, s.Read())
					if err == nil && m != nil {
						err = check.Resource(m)
					}
					if err != nil {
						t.Fatalf("%s: %v", facet, err)
					}
				}
			}
		})(t, data)
	})
}

func buildAll(t fataler, n envoy.Node, s *federation.Snapshot) map[envoy.Type][]builtResource {
	all := map[envoy.Type][]builtResource{}
	for _, typ := range allTypes {
		all[typ] = build(t, typ, n, s)
	}
	return all
}

func marshal(t fataler, m proto.Message) []byte {
	t.Helper()
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		t.Fatalf("marshalling: %v", err)
	}
	return b
}
