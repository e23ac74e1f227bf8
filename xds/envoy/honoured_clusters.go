package envoy

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
	networking "istio.io/api/networking/v1"
)

// NotHonoured is a field of an object that says what proxies are not told.
type NotHonoured struct{ Field, Reason string }

// NotHonouredDestinationRule returns the fields of the rule, as it spells them,
// that have no effect on proxies.
func NotHonouredDestinationRule(rule *networking.DestinationRule) []NotHonoured {
	c := fieldCheck{table: honouredDestinationRule()}
	c.message("", "", rule.ProtoReflect())
	return c.found
}

// honouredDestinationRule tells for each field why it is not honoured; empty: it
// is, with all that is in it. What is not here is looked for field by field.
func honouredDestinationRule() map[string]string {
	table := map[string]string{
		"host": "", "exportTo": "", "workloadSelector": "", "subsets.name": "", "subsets.labels": "",
		"trafficPolicy.portLevelSettings.port": "", "subsets.trafficPolicy.portLevelSettings.port": "",
	}
	for _, policy := range []string{"trafficPolicy", "subsets.trafficPolicy"} {
		table[policy+".retryBudget.percent"], table[policy+".retryBudget.minRetryConcurrency"] = "", ""
		table[policy+".retryBudget.budgetInterval"] = "the budget is that of the requests at present"
		table[policy+".tunnel"] = "connections are not sent through a tunnel"
		table[policy+".proxyProtocol"] = "connections do not begin with the PROXY protocol"
		for field, reason := range honouredSettings() {
			table[policy+"."+field], table[policy+".portLevelSettings."+field] = reason, reason
		}
	}
	return table
}

// honouredSettings are the settings that a port, a subset and the whole rule
// have alike.
func honouredSettings() map[string]string {
	const locality, warm = "where an endpoint is does not decide about it yet", "a new endpoint gets its whole share at once"
	return map[string]string{
		"loadBalancer.simple": "", "loadBalancer.consistentHash": "",
		"loadBalancer.localityLbSetting": locality, "loadBalancer.zoneAwareLbSetting": locality,
		"loadBalancer.warmup": warm, "loadBalancer.warmupDurationSecs": warm,
		"connectionPool.tcp":                           "",
		"connectionPool.http.http1MaxPendingRequests":  "",
		"connectionPool.http.http2MaxRequests":         "",
		"connectionPool.http.maxRequestsPerConnection": "",
		"connectionPool.http.maxRetries":               "",
		"connectionPool.http.idleTimeout":              "",
		"connectionPool.http.h2UpgradePolicy":          "",
		"connectionPool.http.useClientProtocol":        "",
		"connectionPool.http.maxConcurrentStreams":     "",
		"connectionPool.http.http2KeepAlive":           "connections in HTTP/2 are not asked whether they live; tcp.tcpKeepalive is",
		"outlierDetection.consecutiveErrors":           "", "outlierDetection.splitExternalLocalOriginErrors": "",
		"outlierDetection.consecutiveLocalOriginFailures": "", "outlierDetection.consecutiveGatewayErrors": "",
		"outlierDetection.consecutive5xxErrors": "", "outlierDetection.interval": "", "outlierDetection.baseEjectionTime": "",
		"outlierDetection.maxEjectionPercent": "", "outlierDetection.minHealthPercent": "",
		"outlierDetection.outlierDetectionHttpErrorCodes": "what counts as an error is 5xx",
		"tls": "",
	}
}

// fieldCheck looks for fields that a table does not honour.
type fieldCheck struct {
	table map[string]string
	found []NotHonoured
}

// message looks at what the message says. path is where it is in the table, at
// where it is in the object.
func (c *fieldCheck) message(path, at string, m protoreflect.Message) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		if m.Has(field) {
			c.field(below(path, field.JSONName()), below(at, field.JSONName()), m.Get(field))
		}
	}
}

func (c *fieldCheck) field(path, at string, value protoreflect.Value) {
	reason, known := c.table[path]
	switch v := value.Interface().(type) {
	case protoreflect.Message:
		if tls, is := v.Interface().(*networking.ClientTLSSettings); is && known {
			reason = refusedTLS(tls)
		}
		if !known {
			c.message(path, at, v)
			return
		}
	case protoreflect.List:
		if !known && v.Len() > 0 {
			for i := range v.Len() {
				c.field(path, fmt.Sprintf("%s[%d]", at, i), v.Get(i))
			}
			return
		}
	}
	if !known {
		reason = "this field is not known"
	}
	if reason != "" {
		c.found = append(c.found, NotHonoured{Field: "spec." + at, Reason: reason})
	}
}

func below(path, name string) string { return strings.TrimPrefix(path+"."+name, ".") }
