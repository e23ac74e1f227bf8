package xds

import (
	"fmt"
	"slices"
	"testing"

	meshapi "istio.io/api/mesh/v1alpha1"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/xds/envoy"
	"isthmus.dev/isthmus/xds/envoy/transport"
	"isthmus.dev/isthmus/xds/xdstest"
)

// trust stores the roots of trust domains for the proxy.
func (v *fakeSecrets) trust(ref SecretRef, fingerprint string, m transport.KeyMaterial) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.byRef[ref] = Secret{Fingerprint: fingerprint, Material: m}
	close(v.changed)
	v.changed = make(chan struct{})
}

// TestU06AgentsGetTheRootsOfAllTrustDomains, again when they change, and each root once.
func TestU06AgentsGetTheRootsOfAllTrustDomains(t *testing.T) {
	one, two, three := testbed.NewAuthority(t, "one").PEM, testbed.NewAuthority(t, "two").PEM, testbed.NewAuthority(t, "three").PEM
	bothVariants(t, func(t *testing.T, delta bool) {
		v := newSecretsHub(t, true)
		v.server.options.Access = anybody{}
		v.onSocket()
		n := node("web-1")
		ref := SecretRef{Cluster: "c1", Namespace: "shop", Workload: meshWorkload, Node: n.Id, Authorities: true}
		v.secrets.trust(ref, "1", transport.KeyMaterial{Authorities: one})
		c := v.client(xdstest.Options{Delta: delta, Node: n})
		want := func(r xdstest.Response, roots ...[]byte) {
			t.Helper()
			if len(r.Resources) != 1 {
				t.Fatalf("there are %d resources", len(r.Resources))
			}
			for _, packed := range r.Resources {
				var got meshapi.ProxyConfig
				if err := packed.UnmarshalTo(&got); err != nil {
					t.Fatal(err)
				}
				var texts []string
				for _, root := range roots {
					texts = append(texts, string(root))
				}
				if !slices.Equal(got.GetCaCertificatesPem(), texts) {
					t.Errorf("the roots are %q", got.GetCaCertificatesPem())
				}
			}
		}
		want(c.get(xdstest.Request{Type: string(envoy.ProxyConfigType)}), one)
		v.secrets.trust(ref, "2", transport.KeyMaterial{Bundles: map[string][]byte{
			"b.example": slices.Concat(two, three),
			"a.example": one, "c.example": two,
		}})
		want(c.accept(string(envoy.ProxyConfigType)), one, two, three)
		if n := v.secrets.follows(ref); n != 1 {
			t.Errorf("%d follow the roots", n)
		}
		c.Close()
		v.eventuallyFollows(ref, 0)
	})
}

func (v *secretsHub) eventuallyFollows(ref SecretRef, want int) {
	v.t.Helper()
	testbed.WaitFor(v.t, patience, "the stream to let go", func() error {
		if n := v.secrets.follows(ref); n != want {
			return fmt.Errorf("%d follow the roots", n)
		}
		return nil
	})
}
