package transport

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/types/known/anypb"

	"isthmus.dev/isthmus/internal/tlsparams"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

const (
	secretScheme    = tlsparams.SecretScheme
	grantedScheme   = "kubernetes-ingress://" // NAMESPACE/NAME
	authoritySuffix = tlsparams.AuthoritySuffix
)

// The secrets of a proxy's own, as Istio's proxies name them.
const (
	OwnCertificate = "default" // its certificate and key
	OwnRoots       = "ROOTCA"  // what it verifies the certificates of others with
)

// IsOwn reports whether the name is that of a secret that every proxy has for itself.
func IsOwn(name string) bool { return name == OwnCertificate || name == OwnRoots }

// CredentialSecret is what listeners and clusters mean by the name of a secret of a credential.
type CredentialSecret struct {
	// Namespace is that of a Secret which was granted to the proxy; empty: the credential
	// is of the proxy's own namespace.
	Namespace   string
	Credential  string
	Authorities bool // those that belong to the credential, not its certificate
	// CRL is the file on the proxy that revokes certificates of the authorities. It is
	// in the name, so that a file that the proxy cannot read concerns those alone who
	// name it: the authorities without it are another secret (ADR 0074).
	CRL string
}

// Name is how listeners refer to the secret.
func (s CredentialSecret) Name() string {
	name := secretScheme + s.Credential
	if s.Namespace != "" {
		name = grantedScheme + s.Namespace + "/" + s.Credential
	}
	if s.Authorities {
		name += authoritySuffix
	}
	if s.CRL != "" {
		name += fileSeparator + s.CRL
	}
	return name
}

// ParseSecretName is the other way around; false: no listener refers so.
func ParseSecretName(name string) (s CredentialSecret, ok bool) {
	rest, ok := strings.CutPrefix(name, secretScheme)
	if granted, is := strings.CutPrefix(name, grantedScheme); is {
		s.Namespace, rest, ok = strings.Cut(granted, "/")
		ok = ok && tlsparams.IsCredential(s.Namespace)
	}
	rest, crl, revokes := strings.Cut(rest, fileSeparator)
	s.CRL = crl
	s.Credential, s.Authorities = strings.CutSuffix(rest, authoritySuffix)
	return s, ok && tlsparams.IsCredential(s.Credential) && revokes == (crl != "") && (s.Authorities || !revokes)
}

// MentionsCredential reports whether the message may refer to the secret of a credential. It
// costs less than reading the message.
func MentionsCredential(config *anypb.Any) bool {
	return bytes.Contains(config.GetValue(), []byte(secretScheme))
}

// KeyMaterial is what a secret holds, PEM. However it is printed, it says nothing.
type KeyMaterial struct {
	Chain, Key  []byte // of a server
	Authorities []byte
	CRL         []byte // what they revoked
	// Bundles are the authorities of each trust domain, where there are several:
	// they count for certificates of their own domain only.
	Bundles map[string][]byte
}

const redacted = "REDACTED"

// Format keeps every verb of fmt from printing what is secret.
func (KeyMaterial) Format(to fmt.State, _ rune) { _, _ = io.WriteString(to, redacted) }

// LogValue keeps slog from it.
func (KeyMaterial) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText keeps encoders from it.
func (KeyMaterial) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// NewSecret is the secret as Envoy takes it.
func NewSecret(name string, k KeyMaterial) *tlsv3.Secret {
	if len(k.Key) == 0 {
		check := k.validation()
		if len(k.CRL) > 0 {
			check.Crl = resource.BytesSource(k.CRL)
		}
		if s, ok := ParseSecretName(name); ok && s.CRL != "" {
			check.Crl = resource.FileSource(s.CRL)
		}
		return &tlsv3.Secret{Name: name, Type: &tlsv3.Secret_ValidationContext{ValidationContext: check}}
	}
	return &tlsv3.Secret{Name: name, Type: &tlsv3.Secret_TlsCertificate{
		TlsCertificate: &tlsv3.TlsCertificate{CertificateChain: resource.BytesSource(k.Chain), PrivateKey: resource.BytesSource(k.Key)},
	}}
}

// validation has Envoy verify certificates with the authorities, or each with
// those of its own trust domain.
func (k KeyMaterial) validation() *tlsv3.CertificateValidationContext {
	if len(k.Bundles) == 0 {
		return &tlsv3.CertificateValidationContext{TrustedCa: resource.BytesSource(k.Authorities)}
	}
	validator := &tlsv3.SPIFFECertValidatorConfig{}
	for _, domain := range slices.Sorted(maps.Keys(k.Bundles)) {
		validator.TrustDomains = append(validator.TrustDomains, &tlsv3.SPIFFECertValidatorConfig_TrustDomain{
			Name: domain, TrustBundle: resource.BytesSource(k.Bundles[domain]),
		})
	}
	return &tlsv3.CertificateValidationContext{CustomValidatorConfig: &corev3.TypedExtensionConfig{
		Name: "envoy.tls.cert_validator.spiffe", TypedConfig: resource.Any(validator),
	}}
}

// fromSDS is a reference to a secret. A listener waits for it for some seconds.
func fromSDS(name string) *tlsv3.SdsSecretConfig {
	return &tlsv3.SdsSecretConfig{Name: name, SdsConfig: resource.ADSSource()}
}

// agentCluster is that of Istio's bootstrap which leads to its agent's SDS.
const agentCluster = "sds-grpc"

// fromAgent is a reference to a secret that Istio's agent serves to its proxy.
func fromAgent(name string) *tlsv3.SdsSecretConfig {
	return &tlsv3.SdsSecretConfig{Name: name, SdsConfig: &corev3.ConfigSource{
		ResourceApiVersion: corev3.ApiVersion_V3,
		ConfigSourceSpecifier: &corev3.ConfigSource_ApiConfigSource{ApiConfigSource: &corev3.ApiConfigSource{
			ApiType: corev3.ApiConfigSource_GRPC, TransportApiVersion: corev3.ApiVersion_V3, SetNodeOnFirstMessageOnly: true,
			GrpcServices: []*corev3.GrpcService{{TargetSpecifier: &corev3.GrpcService_EnvoyGrpc_{
				EnvoyGrpc: &corev3.GrpcService_EnvoyGrpc{ClusterName: agentCluster},
			}}},
		}},
	}}
}

// checkPins demands hashes in the form that Envoy takes.
func checkPins(check *tlsv3.CertificateValidationContext) error {
	for i, pin := range check.GetVerifyCertificateSpki() {
		if !tlsparams.IsKeyHash(pin) {
			return fmt.Errorf(".verifyCertificateSpki[%d]: must be a SHA-256 in base64", i)
		}
	}
	for i, pin := range check.GetVerifyCertificateHash() {
		if !tlsparams.IsCertificateHash(pin) {
			return fmt.Errorf(".verifyCertificateHash[%d]: must be a SHA-256 in hexadecimal", i)
		}
	}
	return nil
}
