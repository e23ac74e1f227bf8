package envoy

import "maps"

// destinationRuleFields says the same of every place where a policy may stand.
func destinationRuleFields() fieldTable {
	t := fieldTable{honoured: []string{"host", "exportTo", "workloadSelector", "subsets.name", "subsets.labels"}, refused: map[string]string{}, values: refusedPolicies}
	for _, policy := range []string{"trafficPolicy", "subsets.trafficPolicy"} {
		t.honoured = append(t.honoured, policy+".retryBudget.percent", policy+".retryBudget.minRetryConcurrency", policy+".portLevelSettings.port")
		for _, at := range []string{policy, policy + ".portLevelSettings"} {
			for _, field := range policyFields {
				t.honoured = append(t.honoured, at+"."+field)
			}
			for field, why := range refusedPolicyFields {
				t.refused[at+"."+field] = why
			}
		}
		maps.Copy(t.refused, map[string]string{
			policy + ".tunnel":                     "connections are not tunnelled",
			policy + ".proxyProtocol":              "the PROXY protocol is not spoken to endpoints",
			policy + ".retryBudget.budgetInterval": "Envoy counts retries among the requests of the moment",
		})
	}
	return t
}

var policyFields = []string{
	"loadBalancer.simple", "loadBalancer.consistentHash", "loadBalancer.localityLbSetting.enabled", "loadBalancer.localityLbSetting.failover", "connectionPool.tcp",
	"connectionPool.http.http1MaxPendingRequests", "connectionPool.http.http2MaxRequests", "connectionPool.http.maxRequestsPerConnection",
	"connectionPool.http.maxRetries", "connectionPool.http.idleTimeout", "connectionPool.http.h2UpgradePolicy",
	"connectionPool.http.useClientProtocol", "connectionPool.http.maxConcurrentStreams",
	"outlierDetection.consecutiveErrors", "outlierDetection.splitExternalLocalOriginErrors", "outlierDetection.consecutiveLocalOriginFailures",
	"outlierDetection.consecutiveGatewayErrors", "outlierDetection.consecutive5xxErrors", "outlierDetection.interval",
	"outlierDetection.baseEjectionTime", "outlierDetection.maxEjectionPercent", "outlierDetection.minHealthPercent",
	"tls.mode", "tls.clientCertificate", "tls.privateKey", "tls.caCertificates", "tls.subjectAltNames", "tls.sni", "tls.insecureSkipVerify", "tls.caCrl",
}

var refusedPolicyFields = map[string]string{
	"loadBalancer.localityLbSetting.distribute":       "requests are not distributed over localities yet",
	"loadBalancer.localityLbSetting.failoverPriority": "endpoints are preferred by region, zone and sub-zone only",
	"loadBalancer.zoneAwareLbSetting":                 "endpoints are not preferred by zone yet",
	"loadBalancer.warmup":                             "new endpoints get their whole share at once",
	"loadBalancer.warmupDurationSecs":                 "new endpoints get their whole share at once",
	"connectionPool.http.http2KeepAlive":              "connections of HTTP/2 are not probed; use connectionPool.tcp.tcpKeepalive",
	"outlierDetection.outlierDetectionHttpErrorCodes": "endpoints are ejected for 5xx and gateway errors only",
	"tls.credentialName":                              "secrets are not sent for outbound connections yet, and nothing is sent to the host; name files on the proxy",
}
