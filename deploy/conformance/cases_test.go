package conformance

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/gateway-api/conformance/tests"
	"sigs.k8s.io/gateway-api/conformance/utils/suite"
	known "sigs.k8s.io/gateway-api/pkg/features"
)

var update = flag.Bool("update", false, "write the table of cases")

// page is the table of cases.
const page = "../../docs/gateway-api-conformance.md"

// A because says why cases do not run here. A name with * at its end means all that start so.
type because struct {
	reason string
	cases  []string
}

// left are the cases that do not run.
var left = []because{
	{"wants what a controller that deploys proxies or assigns addresses does, and the hub does neither", []string{
		"GatewayInfrastructure", "GatewayStaticAddresses",
	}},
	{"wants a route by the address that a client connects to; sidecars choose routes by the host of a request, as Istio's do", []string{
		"MeshFrontendHostname",
	}},
	{"datagrams of a port go to one backend alone", []string{"UDPRouteWeightedRouting"}},
	{"is for implementations that do not end TLS", []string{
		"TLSRouteListenerTerminateNotSupported",
		"TLSRouteListenerMixedTerminationNotSupported",
	}},
}

// choice are the cases that pass. The flag -everything also runs those that were not tried.
var choice = []string{
	"BackendTLSPolicy", "BackendTLSPolicyConflictResolution", "BackendTLSPolicyInvalidCACertificateRef",
	"BackendTLSPolicyInvalidKind", "BackendTLSPolicyObservedGenerationBump", "BackendTLSPolicySANValidation",
	"GRPCExactMethodMatching", "GRPCRouteHeaderMatching", "GRPCRouteListenerHostnameMatching", "GRPCRouteNamedRule",
	"GRPCRouteWeight", "GatewayClassObservedGenerationBump", "GatewayFrontendClientCertificateValidation",
	"GatewayFrontendClientCertificateValidationInsecureFallback", "GatewayFrontendInvalidDefaultClientCertificateValidation",
	"GatewayHTTPListenerIsolation", "GatewayInvalidFrontendClientCertificateValidation", "GatewayInvalidParametersRef",
	"GatewayInvalidRouteKind", "GatewayInvalidTLSBackendConfiguration", "GatewayInvalidTLSConfiguration",
	"GatewayListenerUnsupportedProtocol", "GatewayModifyListeners", "GatewayObservedGenerationBump", "GatewayOptionalAddressValue",
	"GatewaySecretInvalidReferenceGrant", "GatewaySecretMissingReferenceGrant", "GatewaySecretReferenceGrantAllInNamespace",
	"GatewaySecretReferenceGrantSpecific", "GatewayTLSBackendClientCertificate", "GatewayWithAttachedRoutes",
	"GatewayWithAttachedRoutesWithPort8080", "HTTPRoute303Redirect", "HTTPRoute307Redirect", "HTTPRoute308Redirect",
	"HTTPRouteBackendProtocolH2C", "HTTPRouteBackendProtocolWebSocket", "HTTPRouteBackendRequestHeaderModifier", "HTTPRouteCORS",
	"HTTPRouteCrossNamespace", "HTTPRouteDisallowedKind", "HTTPRouteExactPathMatching", "HTTPRouteHTTPSListener",
	"HTTPRouteHTTPSListenerDetectMisdirectedRequests", "HTTPRouteHeaderMatching", "HTTPRouteHostnameIntersection",
	"HTTPRouteInvalidBackendRefUnknownKind", "HTTPRouteInvalidCrossNamespaceBackendRef", "HTTPRouteInvalidCrossNamespaceParentRef",
	"HTTPRouteInvalidNonExistentBackendRef", "HTTPRouteInvalidParentRefNotMatchingListenerPort",
	"HTTPRouteInvalidParentRefNotMatchingSectionName", "HTTPRouteInvalidParentRefSectionNameNotMatchingPort",
	"HTTPRouteInvalidReferenceGrant", "HTTPRouteListenerHostnameMatching", "HTTPRouteListenerPortMatching", "HTTPRouteMatching",
	"HTTPRouteMatchingAcrossRoutes", "HTTPRouteMethodMatching", "HTTPRouteMultipleGateways", "HTTPRouteNamedRule",
	"HTTPRouteNoBackendRefs", "HTTPRouteObservedGenerationBump", "HTTPRoutePartiallyInvalidViaInvalidReferenceGrant",
	"HTTPRoutePathMatchOrder", "HTTPRouteQueryParamMatching", "HTTPRouteRedirectHostAndStatus", "HTTPRouteRedirectPath",
	"HTTPRouteRedirectPort", "HTTPRouteRedirectPortAndScheme", "HTTPRouteRedirectScheme", "HTTPRouteReferenceGrant",
	"HTTPRouteRequestHeaderModifier", "HTTPRouteRequestHeaderModifierBackendWeights", "HTTPRouteRequestMirror",
	"HTTPRouteRequestMultipleMirrors", "HTTPRouteRequestPercentageMirror", "HTTPRouteResponseHeaderModifier", "HTTPRouteRetry",
	"HTTPRouteRewriteHost", "HTTPRouteRewritePath", "HTTPRouteServiceTypes", "HTTPRouteSimpleSameNamespace",
	"HTTPRouteTimeoutBackendRequest", "HTTPRouteTimeoutRequest", "HTTPRouteWeight", "ListenerSetAllowedNamespaceNone",
	"ListenerSetAllowedNamespaceSame", "ListenerSetAllowedNamespaceSelector", "ListenerSetAllowedRoutesNamespaces",
	"ListenerSetAllowedRoutesSupportedKinds", "ListenerSetDefaultNotAllowed", "ListenerSetDualParentRefIndependence",
	"ListenerSetGatewayParentSectionNameNotFound", "ListenerSetHTTPRouting", "ListenerSetHostnameConflict",
	"ListenerSetProtocolConflict", "ListenerSetReferenceGrant", "ListenerSetRouteStatusScopedToParentRef", "MeshBasic",
	"MeshConsumerRoute", "MeshFrontend", "MeshGRPCRouteWeight", "MeshHTTPRoute303Redirect", "MeshHTTPRoute307Redirect",
	"MeshHTTPRoute308Redirect", "MeshHTTPRouteBackendRequestHeaderModifier", "MeshHTTPRouteMatching", "MeshHTTPRouteNamedRule",
	"MeshHTTPRouteQueryParamMatching", "MeshHTTPRouteRedirectHostAndStatus", "MeshHTTPRouteRedirectPath", "MeshHTTPRouteRedirectPort",
	"MeshHTTPRouteRequestHeaderModifier", "MeshHTTPRouteRewritePath", "MeshHTTPRouteSchemeRedirect",
	"MeshHTTPRouteSimpleSameNamespace", "MeshHTTPRouteWeight", "MeshPorts", "MeshTrafficSplit",
	"TCPRouteInvalidBackendRefNonexistent", "TCPRouteInvalidCrossNamespaceBackendRef", "TCPRouteInvalidNonTCPListener",
	"TCPRouteMultipleRoutesAttachment", "TCPRouteParentRefAttachAll", "TCPRouteParentRefPortAndSectionName", "TCPRouteReferenceGrant",
	"TCPRouteWeightedRouting", "TLSRouteHostnameIntersection", "TLSRouteInvalidBackendRefNonexistent",
	"TLSRouteInvalidBackendRefUnknownKind", "TLSRouteInvalidNoMatchingListener", "TLSRouteInvalidNoMatchingListenerHostname",
	"TLSRouteInvalidReferenceGrant", "TLSRouteListenerPassthroughSupportedKinds", "TLSRouteListenerTerminateSupportedKinds",
	"TLSRouteMixedTerminationSameNamespace", "TLSRouteSimpleSameNamespace", "TLSRouteTerminateSimpleSameNamespace",
	"UDPRoute", "UDPRouteInvalidBackendRefNonexistent", "UDPRouteInvalidCrossNamespaceBackendRef",
	"UDPRouteMultipleRoutesAttachment", "UDPRouteNotAllowedByListeners", "UDPRouteParentRefAttachAllListeners",
	"UDPRouteParentRefPortAndSectionName", "UDPRouteReferenceGrant",
}

// reasonNotToRun is why the case does not run here, or "".
func reasonNotToRun(name string) string {
	for _, b := range left {
		if slices.ContainsFunc(b.cases, func(pattern string) bool { return means(pattern, name) }) {
			return b.reason
		}
	}
	return ""
}

func means(pattern, name string) bool {
	start, end, wild := strings.Cut(pattern, "*")
	return name == pattern || wild && len(name) >= len(start)+len(end) && strings.HasPrefix(name, start) && strings.HasSuffix(name, end)
}

// TestG24TableListsEveryCase: the table has each case of the suite.
func TestG24TableListsEveryCase(t *testing.T) {
	want := table()
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if read(t, page) != want {
		t.Errorf("%s is not the table of the cases; run go test -run TestG24Table -update", page)
	}
	for _, name := range choice {
		if reasonNotToRun(name) != "" || !slices.ContainsFunc(tests.ConformanceTests,
			func(c suite.ConformanceTest) bool { return c.ShortName == name }) {
			t.Errorf("the case %s cannot be chosen", name)
		}
	}
}

func table() string {
	cases := slices.Clone(tests.ConformanceTests)
	slices.SortFunc(cases, func(a, b suite.ConformanceTest) int { return strings.Compare(a.ShortName, b.ShortName) })
	var rows strings.Builder
	for _, c := range cases {
		result, reason := "not tried yet", reasonNotToRun(c.ShortName)
		switch {
		case passes(c):
			result = "passes"
		case reason != "":
			result = "not run: " + reason
		}
		fmt.Fprintf(&rows, "| `%s` | %s | %s |\n", c.ShortName, features(c), result)
	}
	return fmt.Sprintf(header, summary(cases), rows.String())
}

func passes(c suite.ConformanceTest) bool { return slices.Contains(choice, c.ShortName) }

// summary has a row for each feature: how many of the cases that need it pass.
func summary(cases []suite.ConformanceTest) string {
	passed, all := map[string]int{}, map[string]int{}
	for _, c := range cases {
		for _, f := range append([]known.FeatureName{"all"}, c.Features...) {
			all[string(f)]++
			if passes(c) {
				passed[string(f)]++
			}
		}
	}
	var rows strings.Builder
	for _, f := range slices.Sorted(maps.Keys(all)) {
		if f != "all" {
			fmt.Fprintf(&rows, "| `%s` | %d | %d |\n", f, passed[f], all[f])
		}
	}
	return fmt.Sprintf("%s| all | %d | %d |\n", rows.String(), passed["all"], all["all"])
}

// TestG80FeaturesAreCounted: a case counts for each feature that it needs.
func TestG80FeaturesAreCounted(t *testing.T) {
	const want = "| `A` | 1 | 2 |\n| `B` | 1 | 1 |\n| all | 1 | 2 |\n"
	got := summary([]suite.ConformanceTest{
		{ShortName: choice[0], Features: []known.FeatureName{"A", "B"}}, {ShortName: "none", Features: []known.FeatureName{"A"}},
	})
	if got != want {
		t.Errorf("the summary is\n%s, want\n%s", got, want)
	}
}

// features are those that a case needs beside Gateways.
func features(c suite.ConformanceTest) string {
	var all []string
	for _, f := range c.Features {
		if f != "Gateway" {
			all = append(all, "`"+string(f)+"`")
		}
	}
	return strings.Join(all, ", ")
}

const header = `# Conformance to the Gateway API

Cases of the conformance suite of the Gateway API 1.6.1, and what came of them.
` + "`make conformance`" + ` runs those that pass: a real kube-apiserver, the hub, an Envoy for each Gateway
and beside each pod of the mesh. The hub writes the status of objects; the test does the work of the
controllers that make pods and load balancers, and of the kubelet. This page is written by a test; do not edit it.

## Features

A case counts for each feature that it needs.

| feature | cases that pass | of all |
|---|---|---|
%s
## Cases

| case | features beside Gateway | result |
|---|---|---|
%s`
