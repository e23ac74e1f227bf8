package envoy_test

import (
	"fmt"
	"strings"

	"pgregory.net/rapid"
)

// drawRules adds arbitrary DestinationRules, odd values included.
func drawRules(t *rapid.T, w *fixture) {
	var documents []string
	for i := range rapid.IntRange(0, 4).Draw(t, "rules") {
		spec := []string{"host: " + rapid.SampledFrom([]string{
			"web.shop.svc.cluster.local", "web.shop.svc.cluster.local", `"*.shop.svc.cluster.local"`, `"*.local"`, `"*.example.com"`, `"*"`, "web",
		}).Draw(t, "rule host")}
		add := func(label string, choices ...string) {
			if choice := rapid.SampledFrom(choices).Draw(t, label); choice != "" {
				spec = append(spec, choice)
			}
		}
		add("rule exportTo", "", "", `exportTo: ["*"]`, `exportTo: ["."]`, "exportTo: [shop]", "exportTo: [other, istio-system]")
		add("selector", "", "", "workloadSelector: {matchLabels: {app: a}}",
			"workloadSelector: {matchLabels: {topology.istio.io/cluster: c1}}")
		spec = append(spec, "trafficPolicy: {"+drawPolicy(t)+"}", "subsets: ["+drawSubsets(t)+"]")
		namespace := rapid.SampledFrom([]string{"shop", "other", "istio-system"}).Draw(t, "rule namespace")
		documents = append(documents, fmt.Sprintf("kind: DestinationRule\nmetadata: {name: r%d, namespace: %s}\nspec: {%s}", i,
			namespace, strings.Join(spec, ", ")))
	}
	if len(documents) > 0 {
		w.config(t, strings.Join(documents, "\n---\n"))
	}
}

func drawSubsets(t *rapid.T) string {
	var subsets []string
	for range rapid.IntRange(0, 3).Draw(t, "subsets") {
		name := rapid.SampledFrom([]string{"v1", "v2", "a|b", "||", "", strings.Repeat("long", 90), `\x01`}).Draw(t, "subset")
		labels := rapid.SampledFrom([]string{"", "version: v1", "version: v2", "version: v1, app: a", "topology.istio.io/cluster: c1"}).Draw(t, "subset labels")
		subsets = append(subsets, fmt.Sprintf(`{name: "%s", labels: {%s}, trafficPolicy: {%s}}`, name, labels, drawSettings(t)))
	}
	return strings.Join(subsets, ", ")
}

func drawPolicy(t *rapid.T) string {
	parts := []string{drawSettings(t), "", ""}
	if rapid.Bool().Draw(t, "port level") {
		parts[1] = "portLevelSettings: [{port: {number: 80}, " + drawSettings(t) + "}]"
	}
	parts[2] = rapid.SampledFrom([]string{
		"", "retryBudget: {percent: 200, minRetryConcurrency: 1}", "retryBudget: {}", "retryBudget: {budgetInterval: 0.0001s}",
		"proxyProtocol: {version: V2}", "proxyProtocol: {}",
		"tunnel: {targetHost: a.example.com, targetPort: 443}", "tunnel: {protocol: POST, targetHost: \"fd00::1\", targetPort: 80}",
		"tunnel: {protocol: X, targetHost: \"%REQ(a)%\", targetPort: 99999}", "tunnel: {}",
	}).Draw(t, "budget")
	return joined(parts)
}

func drawSettings(t *rapid.T) string {
	return joined([]string{
		rapid.SampledFrom([]string{
			"", "", "loadBalancer: {simple: RANDOM}", "loadBalancer: {simple: PASSTHROUGH}", "loadBalancer: {simple: LEAST_CONN}",
			"loadBalancer: {warmup: {duration: 10s, minimumPercent: 500, aggression: 0.5}}",
			"loadBalancer: {simple: LEAST_REQUEST, warmup: {duration: 0.1s, minimumPercent: 0, aggression: 7}}",
			"loadBalancer: {simple: RANDOM, warmupDurationSecs: 3s}", "loadBalancer: {warmup: {}}",
			"loadBalancer: {consistentHash: {useSourceIp: true, ringHash: {minimumRingSize: 99999999999}}}",
			"loadBalancer: {localityLbSetting: {distribute: [{from: eu/*, to: {us: 3, \"*\": 97, \"\": 4000000000, eu/eu-1/a: 0}}, {from: \"*\", to: {}}]}}",
			"loadBalancer: {simple: RANDOM, localityLbSetting: {distribute: [{from: \"*\", to: {eu: 100}}]}}",
			"loadBalancer: {localityLbSetting: {failoverPriority: [topology.istio.io/network, version=v1, app, \"\", \"=\", topology.kubernetes.io/zone], failover: [{from: eu, to: us}]}}",
			"loadBalancer: {zoneAwareLbSetting: {failoverPriority: [app, version=v1], failover: [{from: eu, to: us}], minClusterSize: 0}}",
			"loadBalancer: {simple: RANDOM, zoneAwareLbSetting: {}}",
			"loadBalancer: {consistentHash: {httpHeaderName: \"\", maglev: {tableSize: 6}}}",
			"loadBalancer: {consistentHash: {maglev: {tableSize: 7}}}",
		}).Draw(t, "balancer"),
		rapid.SampledFrom([]string{
			"", "", "connectionPool: {tcp: {maxConnections: -1, connectTimeout: 0s, tcpKeepalive: {}, idleTimeout: 0s}}",
			"connectionPool: {tcp: {maxConnections: 3, tcpKeepalive: {time: 0.1s, interval: 99999s, probes: 1}}, http: {maxRetries: -3, maxConcurrentStreams: 7}}",
			"connectionPool: {http: {useClientProtocol: true, idleTimeout: 0s, maxRequestsPerConnection: 1}}",
			"connectionPool: {http: {h2UpgradePolicy: UPGRADE}}",
			"connectionPool: {http: {h2UpgradePolicy: UPGRADE, http2KeepAlive: {interval: 0.0005s, timeout: 3s}}}",
			"connectionPool: {http: {useClientProtocol: true, http2KeepAlive: {interval: 4s, timeout: 3s}}}",
		}).Draw(t, "pool"),
		rapid.SampledFrom([]string{
			"", "", "outlierDetection: {}",
			"outlierDetection: {consecutive5xxErrors: 0, interval: 0s, baseEjectionTime: 900s, maxEjectionPercent: 500, minHealthPercent: -1}",
			"outlierDetection: {outlierDetectionHttpErrorCodes: [404, 0, 4000000000]}",
			"outlierDetection: {consecutiveErrors: 3, splitExternalLocalOriginErrors: true, minHealthPercent: 200}",
		}).Draw(t, "outlier"),
		rapid.SampledFrom([]string{
			"", "", "", "tls: {}", "tls: {mode: SIMPLE}", "tls: {mode: SIMPLE, sni: a, subjectAltNames: [a, \"\"], caCrl: \"\"}",
			"tls: {mode: ISTIO_MUTUAL}",
			"tls: {mode: MUTUAL, clientCertificate: /etc/proxy/cert.pem, privateKey: /etc/proxy/key.pem, insecureSkipVerify: true, subjectAltNames: [a]}",
			"tls: {mode: MUTUAL}", "tls: {mode: SIMPLE, credentialName: x}",
			"tls: {mode: MUTUAL, credentialName: kubernetes://x, insecureSkipVerify: true}",
			"tls: {mode: MUTUAL, credentialName: x, sni: a, subjectAltNames: [\"*.a\", \"\"]}", "tls: {mode: SIMPLE, credentialName: ../x}",
			"tls: {mode: DISABLE, credentialName: x}",
		}).Draw(t, "tls"),
	})
}

func joined(parts []string) string {
	var some []string
	for _, p := range parts {
		if p != "" {
			some = append(some, p)
		}
	}
	return strings.Join(some, ", ")
}
