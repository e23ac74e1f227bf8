package envoy_test

import (
	"testing"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"

	"isthmus.dev/isthmus/xds/envoy"
)

// TestU28WorkloadsGetWhatGatewaysSayAboutClients: where the caller has a certificate, the sidecar
// keeps x-forwarded-client-cert and appends what Istio's sidecar does. Elsewhere it removes it.
func TestU28WorkloadsGetWhatGatewaysSayAboutClients(t *testing.T) {
	w := newFixture().attach("c1", "").say("c1", webKey, web(at("10.7.0.2", 8080)))
	n := parse(t, "sidecar~10.7.0.2~web-1.shop~shop.svc.cluster.local",
		map[string]any{"CLUSTER_ID": "c1", "NAMESPACE": "shop", "IDENTITY_SOURCE": "ads"})
	certified, plain := 0, 0
	for _, r := range build(t, envoy.ListenerType, n, w.snapshot) {
		for _, chain := range r.message.(*listenerv3.Listener).GetFilterChains() {
			var m hcmv3.HttpConnectionManager
			if filters := chain.GetFilters(); filters[len(filters)-1].GetTypedConfig().UnmarshalTo(&m) != nil || m.GetRouteConfig() == nil {
				continue // bytes, or requests of the workload itself
			}
			details, want := m.GetSetCurrentClientCertDetails(), hcmv3.HttpConnectionManager_SANITIZE
			if chain.GetTransportSocket() != nil {
				certified++
				want = hcmv3.HttpConnectionManager_APPEND_FORWARD
				if !details.GetUri() || !details.GetDns() || !details.GetSubject().GetValue() || details.GetCert() || details.GetChain() {
					t.Errorf("%s of %s appends %v", chain.GetName(), r.name, details)
				}
			} else {
				plain++
			}
			if m.GetForwardClientCertDetails() != want {
				t.Errorf("%s of %s: %s, want %s", chain.GetName(), r.name, m.GetForwardClientCertDetails(), want)
			}
		}
	}
	if certified == 0 || plain == 0 {
		t.Errorf("there are %d chains with mutual TLS and %d without", certified, plain)
	}
}
