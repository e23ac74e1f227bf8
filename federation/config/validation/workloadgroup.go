package validation

import (
	"net/url"
	"strings"

	api "istio.io/api/networking/v1alpha3"

	"isthmus.dev/isthmus/federation/config/schema"
)

// WorkloadGroup checks a spec of the kind.
func WorkloadGroup(_ string, g *api.WorkloadGroup) []Problem {
	at := spec
	found := problem(at.field("template"), schema.Required,
		when(g.GetTemplate() == nil, "write what the workloads have in common; {} is nothing"))
	found = append(found, optional(at.field("template"), g.GetTemplate(), groupTemplate)...)
	found = append(found, labels(at.field("metadata.labels"), g.GetMetadata().GetLabels())...)
	return append(found, optional(at.field("probe"), g.GetProbe(), probe)...)
}

// groupTemplate checks a template; each workload brings its own address.
func groupTemplate(at path, w *api.WorkloadEntry) []Problem {
	found := labels(at.field("labels"), w.GetLabels())
	return append(found, entries(at.field("ports"), w.GetPorts(), func(at path, name string, number uint32) []Problem {
		return invalid(at, either(label(name), port(number)))
	})...)
}

var probeRules = []rule[*api.ReadinessProbe]{
	{"initialDelaySeconds", schema.Invalid, func(p *api.ReadinessProbe) string { return notNegative(p.GetInitialDelaySeconds()) }},
	{"timeoutSeconds", schema.Invalid, func(p *api.ReadinessProbe) string { return notNegative(p.GetTimeoutSeconds()) }},
	{"periodSeconds", schema.Invalid, func(p *api.ReadinessProbe) string { return notNegative(p.GetPeriodSeconds()) }},
	{"successThreshold", schema.Invalid, func(p *api.ReadinessProbe) string { return notNegative(p.GetSuccessThreshold()) }},
	{"failureThreshold", schema.Invalid, func(p *api.ReadinessProbe) string { return notNegative(p.GetFailureThreshold()) }},
	{"", schema.Required, func(p *api.ReadinessProbe) string {
		return when(p.GetHealthCheckMethod() == nil, "say how it probes: write httpGet, tcpSocket, exec or grpc")
	}},
	{"exec.command", schema.Required, func(p *api.ReadinessProbe) string {
		return when(p.GetExec() != nil && len(p.GetExec().GetCommand()) == 0, "write the command")
	}},
	{"tcpSocket.port", schema.Invalid, func(p *api.ReadinessProbe) string {
		if p.GetTcpSocket() == nil {
			return ""
		}
		return port(p.GetTcpSocket().GetPort())
	}},
	{"grpc.port", schema.Invalid, func(p *api.ReadinessProbe) string {
		if p.GetGrpc() == nil {
			return ""
		}
		return port(p.GetGrpc().GetPort())
	}},
}

func probe(at path, p *api.ReadinessProbe) []Problem {
	return append(apply(at, p, probeRules), optional(at.field("httpGet"), p.GetHttpGet(), httpProbe)...)
}

var httpProbeRules = []rule[*api.HTTPHealthCheckConfig]{
	{"port", schema.Invalid, func(h *api.HTTPHealthCheckConfig) string { return port(h.GetPort()) }},
	{"path", schema.Invalid, func(h *api.HTTPHealthCheckConfig) string {
		_, err := url.Parse(h.GetPath())
		return when(err != nil || h.GetPath() != "" && !strings.HasPrefix(h.GetPath(), "/"),
			"%q is not a path: write one that begins with /", h.GetPath())
	}},
	{"scheme", schema.NotSupported, func(h *api.HTTPHealthCheckConfig) string {
		s := h.GetScheme()
		return when(s != "" && s != "HTTP" && s != "HTTPS", "%q is not a scheme: write HTTP or HTTPS", s)
	}},
}

func httpProbe(at path, h *api.HTTPHealthCheckConfig) []Problem {
	found := apply(at, h, httpProbeRules)
	return append(found, each(at.field("httpHeaders"), h.GetHttpHeaders(), func(at path, header *api.HTTPHeader) []Problem {
		return append(invalid(at.field("name"), headerName(header.GetName())), invalid(at.field("value"), headerValue(header.GetValue()))...)
	})...)
}
