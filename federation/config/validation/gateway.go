package validation

import (
	"cmp"
	"strings"

	api "istio.io/api/networking/v1alpha3"

	"isthmus.dev/isthmus/federation/config/schema"
	"isthmus.dev/isthmus/internal/tlsparams"
)

// Gateway checks a spec of the kind.
func Gateway(_ string, g *api.Gateway) []Problem {
	at := spec
	found := problem(at.field("servers"), schema.Required, when(len(g.GetServers()) == 0, "a gateway has at least one server"))
	found = append(found, labels(at.field("selector"), g.GetSelector())...)
	names := map[string]bool{}
	return append(found, each(at.field("servers"), g.GetServers(), func(at path, s *api.Server) []Problem {
		name := s.GetPort().GetName()
		again := names[name] && name != ""
		names[name] = true
		found := problem(at.field("port.name"), schema.DuplicateValue, when(again, "%q is the name of another server's port, too", name))
		return append(found, server(at, s)...)
	})...)
}

var serverRules = []rule[*api.Server]{
	{"hosts", schema.Required, func(s *api.Server) string { return when(len(s.GetHosts()) == 0, "name at least one host; * is all") }},
	{"port.protocol", schema.NotSupported, func(s *api.Server) string { return protocol(s.GetPort().GetProtocol()) }},
	{"port.name", schema.Invalid, func(s *api.Server) string { return label(s.GetPort().GetName()) }},
	{"port.number", schema.Invalid, func(s *api.Server) string {
		if strings.HasPrefix(s.GetBind(), "unix://") {
			return when(s.GetPort().GetNumber() != 0, "a socket has no port: write 0")
		}
		return port(s.GetPort().GetNumber())
	}},
	{"port.targetPort", schema.Forbidden, func(s *api.Server) string {
		return when(s.GetPort().GetTargetPort() != 0, "a gateway listens at number: remove targetPort")
	}},
	{"bind", schema.Invalid, func(s *api.Server) string { return bind(s.GetBind()) }},
	{"tls", schema.Required, func(s *api.Server) string {
		return when(overTLS(s.GetPort().GetProtocol()) && s.GetTls() == nil, "%s needs tls: say how the gateway ends it",
			s.GetPort().GetProtocol())
	}},
	{"tls", schema.Forbidden, func(s *api.Server) string {
		p := s.GetPort().GetProtocol()
		plain := s.GetTls() != nil && !overTLS(p) && (!inClearHTTP(p) || usesTLS(s.GetTls()))
		return when(plain, "%s is not encrypted: write HTTPS or TLS, or remove tls; over HTTP only httpsRedirect is possible", p)
	}},
	{"tls.httpsRedirect", NoEffect, func(s *api.Server) string {
		return when(s.GetTls().GetHttpsRedirect() && overTLS(s.GetPort().GetProtocol()),
			"a port of %s has nothing to redirect: set it at the server of HTTP", s.GetPort().GetProtocol())
	}},
}

func server(at path, s *api.Server) []Problem {
	found := apply(at, s, serverRules)
	found = append(found, texts(at.field("hosts"), s.GetHosts(), func(host string) string { return scopedHost(host, "*", ".") })...)
	if !overTLS(s.GetPort().GetProtocol()) {
		return found
	}
	return append(found, optional(at.field("tls"), s.GetTls(), serverTLS)...)
}

// bind accepts what a listener binds to.
func bind(text string) string {
	if strings.HasPrefix(text, "unix://") {
		return unixSocket(text)
	}
	return when(text != "" && !isAddress(text), "%q is neither an IP address nor a unix:// socket", text)
}

// inlineCertificate tells certificates that a server names by file.
func inlineCertificate(t *api.ServerTLSSettings) bool {
	return t.GetServerCertificate() != "" || t.GetPrivateKey() != "" || t.GetCaCertificates() != ""
}

func fromCredential(t *api.ServerTLSSettings) bool {
	return t.GetCredentialName() != "" || len(t.GetCredentialNames()) > 0
}

// usesTLS tells settings that need TLS, not a redirect only.
func usesTLS(t *api.ServerTLSSettings) bool {
	return t.GetMode() != api.ServerTLSSettings_PASSTHROUGH || inlineCertificate(t) || fromCredential(t)
}

func endsTLS(t *api.ServerTLSSettings) bool {
	switch t.GetMode() {
	case api.ServerTLSSettings_SIMPLE, api.ServerTLSSettings_MUTUAL, api.ServerTLSSettings_OPTIONAL_MUTUAL:
		return true
	}
	return false
}

// needs reports a file that is missing.
func needs(t *api.ServerTLSSettings, file, name string) string {
	named := file != "" || fromCredential(t) || len(t.GetTlsCertificates()) > 0
	return when(endsTLS(t) && !named, "mode %s needs %s, or credentialName", t.GetMode(), name)
}

// defaultMinVersion is the oldest version of a server that names none.
const defaultMinVersion = api.ServerTLSSettings_TLSV1_2

// noVersion reports whether the oldest version is newer than the newest one.
func noVersion(t *api.ServerTLSSettings) bool {
	oldest, newest := cmp.Or(t.GetMinProtocolVersion(), defaultMinVersion), cmp.Or(t.GetMaxProtocolVersion(), api.ServerTLSSettings_TLSV1_3)
	return oldest > newest
}

func serverTLS(at path, t *api.ServerTLSSettings) []Problem {
	found := apply(at, t, serverTLSRules)
	found = append(found, idle(repeated(at.field("cipherSuites"), t.GetCipherSuites()))...)
	found = append(found, idle(texts(at.field("cipherSuites"), t.GetCipherSuites(), func(name string) string {
		return when(!tlsparams.IsCipherSuite(name),
			"Envoy knows no cipher suite %q, and the server does without it%s: write one for TLS 1.2 as OpenSSL names it, such as ECDHE-RSA-AES128-GCM-SHA256, or remove it",
			name, when(len(tlsparams.CipherSuites(t.GetCipherSuites())) == 0, "; it has Envoy's default suites, for none of the list is known"))
	}))...)
	found = append(found, texts(at.field("verifyCertificateHash"), t.GetVerifyCertificateHash(), func(hash string) string {
		return when(!tlsparams.IsCertificateHash(hash),
			"%q is not a SHA-256 in hexadecimal: write the one that openssl x509 -fingerprint -sha256 prints", hash)
	})...)
	return append(found, texts(at.field("verifyCertificateSpki"), t.GetVerifyCertificateSpki(), func(hash string) string {
		return when(!tlsparams.IsKeyHash(hash), "%q is not a SHA-256 in base64: write the hash of the client's public key", hash)
	})...)
}

var serverTLSRules = []rule[*api.ServerTLSSettings]{
	{
		"serverCertificate", schema.Required,
		func(t *api.ServerTLSSettings) string { return needs(t, t.GetServerCertificate(), "serverCertificate") },
	},
	{"privateKey", schema.Required, func(t *api.ServerTLSSettings) string { return needs(t, t.GetPrivateKey(), "privateKey") }},
	{"caCertificates", schema.Required, func(t *api.ServerTLSSettings) string {
		if t.GetMode() == api.ServerTLSSettings_SIMPLE || t.GetCaCertCredentialName() != "" {
			return ""
		}
		return needs(t, t.GetCaCertificates(), "caCertificates, by which clients are verified")
	}},
	{"caCrl", schema.Forbidden, func(t *api.ServerTLSSettings) string {
		return when(t.GetCaCrl() != "" && t.GetMode() == api.ServerTLSSettings_SIMPLE,
			"mode SIMPLE asks clients for no certificates: write MUTUAL, or remove it")
	}},
	{"mode", schema.Forbidden, func(t *api.ServerTLSSettings) string {
		return when(t.GetMode() == api.ServerTLSSettings_ISTIO_MUTUAL && (inlineCertificate(t) || fromCredential(t)),
			"ISTIO_MUTUAL uses the mesh's certificates: remove serverCertificate, privateKey, caCertificates and credentialName")
	}},
	{"mode", NoEffect, func(t *api.ServerTLSSettings) string {
		passes := t.GetMode() == api.ServerTLSSettings_PASSTHROUGH || t.GetMode() == api.ServerTLSSettings_AUTO_PASSTHROUGH
		return when(passes && (inlineCertificate(t) || fromCredential(t)),
			"%s does not end TLS and uses no certificates: write SIMPLE or MUTUAL, or remove them", t.GetMode())
	}},
	{"minProtocolVersion", schema.Invalid, func(t *api.ServerTLSSettings) string {
		return when(t.GetMinProtocolVersion() != 0 && noVersion(t),
			"%s is newer than maxProtocolVersion, %s, so that no client could connect: write an older one, or a newer maxProtocolVersion",
			t.GetMinProtocolVersion(), t.GetMaxProtocolVersion())
	}},
	{"maxProtocolVersion", schema.Invalid, func(t *api.ServerTLSSettings) string {
		return when(t.GetMinProtocolVersion() == 0 && noVersion(t),
			"%s is older than the default minProtocolVersion, %s, so that no client could connect: set minProtocolVersion as well, or a newer version",
			t.GetMaxProtocolVersion(), defaultMinVersion)
	}},
	{"cipherSuites", NoEffect, func(t *api.ServerTLSSettings) string {
		return when(len(t.GetCipherSuites()) > 0 && t.GetMinProtocolVersion() == api.ServerTLSSettings_TLSV1_3,
			"TLS 1.3 chooses its suites by itself: remove them")
	}},
}
