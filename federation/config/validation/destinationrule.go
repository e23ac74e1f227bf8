package validation

import (
	"slices"

	api "istio.io/api/networking/v1alpha3"
	"istio.io/api/type/v1beta1"

	"isthmus.dev/isthmus/federation/config/schema"
)

// DestinationRule checks a spec of the kind.
func DestinationRule(namespace string, d *api.DestinationRule) []Problem {
	at := spec
	found := invalid(at.field("host"), wildcardHostname(d.GetHost()))
	found = append(found, exportTo(namespace, at.field("exportTo"), d.GetExportTo())...)
	found = append(found, optional(at.field("workloadSelector"), d.GetWorkloadSelector(), selector)...)
	if d.GetWorkloadSelector() != nil {
		found = append(found, texts(at.field("exportTo"), d.GetExportTo(), func(name string) string {
			return when(name != "." && name != namespace, "a rule with workloadSelector is for its own namespace: write . or remove exportTo")
		})...)
	}
	found = append(found, optional(at.field("trafficPolicy"), d.GetTrafficPolicy(), trafficPolicy)...)
	names := map[string]bool{}
	return append(found, each(at.field("subsets"), d.GetSubsets(), func(at path, s *api.Subset) []Problem {
		again := names[s.GetName()]
		names[s.GetName()] = true
		found := problem(at.field("name"), schema.DuplicateValue, when(again, "%q is the name of another subset, too", s.GetName()))
		found = append(found, invalid(at.field("name"), label(s.GetName()))...)
		found = append(found, labels(at.field("labels"), s.GetLabels())...)
		ofPolicy := optional(at.field("trafficPolicy"), s.GetTrafficPolicy(), trafficPolicy)
		if d.GetTrafficPolicy().GetOutlierDetection() != nil {
			inherits := at.field("trafficPolicy.loadBalancer.localityLbSetting").String()
			ofPolicy = slices.DeleteFunc(ofPolicy, func(p Problem) bool { return p.Code == NoEffect && p.Field == inherits })
		}
		return append(found, ofPolicy...)
	})...)
}

func selector(at path, s *v1beta1.WorkloadSelector) []Problem {
	return labels(at.field("matchLabels"), s.GetMatchLabels())
}

// settings are what a policy has for all ports and for one.
type settings interface {
	GetLoadBalancer() *api.LoadBalancerSettings
	GetConnectionPool() *api.ConnectionPoolSettings
	GetOutlierDetection() *api.OutlierDetection
	GetTls() *api.ClientTLSSettings
}

func policySettings(at path, s settings) []Problem {
	found := optional(at.field("loadBalancer"), s.GetLoadBalancer(), loadBalancer)
	found = append(found, optional(at.field("connectionPool"), s.GetConnectionPool(), connectionPool)...)
	found = append(found, optional(at.field("outlierDetection"), s.GetOutlierDetection(), by(outlierRules))...)
	locality := s.GetLoadBalancer().GetLocalityLbSetting()
	fails := len(locality.GetFailover())+len(locality.GetFailoverPriority()) > 0
	found = append(found, problem(at.field("loadBalancer.localityLbSetting"), NoEffect, when(fails && s.GetOutlierDetection() == nil,
		"without outlierDetection no endpoint is found to fail: write outlierDetection, too"))...)
	return append(found, optional(at.field("tls"), s.GetTls(), by(clientTLSRules))...)
}

func noSettings(s settings) bool {
	return s.GetLoadBalancer() == nil && s.GetConnectionPool() == nil && s.GetOutlierDetection() == nil && s.GetTls() == nil
}

func trafficPolicy(at path, p *api.TrafficPolicy) []Problem {
	empty := noSettings(p) && len(p.GetPortLevelSettings()) == 0 && p.GetTunnel() == nil && p.GetProxyProtocol() == nil &&
		p.GetRetryBudget() == nil
	found := problem(at, schema.Required, when(empty, "the policy is empty: write at least one setting, or remove it"))
	found = append(found, policySettings(at, p)...)
	found = append(found, optional(at.field("tunnel"), p.GetTunnel(), by(tunnelRules))...)
	found = append(found, problem(at.field("proxyProtocol"), schema.Forbidden, when(p.GetTunnel() != nil && p.GetProxyProtocol() != nil,
		"connections through a tunnel have no PROXY protocol: remove tunnel or proxyProtocol"))...)
	found = append(found, each(at.field("portLevelSettings"), p.GetPortLevelSettings(), portPolicy)...)
	seen := map[uint32]bool{}
	return append(found, each(at.field("portLevelSettings"), p.GetPortLevelSettings(),
		func(at path, p *api.TrafficPolicy_PortTrafficPolicy) []Problem {
			number := p.GetPort().GetNumber()
			again := seen[number]
			seen[number] = number != 0
			return problem(at, NoEffect, when(again,
				"other settings for port %d come first, and only they count: put all of its settings into one item", number))
		})...)
}

func portPolicy(at path, p *api.TrafficPolicy_PortTrafficPolicy) []Problem {
	found := problem(at, schema.Required, when(noSettings(p), "the policy is empty: write at least one setting, or remove it"))
	found = append(found, problem(at.field("port"), schema.Required, when(p.GetPort() == nil, "say for which port the settings are"))...)
	found = append(found, optional(at.field("port"), p.GetPort(), portSelector)...)
	return append(found, policySettings(at, p)...)
}

var tunnelRules = []rule[*api.TrafficPolicy_TunnelSettings]{
	{"protocol", schema.NotSupported, func(t *api.TrafficPolicy_TunnelSettings) string {
		name := t.GetProtocol()
		return when(name != "" && name != "CONNECT" && name != "POST", "%q is not supported: write CONNECT or POST", name)
	}},
	{"targetHost", schema.Invalid, func(t *api.TrafficPolicy_TunnelSettings) string {
		if isAddress(t.GetTargetHost()) {
			return ""
		}
		return hostname(t.GetTargetHost())
	}},
	{"targetPort", schema.Invalid, func(t *api.TrafficPolicy_TunnelSettings) string { return port(t.GetTargetPort()) }},
}

func connectionPool(at path, p *api.ConnectionPoolSettings) []Problem {
	found := problem(at, schema.Required, when(p.GetHttp() == nil && p.GetTcp() == nil,
		"the pool has no settings: write tcp or http, or remove it"))
	found = append(found, optional(at.field("http"), p.GetHttp(), by(httpPoolRules))...)
	return append(found, optional(at.field("tcp"), p.GetTcp(), by(tcpPoolRules))...)
}

// notNegative is the rule of numbers that count something.
func notNegative(number int32) string {
	return when(number < 0, "%d is negative: write 0 or more", number)
}

var httpPoolRules = []rule[*api.ConnectionPoolSettings_HTTPSettings]{
	{"http1MaxPendingRequests", schema.Invalid, func(h *api.ConnectionPoolSettings_HTTPSettings) string {
		return notNegative(h.GetHttp1MaxPendingRequests())
	}},
	{
		"http2MaxRequests", schema.Invalid,
		func(h *api.ConnectionPoolSettings_HTTPSettings) string { return notNegative(h.GetHttp2MaxRequests()) },
	},
	{"maxRequestsPerConnection", schema.Invalid, func(h *api.ConnectionPoolSettings_HTTPSettings) string {
		return notNegative(h.GetMaxRequestsPerConnection())
	}},
	{"maxRetries", schema.Invalid, func(h *api.ConnectionPoolSettings_HTTPSettings) string { return notNegative(h.GetMaxRetries()) }},
	{"maxConcurrentStreams", schema.Invalid, func(h *api.ConnectionPoolSettings_HTTPSettings) string {
		return notNegative(h.GetMaxConcurrentStreams())
	}},
	{"idleTimeout", schema.Invalid, func(h *api.ConnectionPoolSettings_HTTPSettings) string { return wholeMilliseconds(h.GetIdleTimeout()) }},
	{"useClientProtocol", schema.Forbidden, func(h *api.ConnectionPoolSettings_HTTPSettings) string {
		upgrades := h.GetH2UpgradePolicy() == api.ConnectionPoolSettings_HTTPSettings_UPGRADE
		return when(h.GetUseClientProtocol() && upgrades, "h2UpgradePolicy UPGRADE always uses HTTP/2: remove one of the two")
	}},
}

var tcpPoolRules = []rule[*api.ConnectionPoolSettings_TCPSettings]{
	{"maxConnections", schema.Invalid, func(t *api.ConnectionPoolSettings_TCPSettings) string { return notNegative(t.GetMaxConnections()) }},
	{"idleTimeout", schema.Invalid, func(t *api.ConnectionPoolSettings_TCPSettings) string {
		return either(when(t.GetIdleTimeout().AsDuration() < 0, "%s is negative: write 0s for no timeout", t.GetIdleTimeout().AsDuration()),
			wholeMilliseconds(t.GetIdleTimeout()))
	}},
	{"connectTimeout", schema.Invalid, func(t *api.ConnectionPoolSettings_TCPSettings) string {
		return wholeMilliseconds(t.GetConnectTimeout())
	}},
	{"maxConnectionDuration", schema.Invalid, func(t *api.ConnectionPoolSettings_TCPSettings) string {
		return wholeMilliseconds(t.GetMaxConnectionDuration())
	}},
	{"tcpKeepalive.time", schema.Invalid, func(t *api.ConnectionPoolSettings_TCPSettings) string {
		return wholeMilliseconds(t.GetTcpKeepalive().GetTime())
	}},
	{"tcpKeepalive.interval", schema.Invalid, func(t *api.ConnectionPoolSettings_TCPSettings) string {
		return wholeMilliseconds(t.GetTcpKeepalive().GetInterval())
	}},
}

func percentage(number int32) string {
	return when(number < 0 || number > 100, "%d is not a percentage: write 0 to 100", number)
}

var outlierRules = []rule[*api.OutlierDetection]{
	{"maxEjectionPercent", schema.Invalid, func(o *api.OutlierDetection) string { return percentage(o.GetMaxEjectionPercent()) }},
	{"interval", schema.Invalid, func(o *api.OutlierDetection) string { return wholeMilliseconds(o.GetInterval()) }},
	{"baseEjectionTime", schema.Invalid, func(o *api.OutlierDetection) string { return wholeMilliseconds(o.GetBaseEjectionTime()) }},
	{"minHealthPercent", schema.Invalid, func(o *api.OutlierDetection) string { return percentage(o.GetMinHealthPercent()) }},
	{"consecutiveErrors", schema.Invalid, func(o *api.OutlierDetection) string { return notNegative(o.GetConsecutiveErrors()) }},
	{"consecutiveLocalOriginFailures", schema.Forbidden, func(o *api.OutlierDetection) string {
		return when(o.GetConsecutiveLocalOriginFailures().GetValue() > 0 && !o.GetSplitExternalLocalOriginErrors(),
			"local failures are counted only if splitExternalLocalOriginErrors is true: set it, or remove this field")
	}},
}

// inlineTLS tells certificates that the rule names by file.
func inlineTLS(t *api.ClientTLSSettings) bool {
	return t.GetClientCertificate() != "" || t.GetPrivateKey() != "" || t.GetCaCertificates() != "" || t.GetCaCrl() != ""
}

func originates(t *api.ClientTLSSettings) bool {
	return t.GetMode() == api.ClientTLSSettings_SIMPLE || t.GetMode() == api.ClientTLSSettings_MUTUAL
}

// maxServerName is what Envoy takes, in bytes. It would refuse the whole cluster.
const maxServerName = 255

const verifiesNothing = "insecureSkipVerify verifies nothing: remove one of the two"

var clientTLSRules = []rule[*api.ClientTLSSettings]{
	{"caCertificates", schema.Forbidden, func(t *api.ClientTLSSettings) string {
		return when(t.GetInsecureSkipVerify().GetValue() && originates(t) && t.GetCaCertificates() != "", verifiesNothing)
	}},
	{"subjectAltNames", schema.Forbidden, func(t *api.ClientTLSSettings) string {
		return when(t.GetInsecureSkipVerify().GetValue() && originates(t) && len(t.GetSubjectAltNames()) > 0, verifiesNothing)
	}},
	{"sni", schema.Invalid, func(t *api.ClientTLSSettings) string {
		return when(len(t.GetSni()) > maxServerName, "it has %d bytes, and a server name of TLS has at most %d: shorten it",
			len(t.GetSni()), maxServerName)
	}},
	{"credentialName", schema.Forbidden, func(t *api.ClientTLSSettings) string {
		only := t.GetMode() == api.ClientTLSSettings_SIMPLE
		return when(t.GetInsecureSkipVerify().GetValue() && only && t.GetCredentialName() != "", verifiesNothing)
	}},
	{"credentialName", schema.Forbidden, func(t *api.ClientTLSSettings) string {
		return when(originates(t) && t.GetCredentialName() != "" && inlineTLS(t),
			"the credential has the certificates: remove it, or clientCertificate, privateKey, caCertificates and caCrl")
	}},
	{"clientCertificate", schema.Required, func(t *api.ClientTLSSettings) string { return ownCertificate(t, t.GetClientCertificate()) }},
	{"privateKey", schema.Required, func(t *api.ClientTLSSettings) string { return ownCertificate(t, t.GetPrivateKey()) }},
	{"mode", NoEffect, func(t *api.ClientTLSSettings) string {
		return when(!originates(t) && (inlineTLS(t) || t.GetCredentialName() != ""),
			"mode %s uses no certificates of the rule: write SIMPLE or MUTUAL, or remove them", t.GetMode())
	}},
}

func ownCertificate(t *api.ClientTLSSettings, file string) string {
	return when(t.GetMode() == api.ClientTLSSettings_MUTUAL && t.GetCredentialName() == "" && file == "",
		"mode MUTUAL needs clientCertificate and privateKey, or credentialName")
}
