package envoy_test

import (
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/structpb"
	"pgregory.net/rapid"

	"isthmus.dev/isthmus/xds/envoy"
)

// anySetting draws what may be in metadata: what agents send, and anything else.
func anySetting(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		kind := rapid.IntRange(0, 5).Draw(t, "kind")
		if depth == 0 {
			kind %= 4
		}
		switch kind {
		case 0:
			return rapid.SampledFrom([]any{nil, "", "NaN", "Infinity", "-1", "2", "SANITIZE", "no such", "a\x00b", "1"}).Draw(t, "text")
		case 1:
			return rapid.Float64().Draw(t, "number")
		case 2:
			return float64(rapid.IntRange(-1, 200).Draw(t, "count"))
		case 3:
			return rapid.Bool().Draw(t, "flag")
		case 4:
			return []any{anySetting(depth-1).Draw(t, "item")}
		}
		fields := map[string]any{}
		for _, name := range rapid.SliceOfN(rapid.SampledFrom([]string{
			"gatewayTopology", "numTrustedProxies", "forwardClientCertDetails", "proxyProtocol", "tracing", "sampling", "zipkin",
			"proxyHeaders", "requestId", "envoyDebugHeaders", "server", "disabled", "connectionSettings", strings.Repeat("x\n", 300),
		}), 0, 5).Draw(t, "names") {
			fields[name] = anySetting(depth-1).Draw(t, name)
		}
		return fields
	})
}

// TestPropertyU71SettingsRefuseNoProxy whatever is in them. Equal nodes have equal facets: a number that is none would
// have a proxy share nothing, not even with itself.
func TestPropertyU71SettingsRefuseNoProxy(t *testing.T) {
	s := newFixture().attach("c1", "").config(t, oneGateway).snapshot
	rapid.Check(t, func(t *rapid.T) {
		metadata, err := structpb.NewStruct(map[string]any{
			"CLUSTER_ID": "c1", "NAMESPACE": "edge", "LABELS": map[string]any{"istio": "ingress"}, "PROXY_CONFIG": anySetting(3).Draw(t, "config"),
			"HTTP10": anySetting(1).Draw(t, "http10"), "IDLE_TIMEOUT": anySetting(1).Draw(t, "timeout"),
		})
		if err != nil {
			t.Fatal(err)
		}
		node := &corev3.Node{Id: "router~10.0.0.9~gw.edge~edge.svc.cluster.local", Metadata: metadata}
		n, err := envoy.ParseNode(node)
		if err != nil {
			t.Fatalf("the proxy is refused: %v", err)
		}
		if len(n.Ignored) > 1024 || strings.ContainsAny(n.Ignored, "\x00\n") {
			t.Errorf("the list for the log is %q", n.Ignored)
		}
		again, err := envoy.ParseNode(node)
		if err != nil {
			t.Fatal(err)
		}
		one, other := envoy.Facets(envoy.ListenerType, n, s), envoy.Facets(envoy.ListenerType, again, s)
		for i := range one {
			if one[i] != other[i] {
				t.Errorf("%s is not %s", one[i], other[i])
			}
		}
	})
}

// TestU71SettingsWithoutEffectAreNamed, and those that cannot be read.
func TestU71SettingsWithoutEffectAreNamed(t *testing.T) {
	for name, c := range map[string]struct {
		metadata map[string]any
		want     string
	}{
		"as istiod has them": {map[string]any{
			"HTTP10": "1", "IDLE_TIMEOUT": "0s", "PROXY_CONFIG": map[string]any{
				"discoveryAddress": "hub:15012", "concurrency": 2.0, "statusPort": 15020.0, "meshId": nil, "tracing": map[string]any{},
				"gatewayTopology": map[string]any{"numTrustedProxies": 1.0, "proxyProtocol": map[string]any{}, "forwardClientCertDetails": "SANITIZE"},
				"proxyHeaders": map[string]any{
					"requestId": map[string]any{"disabled": true}, "server": map[string]any{"disabled": true},
					"attemptCount": map[string]any{"disabled": true},
				},
			},
		}, ""},
		"not supported": {map[string]any{
			"IDLE_TIMEOUT": "1h", "PROXY_CONFIG": map[string]any{
				"tracing":      map[string]any{"sampling": 5.0, "zipkin": map[string]any{"address": "zipkin:9411"}},
				"proxyHeaders": map[string]any{"server": map[string]any{"value": "us"}},
			},
		}, "IDLE_TIMEOUT, PROXY_CONFIG.proxyHeaders.server, PROXY_CONFIG.tracing.zipkin"},
		"of other types": {map[string]any{"PROXY_CONFIG": map[string]any{
			"gatewayTopology": map[string]any{"numTrustedProxies": 1.5, "proxyProtocol": true, "forwardClientCertDetails": 4.0},
			"tracing":         []any{"all"},
		}}, "PROXY_CONFIG.gatewayTopology.forwardClientCertDetails, PROXY_CONFIG.gatewayTopology.numTrustedProxies, " +
			"PROXY_CONFIG.gatewayTopology.proxyProtocol, PROXY_CONFIG.tracing"},
		"no object": {map[string]any{"PROXY_CONFIG": "{}"}, "PROXY_CONFIG"},
	} {
		if n := parse(t, "router~10.0.0.9~gw.edge~edge.svc.cluster.local", c.metadata); n.Ignored != c.want {
			t.Errorf("%s: %q has no effect, want %q", name, n.Ignored, c.want)
		}
	}
}
