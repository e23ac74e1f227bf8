package supported_test

import (
	"testing"

	networking "istio.io/api/networking/v1"
	envoyfilters "istio.io/api/networking/v1alpha3"
	security "istio.io/api/security/v1"
	telemetry "istio.io/api/telemetry/v1"
	selection "istio.io/api/type/v1beta1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/node"
	"isthmus.dev/isthmus/xds/envoy/supported"
)

// TestG90ObjectsConcernTheProxiesThatTheySelect: objects that select proxies, or are exported to some, concern these alone.
func TestG90ObjectsConcernTheProxiesThatTheySelect(t *testing.T) {
	t.Parallel()
	nothing := federation.Empty().Read()
	web := &selection.WorkloadSelector{MatchLabels: map[string]string{"app": "web"}}
	for _, c := range []struct {
		kind     federation.Kind
		spec     any
		scope    node.Scope
		web, api bool // whether the object concerns proxies with the label app
	}{
		{federation.GatewayKind, &networking.Gateway{Selector: web.MatchLabels}, node.ScopeGateway, true, false},
		{federation.AuthorizationPolicyKind, &security.AuthorizationPolicy{Selector: web}, node.ScopeInbound, true, false},
		{federation.RequestAuthenticationKind, &security.RequestAuthentication{Selector: web}, node.ScopeInbound, true, false},
		{federation.PeerAuthenticationKind, &security.PeerAuthentication{Selector: web}, node.ScopeInbound, true, false},
		{federation.PeerAuthenticationKind, &security.PeerAuthentication{Selector: web}, node.ScopePublic, true, true}, // of servers
		{federation.EnvoyFilterKind, &envoyfilters.EnvoyFilter{}, node.ScopeInbound, false, false},                     // facets name theirs
		{federation.TelemetryKind, &telemetry.Telemetry{}, node.ScopeInbound, false, false},                            // and these
		{federation.DestinationRuleKind, &networking.DestinationRule{}, node.ScopeNamespaced, true, true},
		{federation.DestinationRuleKind, &networking.DestinationRule{ExportTo: []string{"."}}, node.ScopeNamespaced, true, true},
		{federation.DestinationRuleKind, &networking.DestinationRule{ExportTo: []string{"."}}, node.ScopePublic, false, false},
		{federation.DestinationRuleKind, &networking.DestinationRule{ExportTo: []string{"bank"}}, node.ScopeNamespaced, false, false},
		{federation.DestinationRuleKind, &networking.DestinationRule{WorkloadSelector: web}, node.ScopeNamespaced, true, false},
	} {
		o := &federation.Object{
			Key:  federation.ObjectKey{Group: c.kind.Group, Kind: c.kind.Name, Namespace: "shop", Name: "a"},
			Spec: c.spec,
		}
		for label, want := range map[string]bool{"app=web": c.web, "app=api": c.api} {
			if got := supported.Concerns(o, node.Facet{Scope: c.scope, Namespace: "shop", Labels: label}, nothing); got != want {
				t.Errorf("%s concerns facets %s with %s: %t, want %t", o.Key, c.scope, label, got, want)
			}
		}
	}
}
