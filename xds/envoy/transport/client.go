package transport

import (
	"net/netip"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	upstreamhttpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/tlsparams"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

// Server is what is known of the server that a client calls.
type Server struct {
	Http2 bool     // requests go in HTTP/2, whatever the caller speaks
	SNI   string   // for which connections ask
	Names []string // of which its certificate must have one
	// Certificate is the secret with the certificate that it is shown, whatever the policy says; empty: the
	// policy decides.
	Certificate string
}

// TLSSocket is the client's side of TLS. Where neither the policy nor the service
// names the server, the host of each HTTP request does, which is named in its
// options.
func TLSSocket(tls *networking.ClientTLSSettings, to Server, options *upstreamhttpv3.HttpProtocolOptions) *corev3.TransportSocket {
	common := &tlsv3.CommonTlsContext{TlsParams: &tlsv3.TlsParameters{
		TlsMinimumProtocolVersion: tlsv3.TlsParameters_TLSv1_2, TlsMaximumProtocolVersion: tlsv3.TlsParameters_TLSv1_3,
	}}
	if to.Http2 {
		common.AlpnProtocols = []string{"h2"}
	}
	insecure := tls.GetInsecureSkipVerify().GetValue()
	if tls.GetCredentialName() != "" {
		setClientCredential(common, tls, to.Names)
	} else {
		setClientFiles(common, tls, to.Names)
	}
	if to.Certificate != "" {
		common.TlsCertificates, common.TlsCertificateSdsSecretConfigs = nil, []*tlsv3.SdsSecretConfig{fromSDS(to.Certificate)}
	}
	if options != nil {
		auto := &corev3.UpstreamHttpProtocolOptions{AutoSni: to.SNI == "", AutoSanValidation: len(to.Names) == 0 && !insecure}
		options.UpstreamHttpProtocolOptions = auto
	}
	return &corev3.TransportSocket{Name: TLSTransport, ConfigType: &corev3.TransportSocket_TypedConfig{
		TypedConfig: resource.Any(&tlsv3.UpstreamTlsContext{CommonTlsContext: common, Sni: to.SNI}),
	}}
}

// setClientFiles takes the certificates from files on the proxy.
func setClientFiles(common *tlsv3.CommonTlsContext, tls *networking.ClientTLSSettings, names []string) {
	if tls.GetMode() == networking.ClientTLSSettings_MUTUAL {
		common.TlsCertificates = []*tlsv3.TlsCertificate{
			{CertificateChain: resource.FileSource(tls.GetClientCertificate()), PrivateKey: resource.FileSource(tls.GetPrivateKey())},
		}
	}
	if !tls.GetInsecureSkipVerify().GetValue() {
		check := &tlsv3.CertificateValidationContext{
			TrustedCa:                 authorities(tls.GetCaCertificates()),
			MatchTypedSubjectAltNames: serverNames(names),
		}
		if tls.GetCaCrl() != "" {
			check.Crl = resource.FileSource(tls.GetCaCrl())
		}
		common.ValidationContextType = &tlsv3.CommonTlsContext_ValidationContext{ValidationContext: check}
	}
}

// setClientCredential takes the certificates from a Secret of the proxy's namespace. Until the
// proxy has it, nothing is sent.
func setClientCredential(common *tlsv3.CommonTlsContext, tls *networking.ClientTLSSettings, names []string) {
	secret := CredentialSecret{Credential: strings.TrimPrefix(tls.GetCredentialName(), secretScheme)}
	if tls.GetMode() == networking.ClientTLSSettings_MUTUAL {
		common.TlsCertificateSdsSecretConfigs = []*tlsv3.SdsSecretConfig{fromSDS(secret.Name())}
	}
	if !tls.GetInsecureSkipVerify().GetValue() {
		secret.Authorities = true
		common.ValidationContextType = &tlsv3.CommonTlsContext_CombinedValidationContext{CombinedValidationContext: &tlsv3.CommonTlsContext_CombinedCertificateValidationContext{
			DefaultValidationContext:         &tlsv3.CertificateValidationContext{MatchTypedSubjectAltNames: serverNames(names)},
			ValidationContextSdsSecretConfig: fromSDS(secret.Name()),
		}}
	}
}

// DeclaredNames are the subjectAltNames of the service's ServiceEntries. What
// registries say of accounts are identities of the mesh, which other servers do not
// have.
func DeclaredNames(s *federation.Service) []string {
	var names []string
	for _, key := range s.Order() {
		if shard := s.Shards.Of(key); shard != nil && (s.MeshExternal || key.Provider.OfConfiguration()) {
			names = append(names, shard.ServiceAccounts...)
		}
	}
	return names
}

// serverNames are those of which the server's certificate must have one.
func serverNames(names []string) []*tlsv3.SubjectAltNameMatcher {
	var matchers []*tlsv3.SubjectAltNameMatcher
	for _, name := range names {
		matchers = append(matchers, &tlsv3.SubjectAltNameMatcher{SanType: sanType(name), Matcher: nameMatcher(name)})
	}
	return matchers
}

// authorities are those of a file on the proxy, or certificates themselves; empty: those that
// everyone trusts.
func authorities(from string) *corev3.DataSource {
	switch {
	case from == "":
		return resource.FileSource(systemRoots)
	case tlsparams.IsInline(from):
		return resource.TextSource(from)
	}
	return resource.FileSource(from)
}

// nameMatcher matches the name, or every name that a wildcard covers.
func nameMatcher(name string) *matcherv3.StringMatcher {
	if strings.HasPrefix(name, "*.") {
		return &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Suffix{Suffix: name[1:]}}
	}
	return &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Exact{Exact: name}}
}

// sanType is the type that a name has by its form. Envoy compares names of one type, where Istio has it try all.
func sanType(name string) tlsv3.SubjectAltNameMatcher_SanType {
	_, notIP := netip.ParseAddr(name)
	switch {
	case notIP == nil:
		return tlsv3.SubjectAltNameMatcher_IP_ADDRESS
	case strings.Contains(name, ":"):
		return tlsv3.SubjectAltNameMatcher_URI
	case strings.Contains(name, "@"):
		return tlsv3.SubjectAltNameMatcher_EMAIL
	}
	return tlsv3.SubjectAltNameMatcher_DNS
}

// systemRoots is where Envoy's images have the authorities that everyone trusts.
const systemRoots = "/etc/ssl/certs/ca-certificates.crt"
