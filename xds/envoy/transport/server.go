package transport

import (
	"fmt"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"
	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/internal/tlsparams"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

var tlsVersions = map[networking.ServerTLSSettings_TLSProtocol]tlsv3.TlsParameters_TlsProtocol{
	networking.ServerTLSSettings_TLSV1_0: tlsv3.TlsParameters_TLSv1_0,
	networking.ServerTLSSettings_TLSV1_1: tlsv3.TlsParameters_TLSv1_1,
	networking.ServerTLSSettings_TLSV1_2: tlsv3.TlsParameters_TLSv1_2,
	networking.ServerTLSSettings_TLSV1_3: tlsv3.TlsParameters_TLSv1_3,
}

// Termination is what a proxy is that ends TLS.
type Termination struct {
	Identity bool   // it has an identity of the mesh
	HTTP     bool   // it routes requests
	From     string // the namespace whose Secrets the credentials are; empty: the proxy's own
	Lenient  bool   // settings may have it accept certificates that it cannot verify
}

// Unverified reports whether the settings have clients pass whose certificates cannot be verified.
func Unverified(tls *networking.ServerTLSSettings) bool {
	switch tls.GetMode() {
	case networking.ServerTLSSettings_MUTUAL, networking.ServerTLSSettings_OPTIONAL_MUTUAL:
		return tls.GetInsecureSkipVerify().GetValue()
	}
	return false
}

// TLS is the server's side of TLS. What cannot be had is never replaced by less. Errors begin
// with the field.
func (s Termination) TLS(tls *networking.ServerTLSSettings) (*corev3.TransportSocket, error) {
	mutual := tls.GetMode() == networking.ServerTLSSettings_MUTUAL
	switch tls.GetMode() {
	case networking.ServerTLSSettings_SIMPLE, networking.ServerTLSSettings_MUTUAL, networking.ServerTLSSettings_OPTIONAL_MUTUAL:
	case networking.ServerTLSSettings_ISTIO_MUTUAL:
		if !s.Identity {
			return nil,
				fmt.Errorf(".tls.mode: ISTIO_MUTUAL needs an identity of the mesh, and the proxy has none; give it IDENTITY_SOURCE, or use MUTUAL")
		}
		return nil, nil //nolint:nilnil // made with the trust domains of the mesh, see MeshServer
	default:
		return nil, fmt.Errorf(".tls.mode: %s is not supported yet; use PASSTHROUGH, SIMPLE, MUTUAL or ISTIO_MUTUAL", tls.GetMode())
	}
	common := &tlsv3.CommonTlsContext{}
	for _, set := range []func(*tlsv3.CommonTlsContext,
		*networking.ServerTLSSettings) error{setTLSParameters, s.setCertificates, s.setClientCheck} {
		if err := set(common, tls); err != nil {
			return nil, fmt.Errorf(".tls%w", err)
		}
	}
	if s.HTTP {
		common.AlpnProtocols = []string{"h2", "http/1.1"}
	}
	return &corev3.TransportSocket{Name: TLSTransport, ConfigType: &corev3.TransportSocket_TypedConfig{
		TypedConfig: resource.Any(&tlsv3.DownstreamTlsContext{CommonTlsContext: common, RequireClientCertificate: wrapperspb.Bool(mutual)}),
	}}, nil
}

func setTLSParameters(common *tlsv3.CommonTlsContext, tls *networking.ServerTLSSettings) error {
	p := &tlsv3.TlsParameters{TlsMinimumProtocolVersion: tlsv3.TlsParameters_TLSv1_2, TlsMaximumProtocolVersion: tlsv3.TlsParameters_TLSv1_3}
	if version, ok := tlsVersions[tls.GetMinProtocolVersion()]; ok {
		p.TlsMinimumProtocolVersion = version
	}
	if version, ok := tlsVersions[tls.GetMaxProtocolVersion()]; ok {
		p.TlsMaximumProtocolVersion = version
	}
	if p.GetTlsMinimumProtocolVersion() > p.GetTlsMaximumProtocolVersion() {
		return fmt.Errorf(".maxProtocolVersion: is less than minProtocolVersion")
	}
	p.CipherSuites = tlsparams.CipherSuites(tls.GetCipherSuites())
	common.TlsParams = p
	return nil
}

// setCertificates takes the server's own certificates from secrets, else from
// files on the proxy.
func (s Termination) setCertificates(common *tlsv3.CommonTlsContext, tls *networking.ServerTLSSettings) error {
	names, err := credentials(tls)
	if err != nil {
		return err
	}
	for _, name := range names {
		common.TlsCertificateSdsSecretConfigs = append(common.TlsCertificateSdsSecretConfigs,
			fromSDS(CredentialSecret{Namespace: s.From, Credential: name}.Name()))
	}
	if len(names) > 0 {
		return nil
	}
	pairs := tls.GetTlsCertificates()
	if len(pairs) == 0 {
		pairs = []*networking.ServerTLSSettings_TLSCertificate{{ServerCertificate: tls.GetServerCertificate(), PrivateKey: tls.GetPrivateKey()}}
	}
	for _, pair := range pairs {
		if pair.GetServerCertificate() == "" || pair.GetPrivateKey() == "" {
			return fmt.Errorf(": mode %s needs credentialName, or serverCertificate and privateKey", tls.GetMode())
		}
		name, err := fileSecretName(fileCertificate, pair.GetServerCertificate(), pair.GetPrivateKey())
		if err != nil {
			return fmt.Errorf(".serverCertificate: %w", err)
		}
		common.TlsCertificateSdsSecretConfigs = append(common.TlsCertificateSdsSecretConfigs, fromSDS(name))
	}
	return nil
}

// credentials are the names of the secrets with the server's certificates.
func credentials(tls *networking.ServerTLSSettings) ([]string, error) {
	given, field := tls.GetCredentialNames(), "credentialNames"
	if len(given) == 0 && tls.GetCredentialName() != "" {
		given, field = []string{tls.GetCredentialName()}, "credentialName"
	}
	names := make([]string, len(given))
	for i, name := range given {
		var ok bool
		names[i], ok = tlsparams.Credential(name)
		if !ok {
			return nil, fmt.Errorf(".%s: %q is not the name of a secret; it has letters, digits, - and . and does not end in %s",
				field, name, authoritySuffix)
		}
	}
	return names, nil
}

// setClientCheck says what the certificates of callers must be.
func (s Termination) setClientCheck(common *tlsv3.CommonTlsContext, tls *networking.ServerTLSSettings) error {
	if tls.GetMode() == networking.ServerTLSSettings_SIMPLE {
		return nil
	}
	check := &tlsv3.CertificateValidationContext{
		VerifyCertificateSpki: tls.GetVerifyCertificateSpki(), VerifyCertificateHash: tls.GetVerifyCertificateHash(),
	}
	if s.Lenient && Unverified(tls) {
		check.TrustChainVerification = tlsv3.CertificateValidationContext_ACCEPT_UNTRUSTED
	}
	for _, name := range tls.GetSubjectAltNames() {
		check.MatchTypedSubjectAltNames = append(check.MatchTypedSubjectAltNames, &tlsv3.SubjectAltNameMatcher{
			SanType: sanType(name), Matcher: &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Exact{Exact: name}},
		})
	}
	if err := checkPins(check); err != nil {
		return err
	}
	if tlsparams.IsInline(tls.GetCaCertificates()) {
		return setInlineRoots(common, check, tls)
	}
	secret, err := s.clientRoots(tls)
	if err != nil {
		return err
	}
	common.ValidationContextType = &tlsv3.CommonTlsContext_CombinedValidationContext{CombinedValidationContext: &tlsv3.CommonTlsContext_CombinedCertificateValidationContext{
		DefaultValidationContext: check, ValidationContextSdsSecretConfig: fromSDS(secret),
	}}
	return nil
}

// setInlineRoots has certificates of callers verified with authorities that the settings have
// themselves. Envoy would refuse the listener because of one that cannot be read.
func setInlineRoots(common *tlsv3.CommonTlsContext, check *tlsv3.CertificateValidationContext, tls *networking.ServerTLSSettings) error {
	all, err := tlsparams.Certificates(tls.GetCaCertificates())
	if err != nil {
		return fmt.Errorf(".caCertificates: %w", err)
	}
	if tls.GetCaCrl() != "" {
		return fmt.Errorf(".caCrl: revokes certificates of authorities in files and Secrets alone; name a file in caCertificates")
	}
	check.TrustedCa = resource.TextSource(all)
	common.ValidationContextType = &tlsv3.CommonTlsContext_ValidationContext{ValidationContext: check}
	return nil
}

// clientRoots names the secret with the authorities that sign the certificates of
// callers, and with what they revoked.
func (s Termination) clientRoots(tls *networking.ServerTLSSettings) (string, error) {
	names, _ := credentials(tls)
	authority, ok := tlsparams.Credential(tls.GetCaCertCredentialName())
	switch {
	case authority != "" && !ok:
		return "", fmt.Errorf(".caCertCredentialName: %q is not the name of a secret", tls.GetCaCertCredentialName())
	case authority == "" && len(names) > 0:
		authority = names[0]
	}
	if authority != "" {
		name := CredentialSecret{Namespace: s.From, Credential: authority, Authorities: true, CRL: tls.GetCaCrl()}.Name()
		if len(name) > maxFileSecret {
			return "", fmt.Errorf(".caCrl: %q and the name of the credential are longer than %d bytes; use a shorter path",
				tls.GetCaCrl(), maxFileSecret)
		}
		return name, nil
	}
	if tls.GetCaCertificates() == "" {
		return "", fmt.Errorf(".caCertificates: mode %s needs the authorities that sign callers' certificates", tls.GetMode())
	}
	paths := []string{tls.GetCaCertificates()}
	if tls.GetCaCrl() != "" {
		paths = append(paths, tls.GetCaCrl())
	}
	secret, err := fileSecretName(fileRoots, paths...)
	if err != nil {
		return "", fmt.Errorf(".caCertificates: %w", err)
	}
	return secret, nil
}
