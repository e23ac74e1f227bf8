package transport_test

import (
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/xds/envoy/resource"
	"isthmus.dev/isthmus/xds/envoy/transport"
)

func TestServerTLS(t *testing.T) {
	long := "/" + strings.Repeat("x", 600)
	files := `"serverCertificate": "/c.pem", "privateKey": "/k.pem"`
	const certificate = "presents file-cert:/c.pem~/k.pem"
	for name, test := range map[string]struct {
		tls  string
		end  transport.Termination
		want string // or the error
	}{
		"files":    {tls: `"mode": "SIMPLE", ` + files, want: certificate},
		"a Secret": {tls: `"mode": "SIMPLE", "credentialName": "web"`, want: "presents kubernetes://web"},
		"a Secret of another namespace": {
			tls: `"mode": "MUTUAL", "credentialName": "web"`, end: transport.Termination{From: "shop"},
			want: "presents kubernetes-ingress://shop/web; trusts kubernetes-ingress://shop/web-cacert; demands a certificate",
		},
		"two Secrets": {tls: `"mode": "SIMPLE", "credentialNames": ["rsa", "ec"]`, want: "presents kubernetes://rsa; presents kubernetes://ec"},
		"two pairs of files": {
			tls:  `"mode": "SIMPLE", "tlsCertificates": [{"serverCertificate": "/a", "privateKey": "/b"}, {"serverCertificate": "/c", "privateKey": "/d"}]`,
			want: "presents file-cert:/a~/b; presents file-cert:/c~/d",
		},
		"MUTUAL of files": {
			tls:  `"mode": "MUTUAL", "caCertificates": "/ca.pem", "caCrl": "/crl.pem", ` + files,
			want: certificate + "; trusts file-root:/ca.pem~/crl.pem; demands a certificate",
		},
		"OPTIONAL_MUTUAL": {
			tls: `"mode": "OPTIONAL_MUTUAL", "credentialName": "web"`, want: "presents kubernetes://web; trusts kubernetes://web-cacert",
		},
		"authorities of another Secret": {
			tls:  `"mode": "MUTUAL", "credentialName": "web", "caCertCredentialName": "clients"`,
			want: "presents kubernetes://web; trusts kubernetes://clients-cacert; demands a certificate",
		},
		"a CRL beside a Secret": {
			tls:  `"mode": "MUTUAL", "credentialName": "web", "caCrl": "/crl.pem"`,
			want: "presents kubernetes://web; trusts kubernetes://web-cacert~/crl.pem; demands a certificate",
		},
		"requests": {
			tls: `"mode": "SIMPLE", "credentialName": "web"`, end: transport.Termination{HTTP: true},
			want: "presents kubernetes://web; offers h2,http/1.1",
		},
		"made with the mesh":          {tls: `"mode": "ISTIO_MUTUAL"`, end: transport.Termination{Identity: true}, want: ""},
		"ISTIO_MUTUAL, no identity":   {tls: `"mode": "ISTIO_MUTUAL"`, want: ".tls.mode: ISTIO_MUTUAL needs an identity"},
		"AUTO_PASSTHROUGH":            {tls: `"mode": "AUTO_PASSTHROUGH"`, want: ".tls.mode: AUTO_PASSTHROUGH is not supported yet"},
		"no certificate":              {tls: `"mode": "SIMPLE", "serverCertificate": "/c.pem"`, want: ".tls: mode SIMPLE needs credentialName"},
		"no authorities":              {tls: `"mode": "MUTUAL", ` + files, want: ".tls.caCertificates: mode MUTUAL needs the authorities"},
		"a Secret's name":             {tls: `"mode": "SIMPLE", "credentialName": "Web"`, want: `.tls.credentialName: "Web" is not the name of a secret`},
		"the second name":             {tls: `"mode": "SIMPLE", "credentialNames": ["web", "a/b"]`, want: `.tls.credentialNames: "a/b" is not`},
		"the name of authorities":     {tls: `"mode": "SIMPLE", "credentialName": "web-cacert"`, want: ".tls.credentialName:"},
		"the authorities' name":       {tls: `"mode": "MUTUAL", "credentialName": "web", "caCertCredentialName": "A"`, want: ".tls.caCertCredentialName:"},
		"versions":                    {tls: `"mode": "SIMPLE", "minProtocolVersion": "TLSV1_3", "maxProtocolVersion": "TLSV1_2"`, want: ".tls.maxProtocolVersion: is less"},
		"a path with a tilde":         {tls: `"mode": "SIMPLE", "serverCertificate": "/a~b", "privateKey": "/k"`, want: `.tls.serverCertificate: "/a~b" must not contain ~`},
		"a path that is too long":     {tls: `"mode": "SIMPLE", "serverCertificate": "` + long + `", "privateKey": "/k"`, want: "is longer than 500 bytes"},
		"a CRL that is too long":      {tls: `"mode": "MUTUAL", "credentialName": "web", "caCrl": "` + long + `"`, want: ".tls.caCrl:"},
		"a hash of a key":             {tls: `"mode": "MUTUAL", "credentialName": "web", "verifyCertificateSpki": ["abc"]`, want: ".tls.verifyCertificateSpki[0]: must be"},
		"a hash of a certificate":     {tls: `"mode": "MUTUAL", "credentialName": "web", "verifyCertificateHash": ["abc"]`, want: ".tls.verifyCertificateHash[0]: must be"},
		"authorities cannot be read":  {tls: `"mode": "MUTUAL", "caCertificates": "-----BEGIN X", ` + files, want: ".tls.caCertificates: there is no certificate"},
		"names of callers, in SIMPLE": {tls: `"mode": "SIMPLE", "credentialName": "web", "subjectAltNames": ["a.com"]`, want: "presents kubernetes://web"},
	} {
		t.Run(name, func(t *testing.T) {
			socket, err := test.end.TLS(read(t, &networking.ServerTLSSettings{}, test.tls))
			if err != nil {
				if test.want == "" || !strings.Contains(err.Error(), test.want) {
					t.Errorf("refused: %v; want %q", err, test.want)
				}
				return
			}
			tls := &tlsv3.DownstreamTlsContext{}
			if socket != nil {
				open(t, socket, tls)
			}
			got := line(tls.GetCommonTlsContext())
			if tls.GetRequireClientCertificate().GetValue() {
				got += "; demands a certificate"
			}
			if got != test.want {
				t.Errorf("the server %s\nwant       %s", got, test.want)
			}
		})
	}
}

func TestServerVersionsAndSuites(t *testing.T) {
	for name, test := range map[string]struct{ tls, want string }{
		"default":       {``, "TLSv1_2 TLSv1_3"},
		"at least 1.3":  {`, "minProtocolVersion": "TLSV1_3"`, "TLSv1_3 TLSv1_3"},
		"at most 1.2":   {`, "maxProtocolVersion": "TLSV1_2"`, "TLSv1_2 TLSv1_2"},
		"old":           {`, "minProtocolVersion": "TLSV1_0"`, "TLSv1_0 TLSv1_3"},
		"suites":        {`, "cipherSuites": ["AES128-SHA", "AES256-SHA"]`, "TLSv1_2 TLSv1_3 AES128-SHA AES256-SHA"},
		"unknown, dupe": {`, "cipherSuites": ["AES128-SHA", "DES-CBC3-SHA", "AES128-SHA"]`, "TLSv1_2 TLSv1_3 AES128-SHA"},
	} {
		socket, err := transport.Termination{}.TLS(read(t, &networking.ServerTLSSettings{}, `"mode": "SIMPLE", "credentialName": "web"`+test.tls))
		if err != nil {
			t.Fatal(err)
		}
		p := open(t, socket, &tlsv3.DownstreamTlsContext{}).GetCommonTlsContext().GetTlsParams()
		got := append([]string{p.GetTlsMinimumProtocolVersion().String(), p.GetTlsMaximumProtocolVersion().String()}, p.GetCipherSuites()...)
		if strings.Join(got, " ") != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func TestUnverifiedClientsPassOnlyWhereAllowed(t *testing.T) {
	for _, test := range []struct {
		mode          string
		lenient, want bool
	}{
		{"MUTUAL", true, true},
		{"OPTIONAL_MUTUAL", true, true},
		{"MUTUAL", false, false},
	} {
		settings := read(t, &networking.ServerTLSSettings{}, `"credentialName": "web", "insecureSkipVerify": true, "mode": "`+test.mode+`"`)
		socket, err := transport.Termination{Lenient: test.lenient}.TLS(settings)
		if err != nil {
			t.Fatal(err)
		}
		check := open(t, socket, &tlsv3.DownstreamTlsContext{}).GetCommonTlsContext().GetCombinedValidationContext().GetDefaultValidationContext()
		if got := check.GetTrustChainVerification() == tlsv3.CertificateValidationContext_ACCEPT_UNTRUSTED; got != test.want {
			t.Errorf("%s, lenient %t: clients that cannot be verified pass: %t, want %t", test.mode, test.lenient, got, test.want)
		}
	}
}

func TestSecretNamesThereAndBack(t *testing.T) {
	for name, want := range map[string]transport.CredentialSecret{
		"kubernetes://web":                            {Credential: "web"},
		"kubernetes://web-cacert":                     {Credential: "web", Authorities: true},
		"kubernetes://web-cacert~/crl.pem":            {Credential: "web", Authorities: true, CRL: "/crl.pem"},
		"kubernetes-ingress://shop/web":               {Namespace: "shop", Credential: "web"},
		"kubernetes-ingress://shop/web-cacert~/a/crl": {Namespace: "shop", Credential: "web", Authorities: true, CRL: "/a/crl"},
	} {
		got, ok := transport.ParseSecretName(name)
		if !ok || got != want || got.Name() != name {
			t.Errorf("%s is read as %+v, %t, which is called %s", name, got, ok, got.Name())
		}
	}
	for _, name := range []string{
		"", "web", "default", "kubernetes://", "kubernetes://a/b", "kubernetes://../web", "kubernetes://web~/crl.pem", "kubernetes://web-cacert~",
		"kubernetes-ingress://web", "kubernetes-ingress:///web", "kubernetes-ingress://shop/a/b", "file-root:/ca.pem",
	} {
		if got, ok := transport.ParseSecretName(name); ok {
			t.Errorf("%q is read as %+v, and no listener refers so", name, got)
		}
	}
}

func TestSecretsAsEnvoyTakesThem(t *testing.T) {
	text := func(s *tlsv3.Secret) string {
		common := &tlsv3.CommonTlsContext{}
		if check := s.GetValidationContext(); check != nil {
			common.ValidationContextType = &tlsv3.CommonTlsContext_ValidationContext{ValidationContext: check}
		}
		if cert := s.GetTlsCertificate(); cert != nil {
			common.TlsCertificates = []*tlsv3.TlsCertificate{cert}
		}
		return line(common)
	}
	for name, want := range map[string]string{
		"file-cert:/c.pem~/k.pem": "presents /c.pem+/k.pem",
		"file-root:/ca.pem":       "trusts /ca.pem",
		"file-root:/ca.pem~/crl":  "trusts /ca.pem; revokes /crl",
	} {
		if got := text(transport.NewFileSecret(name)); got != want || !transport.IsFile(name) {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	if transport.NewFileSecret("kubernetes://web") != nil {
		t.Error("a Secret is taken for files")
	}
	roots := transport.NewSecret("kubernetes://web-cacert~/crl.pem", transport.KeyMaterial{Authorities: []byte("CA"), CRL: []byte("old")})
	if got := roots.GetValidationContext().GetCrl().GetFilename(); got != "/crl.pem" {
		t.Errorf("the CRL that the listener names is not taken but %q", got)
	}
}

func TestQUICNeedsTLS13(t *testing.T) {
	for most, want := range map[string]bool{"TLS_AUTO": true, "TLSV1_3": true, "TLSV1_2": false} {
		if got := transport.AllowsQUIC(read(t, &networking.ServerTLSSettings{}, `"maxProtocolVersion": "`+most+`"`)); got != want {
			t.Errorf("up to %s: QUIC %t, want %t", most, got, want)
		}
	}
	plain := &corev3.TransportSocket{ConfigType: &corev3.TransportSocket_TypedConfig{TypedConfig: resource.Any(&tlsv3.Secret{})}}
	if transport.OverQUIC(plain) != nil {
		t.Error("what is not TLS goes over QUIC")
	}
}
