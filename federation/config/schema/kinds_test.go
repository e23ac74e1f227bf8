package schema

import (
	"slices"
	"strings"
	"testing"

	"isthmus.dev/isthmus/federation"
)

func load(t testing.TB) *Set {
	t.Helper()
	set, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func TestEveryKindIsKnown(t *testing.T) {
	set, listed := load(t), 0
	for group, kinds := range map[string]string{
		"networking.istio.io":       "VirtualService DestinationRule Gateway ServiceEntry WorkloadEntry WorkloadGroup Sidecar EnvoyFilter ProxyConfig",
		"security.istio.io":         "PeerAuthentication AuthorizationPolicy RequestAuthentication",
		"telemetry.istio.io":        "Telemetry",
		"gateway.networking.k8s.io": "Gateway GatewayClass HTTPRoute GRPCRoute TLSRoute TCPRoute UDPRoute ListenerSet BackendTLSPolicy ReferenceGrant",
		"multicluster.x-k8s.io":     "ServiceExport ServiceImport",
		"isthmus.dev":               "Cluster Drain Network ServiceBinding MeshSettings",
	} {
		for _, name := range strings.Fields(kinds) {
			listed++
			k, ok := set.Kind(federation.Kind{Group: group, Name: name})
			if !ok {
				t.Errorf("%s of %s is not known", name, group)
				continue
			}
			cluster := slices.Contains([]string{"Cluster", "Drain", "Network", "MeshSettings", "GatewayClass"}, name)
			if k.Namespaced == cluster || !slices.Contains(k.Versions, k.Storage) || k.Plural == "" || k.Singular == "" {
				t.Errorf("%s: %+v", name, k)
			}
		}
	}
	if got := len(set.Kinds()); got != listed {
		t.Errorf("%d kinds are known, want the %d above", got, listed)
	}
}

func TestEverySchemaAndRuleCompiles(t *testing.T) {
	versions := 0
	for _, d := range load(t).definitions {
		for _, v := range d.versions {
			versions++
			if _, err := v.manager(); err != nil {
				t.Error(err)
			}
			if _, err := v.rules(); err != nil {
				t.Error(err)
			}
		}
	}
	if versions < 45 {
		t.Errorf("%d versions, want 45 or more", versions)
	}
}

func TestLookupNamesTheNearestKind(t *testing.T) {
	set := load(t)
	for _, c := range []struct{ apiVersion, kind, code, says string }{
		{"networking.istio.io/v1", "VirtualServise", "UNKNOWN_KIND", "did you mean VirtualService of networking.istio.io/v1?"},
		{"networking.istio.io/v1", "virtualservice", "UNKNOWN_KIND", "did you mean VirtualService of networking.istio.io/v1?"},
		{"networking.istio.io/v1", "HTTPRoute", "UNKNOWN_KIND", "did you mean HTTPRoute of gateway.networking.k8s.io/v1?"},
		{
			"networking.istio.io/v1alpha9", "Gateway", "UNKNOWN_VERSION",
			"networking.istio.io/v1, networking.istio.io/v1alpha3 or networking.istio.io/v1beta1",
		},
		{"isthmus.dev/v1", "Pod", "UNKNOWN_KIND", "it has Cluster, Drain, MeshSettings, Network, ServiceBinding"},
		{"v1", "Service", "UNKNOWN_KIND", `no kind Service is known in group ""`},
		{"apps/v1", "Clustr", "UNKNOWN_KIND", "did you mean Cluster of isthmus.dev/v1?"},
		{"", "Service", "REQUIRED", "apiVersion"},
		{"v1", "", "REQUIRED", "kind"},
	} {
		_, p := set.Lookup(c.apiVersion, c.kind)
		if p == nil || string(p.Code) != c.code || !strings.Contains(p.Message, c.says) {
			t.Errorf("%s %s: %v, want %s that says %q", c.apiVersion, c.kind, p, c.code, c.says)
		}
	}
	for _, k := range set.Kinds() {
		for _, v := range k.Versions {
			if got, p := set.Lookup(k.Group+"/"+v, k.Name); p != nil || got.Kind != k.Kind {
				t.Errorf("%s of %s: %v", k.Name, v, p)
			}
		}
	}
}
