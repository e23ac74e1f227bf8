package validation

import (
	"net"
	"slices"
	"strings"

	api "istio.io/api/networking/v1alpha3"

	"isthmus.dev/isthmus/federation/config/schema"
)

// Sidecar checks a spec of the kind.
func Sidecar(namespace string, s *api.Sidecar) []Problem {
	at := spec
	empty := len(s.GetIngress()) == 0 && len(s.GetEgress()) == 0 && s.GetOutboundTrafficPolicy() == nil && s.GetInboundConnectionPool() == nil
	found := problem(at, schema.Required, when(empty,
		"the object says nothing: write ingress, egress, outboundTrafficPolicy or inboundConnectionPool"))
	found = append(found, optional(at.field("workloadSelector"), s.GetWorkloadSelector(), workloadSelector)...)
	found = append(found, each(at.field("ingress"), s.GetIngress(), ingressListener)...)
	found = append(found, each(at.field("egress"), s.GetEgress(),
		func(at path, l *api.IstioEgressListener) []Problem { return egressListener(namespace, at, l) })...)
	found = append(found, sameListener(at.field("ingress"), s.GetIngress())...)
	found = append(found, sameListener(at.field("egress"), s.GetEgress())...)
	last := len(s.GetEgress()) - 1
	for i, e := range s.GetEgress() {
		found = append(found, problem(at.field("egress").item(i).field("port"), schema.Required, when(e.GetPort() == nil && i < last,
			"only the last listener may be for all ports: write a port, or move it to the end"))...)
	}
	found = append(found, optional(at.field("inboundConnectionPool"), s.GetInboundConnectionPool(), connectionPool)...)
	return append(found, optional(at.field("outboundTrafficPolicy"), s.GetOutboundTrafficPolicy(), by(outboundRules))...)
}

// listener is what the listeners of a Sidecar have in common.
type listener interface {
	GetPort() *api.SidecarPort
	GetBind() string
	GetCaptureMode() api.CaptureMode
}

// sameListener reports listeners of one port or one socket.
func sameListener[T listener](at path, list []T) []Problem {
	ports, sockets := map[uint32]bool{}, map[string]bool{}
	return each(at, list, func(at path, l T) []Problem {
		number, bind := l.GetPort().GetNumber(), l.GetBind()
		if number == 0 {
			again := sockets[bind] && isSocket(bind)
			sockets[bind] = true
			return problem(at.field("bind"), schema.DuplicateValue, when(again, "another listener binds to %q, too", bind))
		}
		again := ports[number]
		ports[number] = true
		return problem(at.field("port.number"), schema.DuplicateValue, when(again, "another listener has port %d, too", number))
	})
}

func sidecarPort(at path, p *api.SidecarPort, bind string) []Problem {
	found := problem(at.field("targetPort"), schema.Forbidden,
		when(p.GetTargetPort() != 0, "a listener has no other port behind it: remove targetPort"))
	if p.GetName() != "" {
		found = append(found, invalid(at.field("name"), label(p.GetName()))...)
	}
	if p.GetProtocol() != "" {
		found = append(found, problem(at.field("protocol"), schema.NotSupported, protocol(p.GetProtocol()))...)
	}
	if isSocket(bind) {
		return append(found, invalid(at.field("number"), when(p.GetNumber() != 0, "a socket has no port: write 0"))...)
	}
	return append(found, invalid(at.field("number"), port(p.GetNumber()))...)
}

var ingressRules = []rule[*api.IstioIngressListener]{
	{"port", schema.Required, func(l *api.IstioIngressListener) string { return when(l.GetPort() == nil, "a listener needs a port") }},
	{"bind", schema.Invalid, func(l *api.IstioIngressListener) string {
		return either(when(isSocket(l.GetBind()), "a listener for others has a port: write an IP address"), bind(l.GetBind()))
	}},
	{"connectionPool.http", NoEffect, func(l *api.IstioIngressListener) string {
		name := l.GetPort().GetProtocol()
		return when(l.GetConnectionPool().GetHttp() != nil && name != "" && !inClearHTTP(name),
			"connections to a port of %s have no requests: write connectionPool.tcp, or the protocol HTTP", name)
	}},
	{"defaultEndpoint", schema.Invalid, func(l *api.IstioIngressListener) string { return localEndpoint(l.GetDefaultEndpoint()) }},
	{"tls", schema.Forbidden, func(l *api.IstioIngressListener) string {
		return when(l.GetTls() != nil && !overTLS(l.GetPort().GetProtocol()), "%s is not encrypted: write HTTPS or TLS, or remove tls",
			l.GetPort().GetProtocol())
	}},
	{"tls.httpsRedirect", schema.Forbidden, func(l *api.IstioIngressListener) string {
		return when(l.GetTls().GetHttpsRedirect(), "sidecars do not redirect: remove it")
	}},
	{"tls.subjectAltNames", schema.Forbidden, func(l *api.IstioIngressListener) string {
		return when(len(l.GetTls().GetSubjectAltNames()) > 0, "sidecars do not check names of clients: remove it")
	}},
	{"tls.credentialName", schema.Forbidden, func(l *api.IstioIngressListener) string {
		return when(l.GetTls() != nil && fromCredential(l.GetTls()), "sidecars get no credentials: write the names of files")
	}},
	{"tls.mode", schema.NotSupported, func(l *api.IstioIngressListener) string {
		mode := l.GetTls().GetMode()
		other := mode == api.ServerTLSSettings_ISTIO_MUTUAL || mode == api.ServerTLSSettings_AUTO_PASSTHROUGH
		return when(l.GetTls() != nil && other, "%s is for gateways: write SIMPLE or MUTUAL", mode)
	}},
}

func ingressListener(at path, l *api.IstioIngressListener) []Problem {
	found := apply(at, l, ingressRules)
	if l.GetPort() != nil {
		found = append(found, sidecarPort(at.field("port"), l.GetPort(), l.GetBind())...)
	}
	if overTLS(l.GetPort().GetProtocol()) {
		found = append(found, optional(at.field("tls"), l.GetTls(), serverTLS)...)
	}
	return append(found, optional(at.field("connectionPool"), l.GetConnectionPool(), connectionPool)...)
}

// localEndpoint accepts where a sidecar sends what it receives: a port of the
// workload, or a socket.
func localEndpoint(text string) string {
	switch {
	case text == "":
		return ""
	case isSocket(text):
		return unixSocket(text)
	}
	const form = "%q is not an endpoint of the workload: write 127.0.0.1:PORT, 0.0.0.0:PORT, [::1]:PORT, [::]:PORT or unix://PATH"
	host, number, err := net.SplitHostPort(text)
	local := host == "" || host == "127.0.0.1" || host == "0.0.0.0" || host == "::1" || host == "::"
	return when(err != nil || !local || portText(number) != "", form, text)
}

var egressRules = []rule[*api.IstioEgressListener]{
	{"hosts", schema.Required, func(l *api.IstioEgressListener) string {
		return when(len(l.GetHosts()) == 0, "name at least one host; */* is all")
	}},
	{"bind", schema.Invalid, func(l *api.IstioEgressListener) string { return bind(l.GetBind()) }},
	{"bind", schema.Forbidden, func(l *api.IstioEgressListener) string {
		return when(l.GetPort() == nil && l.GetBind() != "", "a listener for all ports binds to nothing: write a port, or remove bind")
	}},
	{"captureMode", schema.Forbidden, func(l *api.IstioEgressListener) string {
		return when(isSocket(l.GetBind()) && l.GetCaptureMode() == api.CaptureMode_IPTABLES,
			"what goes to a socket cannot be captured: write NONE")
	}},
}

func egressListener(namespace string, at path, l *api.IstioEgressListener) []Problem {
	found := apply(at, l, egressRules)
	if l.GetPort() != nil {
		found = append(found, sidecarPort(at.field("port"), l.GetPort(), l.GetBind())...)
	}
	found = append(found, idle(repeated(at.field("hosts"), l.GetHosts()))...)
	found = append(found, includedHosts(at.field("hosts"), namespace, l.GetHosts())...)
	return append(found, texts(at.field("hosts"), l.GetHosts(), egressHost)...)
}

// includedHosts reports hosts that another one of the listener includes, too.
func includedHosts(at path, namespace string, hosts []string) []Problem {
	read := func(text string) (in, host string) {
		in, host, _ = strings.Cut(text, "/")
		if in == "." {
			in = namespace
		}
		return in, host
	}
	return each(at, hosts, func(at path, text string) []Problem {
		in, host := read(text)
		i := slices.IndexFunc(hosts, func(other string) bool {
			within, wide := read(other)
			same := in == within && host == wide
			return !same && !strings.HasPrefix(text, "~") && (within == "*" || within == in) && coversName(wide, host)
		})
		if i < 0 {
			return nil
		}
		return problem(at, NoEffect, when(true, "%q includes %q, too: remove one of the two", hosts[i], text))
	})
}

// egressHost accepts NAMESPACE/HOST. The namespace may be a sign, and ~ in front
// of it excludes.
func egressHost(text string) string {
	namespace, host, scoped := strings.Cut(text, "/")
	if !scoped {
		return when(true, "%q names no namespace: write NAMESPACE/%s, ./%s or */%s", text, text, text, text)
	}
	return scopedHost(strings.TrimPrefix(namespace, "~")+"/"+host, "*", ".", "")
}

var outboundRules = []rule[*api.OutboundTrafficPolicy]{
	{"egressProxy", schema.Forbidden, func(p *api.OutboundTrafficPolicy) string {
		return when(p.GetEgressProxy() != nil && p.GetMode() != api.OutboundTrafficPolicy_ALLOW_ANY,
			"with REGISTRY_ONLY nothing goes to it: write mode ALLOW_ANY")
	}},
	{"egressProxy.host", schema.Invalid, func(p *api.OutboundTrafficPolicy) string {
		if p.GetEgressProxy() == nil {
			return ""
		}
		return hostname(p.GetEgressProxy().GetHost())
	}},
	{"egressProxy.port", schema.Required, func(p *api.OutboundTrafficPolicy) string {
		return when(p.GetEgressProxy() != nil && p.GetEgressProxy().GetPort() == nil, "write the port")
	}},
	{"egressProxy.port.number", schema.Invalid, func(p *api.OutboundTrafficPolicy) string {
		if p.GetEgressProxy().GetPort() == nil {
			return ""
		}
		return port(p.GetEgressProxy().GetPort().GetNumber())
	}},
	{"egressProxy.subset", schema.Invalid, func(p *api.OutboundTrafficPolicy) string {
		if p.GetEgressProxy().GetSubset() == "" {
			return ""
		}
		return label(p.GetEgressProxy().GetSubset())
	}},
}
