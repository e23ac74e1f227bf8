package supported

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/destinationrule"
	"isthmus.dev/isthmus/xds/envoy/facet"
	"isthmus.dev/isthmus/xds/envoy/node"
)

var _ = add(row{
	kind: federation.DestinationRuleKind, table: destinationRuleFields(),
	concerns: func(o *federation.Object, f node.Facet, r *federation.Reader) bool {
		return facet.CallersOf(f).MayUse(o, r)
	},
})

// destinationRuleFields says the same of every place where a policy may stand.
func destinationRuleFields() *table {
	t := &table{
		fields:  []string{"host", "exportTo", "workloadSelector", "subsets.name", "subsets.labels"},
		refused: map[string]string{}, values: refusedPolicies,
	}
	for _, policy := range []string{"trafficPolicy", "subsets.trafficPolicy"} {
		t.fields = append(t.fields, policy+".retryBudget", policy+".tunnel", policy+".proxyProtocol", policy+".portLevelSettings.port")
		for _, at := range []string{policy, policy + ".portLevelSettings"} {
			for _, field := range policyFields {
				t.fields = append(t.fields, at+"."+field)
			}
			for field, why := range refusedPolicyFields {
				t.refused[at+"."+field] = why
			}
		}
	}
	return t
}

var policyFields = []string{
	"loadBalancer.simple", "loadBalancer.consistentHash", "loadBalancer.localityLbSetting.enabled", "loadBalancer.localityLbSetting.failover",
	"loadBalancer.localityLbSetting.distribute", "loadBalancer.localityLbSetting.failoverPriority", "loadBalancer.zoneAwareLbSetting.enabled",
	"loadBalancer.zoneAwareLbSetting.failover", "loadBalancer.zoneAwareLbSetting.failoverPriority", "connectionPool.tcp",
	"connectionPool.http.http1MaxPendingRequests", "connectionPool.http.http2MaxRequests", "connectionPool.http.maxRequestsPerConnection",
	"connectionPool.http.maxRetries", "connectionPool.http.idleTimeout", "connectionPool.http.h2UpgradePolicy",
	"connectionPool.http.useClientProtocol", "connectionPool.http.maxConcurrentStreams",
	"outlierDetection.consecutiveErrors", "outlierDetection.splitExternalLocalOriginErrors", "outlierDetection.consecutiveLocalOriginFailures",
	"outlierDetection.consecutiveGatewayErrors", "outlierDetection.consecutive5xxErrors", "outlierDetection.interval",
	"outlierDetection.baseEjectionTime", "outlierDetection.maxEjectionPercent", "outlierDetection.minHealthPercent",
	"outlierDetection.outlierDetectionHttpErrorCodes", "loadBalancer.warmup", "loadBalancer.warmupDurationSecs",
	"connectionPool.http.http2KeepAlive",
	"tls.mode", "tls.clientCertificate", "tls.privateKey", "tls.caCertificates", "tls.subjectAltNames", "tls.sni", "tls.insecureSkipVerify",
	"tls.caCrl", "tls.credentialName",
}

var refusedPolicyFields = map[string]string{
	"loadBalancer.zoneAwareLbSetting.minClusterSize": "within a region, requests are spread over all zones whatever the number of endpoints: Envoy would have to know where its own service is; use localityLbSetting to prefer a zone",
}

// refusedPolicies are the TLS settings of a DestinationRule that cannot be had:
// where they hold, nothing is sent. What else is in vain is in the table.
func refusedPolicies(spec proto.Message) []Field {
	rule, ok := spec.(*networking.DestinationRule)
	if !ok {
		return nil
	}
	found := refusedPolicy("trafficPolicy", rule.GetTrafficPolicy())
	for i, subset := range rule.GetSubsets() {
		for _, earlier := range rule.GetSubsets()[:i] {
			if a, b := earlier.GetName(), subset.GetName(); a != b && strings.EqualFold(a, b) {
				found = append(found, Field{
					fmt.Sprintf("subsets[%d].name", i),
					fmt.Sprintf("%q differs from the subset %q by case alone, and mutual TLS cannot tell them apart: proxies with an identity send nothing to it; give it another name", b, a),
				})
				break
			}
		}
		found = append(found, refusedPolicy(fmt.Sprintf("subsets[%d].trafficPolicy", i), subset.GetTrafficPolicy())...)
	}
	return found
}

func refusedPolicy(at string, policy *networking.TrafficPolicy) []Field {
	found := append(refusedField(at, policy.GetTls()), refusedPriority(at, policy.GetLoadBalancer())...)
	found = append(found, refusedPings(at+".connectionPool", policy.GetConnectionPool())...)
	if why := destinationrule.RefusedTunnel(policy.GetTunnel()); why != "" {
		found = append(found, Field{at + ".tunnel", why + "; until then connections are closed"})
	}
	for i, port := range policy.GetPortLevelSettings() {
		place := fmt.Sprintf("%s.portLevelSettings[%d]", at, i)
		found = append(append(found, refusedField(place, port.GetTls())...), refusedPriority(place, port.GetLoadBalancer())...)
		found = append(found, refusedPings(place+".connectionPool", port.GetConnectionPool())...)
	}
	return found
}

// refusedPings reports pings of HTTP/2 that Envoy cannot send.
func refusedPings(at string, pool *networking.ConnectionPoolSettings) []Field {
	if alive := pool.GetHttp().GetHttp2KeepAlive(); alive == nil || destinationrule.Pings(alive) != nil {
		return nil
	}
	return []Field{{at + ".http.http2KeepAlive", "no pings are sent: set interval and timeout, each to at least 1ms"}}
}

// refusedPriority reports the label by which endpoints cannot be ordered.
func refusedPriority(at string, balancer *networking.LoadBalancerSettings) []Field {
	var found []Field
	for setting, priority := range map[string][]string{
		"localityLbSetting":  balancer.GetLocalityLbSetting().GetFailoverPriority(),
		"zoneAwareLbSetting": balancer.GetZoneAwareLbSetting().GetFailoverPriority(),
	} {
		for _, i := range federation.NodeLabels(priority) {
			found = append(found, Field{fmt.Sprintf("%s.loadBalancer.%s.failoverPriority[%d]", at, setting, i), federation.NoNodes})
		}
	}
	return found
}

func refusedField(at string, tls *networking.ClientTLSSettings) []Field {
	why := destinationrule.RefusedTLS(tls)
	switch {
	case why == "":
		return nil
	case destinationrule.HasCredential(tls):
		return []Field{{at + ".tls.credentialName", why + "; until then nothing is sent there"}}
	}
	return []Field{{at + ".tls.mode", why + "; until then nothing is sent there"}}
}
