package conformance

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/gateway-api/conformance/tests"
	"sigs.k8s.io/gateway-api/conformance/utils/suite"
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
	{"with credentials and a wildcard, wants the requested method and headers back, and gateways name all methods", []string{"HTTPRouteCORS"}},
	{"retries are a field of the experimental channel, and the hub has the schemas of the standard one", []string{"HTTPRouteRetry"}},
	{"wants 421 for requests of a connection that was opened for another listener; gateways answer them", []string{"HTTPRouteHTTPSListenerDetectMisdirectedRequests"}},
	{"wants what a controller that deploys proxies or assigns addresses does, and the hub does neither", []string{
		"GatewayInfrastructure", "GatewayStaticAddresses", "GatewayInvalidParametersRef",
	}},
	{"datagrams of a port go to one backend alone", []string{"UDPRouteWeightedRouting"}},
	{"has CoreDNS as its backend, which is not here; other cases send datagrams to backends", []string{"UDPRoute"}},
	{"gateways present no certificate to backends", []string{"GatewayInvalidTLSBackendConfiguration", "GatewayTLSBackendClientCertificate"}},
	{"the authorities of clients are in ConfigMaps, which gateways do not use for clients", []string{"GatewayFrontend*", "GatewayInvalidFrontendClientCertificateValidation"}},
	{"is for implementations that do not end TLS", []string{"TLSRouteListenerTerminateNotSupported", "TLSRouteListenerMixedTerminationNotSupported"}},
	{"reads the logs of pods from the API server, and no kubelet has them here", []string{"HTTPRouteRequestMirror", "HTTPRouteRequestMultipleMirrors", "HTTPRouteRequestPercentageMirror"}},
	{"sends requests from within pods by the API server, and no kubelet is here to do so; scenarios have the cases", []string{"Mesh*"}},
}

// choice are the cases that pass. The flag -everything also runs those that were not tried.
var choice = []string{
	"BackendTLSPolicy", "BackendTLSPolicyConflictResolution", "BackendTLSPolicyInvalidCACertificateRef", "BackendTLSPolicyInvalidKind",
	"BackendTLSPolicyObservedGenerationBump", "BackendTLSPolicySANValidation", "GRPCExactMethodMatching", "GRPCRouteHeaderMatching",
	"GRPCRouteListenerHostnameMatching", "GRPCRouteNamedRule", "GRPCRouteWeight", "GatewayClassObservedGenerationBump",
	"GatewayHTTPListenerIsolation", "GatewayInvalidRouteKind", "GatewayInvalidTLSConfiguration", "GatewayListenerUnsupportedProtocol",
	"GatewayModifyListeners", "GatewayObservedGenerationBump", "GatewayOptionalAddressValue", "GatewaySecretInvalidReferenceGrant",
	"GatewaySecretMissingReferenceGrant", "GatewaySecretReferenceGrantAllInNamespace", "GatewaySecretReferenceGrantSpecific",
	"GatewayWithAttachedRoutes", "GatewayWithAttachedRoutesWithPort8080", "HTTPRoute303Redirect", "HTTPRoute307Redirect",
	"HTTPRoute308Redirect", "HTTPRouteBackendProtocolH2C", "HTTPRouteBackendProtocolWebSocket", "HTTPRouteBackendRequestHeaderModifier",
	"HTTPRouteCrossNamespace", "HTTPRouteDisallowedKind", "HTTPRouteExactPathMatching", "HTTPRouteHTTPSListener", "HTTPRouteHeaderMatching",
	"HTTPRouteHostnameIntersection", "HTTPRouteInvalidBackendRefUnknownKind", "HTTPRouteInvalidCrossNamespaceBackendRef",
	"HTTPRouteInvalidCrossNamespaceParentRef", "HTTPRouteInvalidNonExistentBackendRef", "HTTPRouteInvalidParentRefNotMatchingListenerPort",
	"HTTPRouteInvalidParentRefNotMatchingSectionName", "HTTPRouteInvalidParentRefSectionNameNotMatchingPort",
	"HTTPRouteInvalidReferenceGrant", "HTTPRouteListenerHostnameMatching", "HTTPRouteListenerPortMatching", "HTTPRouteMatching",
	"HTTPRouteMatchingAcrossRoutes", "HTTPRouteMethodMatching", "HTTPRouteMultipleGateways", "HTTPRouteNamedRule", "HTTPRouteNoBackendRefs",
	"HTTPRouteObservedGenerationBump", "HTTPRoutePartiallyInvalidViaInvalidReferenceGrant", "HTTPRoutePathMatchOrder",
	"HTTPRouteQueryParamMatching", "HTTPRouteRedirectHostAndStatus", "HTTPRouteRedirectPath", "HTTPRouteRedirectPort",
	"HTTPRouteRedirectPortAndScheme", "HTTPRouteRedirectScheme", "HTTPRouteReferenceGrant", "HTTPRouteRequestHeaderModifier",
	"HTTPRouteRequestHeaderModifierBackendWeights", "HTTPRouteResponseHeaderModifier", "HTTPRouteRewriteHost", "HTTPRouteRewritePath",
	"HTTPRouteServiceTypes", "HTTPRouteSimpleSameNamespace", "HTTPRouteTimeoutBackendRequest", "HTTPRouteTimeoutRequest", "HTTPRouteWeight",
	"ListenerSetAllowedNamespaceNone", "ListenerSetAllowedNamespaceSame", "ListenerSetAllowedNamespaceSelector",
	"ListenerSetAllowedRoutesNamespaces", "ListenerSetAllowedRoutesSupportedKinds", "ListenerSetDefaultNotAllowed",
	"ListenerSetDualParentRefIndependence", "ListenerSetGatewayParentSectionNameNotFound", "ListenerSetHTTPRouting",
	"ListenerSetHostnameConflict", "ListenerSetProtocolConflict", "ListenerSetReferenceGrant", "ListenerSetRouteStatusScopedToParentRef",
	"TCPRouteInvalidBackendRefNonexistent", "TCPRouteInvalidCrossNamespaceBackendRef", "TCPRouteInvalidNonTCPListener",
	"TCPRouteMultipleRoutesAttachment", "TCPRouteParentRefAttachAll", "TCPRouteParentRefPortAndSectionName", "TCPRouteReferenceGrant",
	"TCPRouteWeightedRouting", "TLSRouteHostnameIntersection", "TLSRouteInvalidBackendRefNonexistent",
	"TLSRouteInvalidBackendRefUnknownKind", "TLSRouteInvalidNoMatchingListener", "TLSRouteInvalidNoMatchingListenerHostname",
	"TLSRouteInvalidReferenceGrant", "TLSRouteListenerPassthroughSupportedKinds", "TLSRouteListenerTerminateSupportedKinds",
	"TLSRouteMixedTerminationSameNamespace", "TLSRouteSimpleSameNamespace", "TLSRouteTerminateSimpleSameNamespace",
	"UDPRouteInvalidBackendRefNonexistent", "UDPRouteInvalidCrossNamespaceBackendRef", "UDPRouteMultipleRoutesAttachment",
	"UDPRouteNotAllowedByListeners", "UDPRouteParentRefAttachAllListeners", "UDPRouteParentRefPortAndSectionName", "UDPRouteReferenceGrant",
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
		if reasonNotToRun(name) != "" || !slices.ContainsFunc(tests.ConformanceTests, func(c suite.ConformanceTest) bool { return c.ShortName == name }) {
			t.Errorf("the case %s cannot be chosen", name)
		}
	}
}

func table() string {
	cases := slices.Clone(tests.ConformanceTests)
	slices.SortFunc(cases, func(a, b suite.ConformanceTest) int { return strings.Compare(a.ShortName, b.ShortName) })
	var rows strings.Builder
	passed := 0
	for _, c := range cases {
		result, reason := "not tried yet", reasonNotToRun(c.ShortName)
		switch {
		case slices.Contains(choice, c.ShortName):
			result = "passes"
			passed++
		case reason != "":
			result = "not run: " + reason
		}
		fmt.Fprintf(&rows, "| `%s` | %s | %s |\n", c.ShortName, features(c), result)
	}
	return fmt.Sprintf(header, passed, len(cases)) + rows.String()
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

Cases of the conformance suite of the Gateway API 1.6.1, and what came of them. %d of %d
pass. ` + "`make conformance`" + ` runs these: a real kube-apiserver, the hub, an Envoy for each Gateway.
The hub writes the status of objects; the test does the work of the controllers that make
pods and load balancers. This page is written by a test; do not edit it.

| case | features | result |
|---|---|---|
`
