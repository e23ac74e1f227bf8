package envoy_test

import (
	"maps"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"

	"isthmus.dev/isthmus/xds/envoy"
)

// TestU49NamesInStatisticsEndWhereTheBootstrapLooks: for proxies of Istio's agents and of the hub's bootstraps, every
// cluster and every listener for requests; older agents and other proxies get what they got before.
func TestU49NamesInStatisticsEndWhereTheBootstrapLooks(t *testing.T) {
	w := sidecarFixture()
	for name, c := range map[string]struct {
		said map[string]any
		want bool
	}{
		"Istio's agent":        {map[string]any{"WORKLOAD_IDENTITY_SOCKET_FILE": "socket"}, true},
		"the hub's bootstrap":  {map[string]any{"STAT_NAMES": "delimited"}, true},
		"an older agent":       {map[string]any{"PROXY_CONFIG": map[string]any{"discoveryAddress": "hub:15012"}}, false},
		"another bootstrap":    {map[string]any{}, false},
		"one without capture":  {map[string]any{"STAT_NAMES": "delimited", "INTERCEPTION_MODE": "NONE", "HTTP_PROXY_PORT": "15080"}, true},
		"a proxy with filters": {map[string]any{"STAT_NAMES": "delimited", "DNS_CAPTURE": "true"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			metadata := map[string]any{"CLUSTER_ID": "c1"}
			maps.Copy(metadata, c.said)
			n, err := envoy.ParseNode(&corev3.Node{Id: "sidecar~10.0.0.1~web.shop~shop.svc.cluster.local", Metadata: fields(t, metadata)})
			if err != nil {
				t.Fatal(err)
			}
			clusters, managers := 0, 0
			for _, r := range build(t, envoy.ClusterType, n, w) {
				m, want := r.message.(*clusterv3.Cluster), ""
				if c.want {
					want = m.GetName() + ";"
				}
				if m.GetAltStatName() != want {
					t.Errorf("cluster %s counts as %q, want %q", m.GetName(), m.GetAltStatName(), want)
				}
				clusters++
			}
			for _, r := range build(t, envoy.ListenerType, n, w) {
				for _, prefix := range statPrefixes(t, r.message.(*listenerv3.Listener)) {
					if strings.HasSuffix(prefix, ";") != c.want {
						t.Errorf("a listener counts as %q", prefix)
					}
					managers++
				}
			}
			if clusters < 4 || managers < 1 {
				t.Errorf("there are %d clusters and %d listeners for requests", clusters, managers)
			}
		})
	}
	_, err := envoy.ParseNode(&corev3.Node{
		Id: "sidecar~10.0.0.1~web.shop~shop.svc.cluster.local", Metadata: fields(t, map[string]any{"STAT_NAMES": "dotted"}),
	})
	if err == nil || !strings.Contains(err.Error(), "STAT_NAMES") {
		t.Errorf("an unknown value gives %v", err)
	}
}

// statPrefixes are those of the HTTP connection managers of a listener.
func statPrefixes(t *testing.T, l *listenerv3.Listener) (all []string) {
	t.Helper()
	for _, chain := range append(l.GetFilterChains(), l.GetDefaultFilterChain()) {
		for _, f := range chain.GetFilters() {
			m := &hcmv3.HttpConnectionManager{}
			if f.GetTypedConfig().MessageIs(m) {
				if err := f.GetTypedConfig().UnmarshalTo(m); err != nil {
					t.Fatal(err)
				}
				all = append(all, m.GetStatPrefix())
			}
		}
	}
	return all
}
