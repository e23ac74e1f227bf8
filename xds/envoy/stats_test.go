package envoy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	istiostats "istio.io/api/envoy/extensions/stats"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy"
)

// counting is a proxy that is built with the extensions.
func counting(t *testing.T, agent bool, extensions ...string) envoy.Node {
	t.Helper()
	metadata := map[string]any{"CLUSTER_ID": "c1"}
	if agent {
		metadata["WORKLOAD_IDENTITY_SOCKET_FILE"] = "socket"
	}
	said := &corev3.Node{Id: "sidecar~10.0.0.1~web.shop~shop.svc.cluster.local", Metadata: fields(t, metadata)}
	for _, name := range extensions {
		said.Extensions = append(said.Extensions, &corev3.Extension{Name: name})
	}
	n, err := envoy.ParseNode(said)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestU24IstiosFiltersAreForProxiesThatListThem, and that Istio's agent started; others get the same bytes as without
// the list.
func TestU24IstiosFiltersAreForProxiesThatListThem(t *testing.T) {
	w := sidecarFixture()
	for name, c := range map[string]struct {
		agent      bool
		extensions []string
		want       bool
	}{
		"of Istio's proxy": {true, []string{
			"envoy.filters.http.router", "envoy.filters.http.istio_stats",
			"envoy.filters.http.peer_metadata",
		}, true},
		"by Istio's names":     {true, []string{"istio.stats", "istio.metadata_exchange"}, true},
		"without the exchange": {true, []string{"istio.stats"}, false},
		"without the counters": {true, []string{"istio.metadata_exchange"}, false},
		"without an agent":     {false, []string{"istio.stats", "istio.metadata_exchange"}, false},
		"of an old proxy":      {true, []string{"istio.stats", "envoy.filters.network.metadata_exchange"}, false},
		"of another name":      {true, []string{"istio.stats.v2", "istio.metadata_exchange"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			with, without := everyByte(t, counting(t, c.agent, c.extensions...), w), everyByte(t, counting(t, c.agent), w)
			for _, filter := range []string{"istio.stats", "istio.metadata_exchange", "istio-peer-exchange"} {
				if got := strings.Count(with, filter) > strings.Count(without, filter); got != c.want {
					t.Errorf("the proxy has %s: %t, want %t", filter, got, c.want)
				}
			}
			if !c.want && with != without {
				t.Error("the list changes what the proxy gets")
			}
		})
	}
}

// everyByte is all that the proxy gets.
func everyByte(t *testing.T, n envoy.Node, s *federation.Snapshot) string {
	t.Helper()
	var all strings.Builder
	for _, typ := range allTypes {
		for _, r := range build(t, typ, n, s) {
			all.Write(marshal(t, r.message))
		}
	}
	return all.String()
}

// TestK64TelemetryDecidesWhatIsCounted: for each metric and tag, the last override of the closest object that
// matches.
func TestK64TelemetryDecidesWhatIsCounted(t *testing.T) {
	for name, c := range map[string]struct{ root, namespace, workload, want string }{
		"no objects":           {want: "counted"},
		"all is disabled":      {root: "[{overrides: [{disabled: true}]}]", want: "nothing"},
		"disabled for servers": {root: "[{overrides: [{match: {mode: SERVER}, disabled: true}]}]", want: "counted"},
		"disabled and enabled again": {
			root:      "[{overrides: [{disabled: true}]}]",
			namespace: "[{overrides: [{match: {metric: REQUEST_COUNT}, disabled: false}]}]", want: "counted requests_total",
		},
		"one is dropped": {
			namespace: "[{overrides: [{match: {metric: TCP_SENT_BYTES}, disabled: true}]}]",
			want:      "counted tcp_sent_bytes_total:dropped",
		},
		"dropped and kept": {
			root:     "[{overrides: [{match: {metric: REQUEST_SIZE}, disabled: true}]}]",
			workload: "[{overrides: [{match: {metric: REQUEST_SIZE}, disabled: false}]}]", want: "counted request_bytes",
		},
		"a tag": {
			root: "[{overrides: [{match: {customMetric: own}, tagOverrides: {a: {value: request.host}}}]}]",
			want: "counted own:a=request.host",
		},
		"a tag replaced": {
			root:     "[{overrides: [{match: {customMetric: own}, tagOverrides: {a: {value: request.host}}}]}]",
			workload: "[{overrides: [{match: {customMetric: own}, tagOverrides: {a: {operation: REMOVE}}}]}]", want: "counted own:-a",
		},
		"a tag that cannot be": {
			root: "[{overrides: [{match: {customMetric: own}, tagOverrides: {a: {value: '('}, b: {}}}]}]",
			want: "counted own",
		},
		"another provider": {root: "[{providers: [{name: stackdriver}]}]", want: "nothing"},
		"the provider, closer": {
			root:     "[{providers: [{name: stackdriver}]}]",
			workload: "[{providers: [{name: prometheus}]}]", want: "counted",
		},
		"overrides of another provider": {
			root:     "[{providers: [{name: other}], overrides: [{disabled: true}]}]",
			workload: "[{providers: [{name: prometheus}]}]", want: "counted",
		},
		"the interval": {root: "[{reportingInterval: 5s}]", namespace: "[{reportingInterval: 7s}]", want: "counted every 7s"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture().attach("c1", "").say("c1", key("raw.shop"), tcp(90, federation.TCP, "10.96.0.2/32"))
			for _, o := range [][3]string{
				{"istio-system", "", c.root},
				{"shop", "", c.namespace},
				{"shop", "selector: {matchLabels: {app: web}}, ", c.workload},
			} {
				if o[2] != "" {
					w = w.config(t, fmt.Sprintf("kind: Telemetry\nmetadata: {name: m%d, namespace: %s}\nspec: {%smetrics: %s}",
						len(o[1]), o[0], o[1], o[2]))
				}
			}
			n := counting(t, true, "istio.stats", "istio.metadata_exchange")
			n.Labels = map[string]string{"app": "web"}
			l, _ := find[*listenerv3.Listener](t, build(t, envoy.ListenerType, n, w.snapshot), "10.96.0.2_90")
			if got := countersOf(t, l.GetFilterChains()[0].GetFilters()); got != c.want {
				t.Errorf("the proxy counts %q, want %q", got, c.want)
			}
		})
	}
}

// countersOf tells what the filters count.
func countersOf(t *testing.T, filters []*listenerv3.Filter) string {
	t.Helper()
	at := slices.IndexFunc(filters, func(f *listenerv3.Filter) bool { return f.GetName() == "istio.stats" })
	if at < 0 {
		return "nothing"
	}
	config := &istiostats.PluginConfig{}
	if err := filters[at].GetTypedConfig().UnmarshalTo(config); err != nil {
		t.Fatal(err)
	}
	said := "counted"
	if every := config.GetTcpReportingDuration(); every != nil {
		said += " every " + every.AsDuration().String()
	}
	for _, m := range config.GetMetrics() {
		said += " " + m.GetName()
		if m.GetDrop() {
			said += ":dropped"
		}
		for tag, value := range m.GetDimensions() {
			said += ":" + tag + "=" + value
		}
		for _, tag := range m.GetTagsToRemove() {
			said += ":-" + tag
		}
	}
	return said
}
