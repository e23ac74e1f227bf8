package envoy

import (
	"cmp"
	"net/netip"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	upstreamhttpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

// tlsTransport is the name of Envoy's TLS.
const tlsTransport = "envoy.transport_sockets.tls"

// systemRoots is where Envoy's images have the authorities that everyone trusts.
const systemRoots = "/etc/ssl/certs/ca-certificates.crt"

func isTLS(tls *networking.ClientTLSSettings) bool {
	return tls != nil && tls.GetMode() != networking.ClientTLSSettings_DISABLE
}

// refusal says why nothing may be sent to the destination; empty: all is well.
func (d destination) refusal() string {
	if d.demandsMutual() && !d.mutual() {
		return "tls.mode ISTIO_MUTUAL needs an identity of the mesh at both ends: the proxy needs IDENTITY_SOURCE in its metadata, and the service must be one of the mesh whose endpoints are known"
	}
	return refusedTLS(d.policy.GetTls())
}

// refusedTLS says why TLS cannot be had, which is never replaced by less.
func refusedTLS(tls *networking.ClientTLSSettings) string {
	switch {
	case !isTLS(tls):
	case tls.GetCredentialName() != "":
		return "tls.credentialName is not honoured for outbound connections yet; name the files on the proxy in clientCertificate, privateKey and caCertificates"
	case tls.GetMode() == networking.ClientTLSSettings_MUTUAL && (tls.GetClientCertificate() == "" || tls.GetPrivateKey() == ""):
		return "tls.mode MUTUAL needs clientCertificate and privateKey"
	}
	return ""
}

func (b *builder) refuse(d destination, why string) {
	b.leaveOut(resource.Reason{Code: resource.ReasonTLS, Cause: d.rule(), Message: d.ruledBy() + ": trafficPolicy." + why + "; until then nothing is sent to " + d.name})
}

// ruledBy names the rules that made the destination's policy.
func (d destination) ruledBy() string {
	names := make([]string, len(d.rules))
	for i, o := range d.rules {
		names[i] = o.Key.String()
	}
	return strings.Join(names, ", ")
}

// tlsSocket is the client's side of TLS. Where neither the policy nor the service
// names the server, the host of each HTTP request does, which is said in its
// options.
func tlsSocket(d destination, options *upstreamhttpv3.HttpProtocolOptions) *corev3.TransportSocket {
	tls := d.policy.GetTls()
	common := &tlsv3.CommonTlsContext{TlsParams: &tlsv3.TlsParameters{
		TlsMinimumProtocolVersion: tlsv3.TlsParameters_TLSv1_2, TlsMaximumProtocolVersion: tlsv3.TlsParameters_TLSv1_3,
	}}
	if d.speaksHTTP2() {
		common.AlpnProtocols = []string{"h2"}
	}
	if tls.GetMode() == networking.ClientTLSSettings_MUTUAL {
		common.TlsCertificates = []*tlsv3.TlsCertificate{{CertificateChain: resource.FileSource(tls.GetClientCertificate()), PrivateKey: resource.FileSource(tls.GetPrivateKey())}}
	}
	server, names := d.server(options != nil)
	insecure := tls.GetInsecureSkipVerify().GetValue()
	if !insecure {
		common.ValidationContextType = &tlsv3.CommonTlsContext_ValidationContext{ValidationContext: serverCheck(tls, names)}
	}
	if options != nil {
		auto := &corev3.UpstreamHttpProtocolOptions{AutoSni: server == "", AutoSanValidation: len(names) == 0 && !insecure}
		options.UpstreamHttpProtocolOptions = auto
	}
	return &corev3.TransportSocket{Name: tlsTransport, ConfigType: &corev3.TransportSocket_TypedConfig{
		TypedConfig: resource.Any(&tlsv3.UpstreamTlsContext{CommonTlsContext: common, Sni: server}),
	}}
}

// server is the name for which connections ask, and the names of which the server's
// certificate must have one: those of the rule, else those of the service. Without
// HTTP there is no request whose host could take their place: there it is the
// hostname of the service.
func (d destination) server(http bool) (sni string, names []string) {
	tls, host := d.policy.GetTls(), string(d.service.Key.Hostname)
	sni, names = tls.GetSni(), tls.GetSubjectAltNames()
	if sni == "" && !http && !strings.HasPrefix(host, "*") {
		sni = host
	}
	if len(names) == 0 {
		names = declaredNames(d.service)
	}
	if len(names) == 0 && !http {
		names = []string{cmp.Or(sni, host)}
	}
	return sni, names
}

// declaredNames are the subjectAltNames of the service's ServiceEntries. What
// registries say of accounts are identities of the mesh, which other servers do not
// have.
func declaredNames(s *federation.Service) []string {
	var names []string
	for _, key := range s.Order() {
		if shard := s.Shards.Of(key); shard != nil && (s.MeshExternal || key.Provider == federation.External) {
			names = append(names, shard.ServiceAccounts...)
		}
	}
	return names
}

// serverCheck is what the server's certificate must be.
func serverCheck(tls *networking.ClientTLSSettings, names []string) *tlsv3.CertificateValidationContext {
	roots := tls.GetCaCertificates()
	if roots == "" {
		roots = systemRoots
	}
	check := &tlsv3.CertificateValidationContext{TrustedCa: resource.FileSource(roots)}
	if tls.GetCaCrl() != "" {
		check.Crl = resource.FileSource(tls.GetCaCrl())
	}
	for _, name := range names {
		check.MatchTypedSubjectAltNames = append(check.MatchTypedSubjectAltNames, &tlsv3.SubjectAltNameMatcher{
			SanType: sanType(name), Matcher: nameMatcher(name),
		})
	}
	return check
}

// nameMatcher matches the name, or every name that a wildcard stands for.
func nameMatcher(name string) *matcherv3.StringMatcher {
	if strings.HasPrefix(name, "*.") {
		return &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Suffix{Suffix: name[1:]}}
	}
	return &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Exact{Exact: name}}
}

func sanType(name string) tlsv3.SubjectAltNameMatcher_SanType {
	if strings.Contains(name, "://") {
		return tlsv3.SubjectAltNameMatcher_URI
	}
	if _, err := netip.ParseAddr(name); err == nil {
		return tlsv3.SubjectAltNameMatcher_IP_ADDRESS
	}
	return tlsv3.SubjectAltNameMatcher_DNS
}
