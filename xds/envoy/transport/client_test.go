package transport_test

import (
	"fmt"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	upstreamhttpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/transport"
)

func read[M proto.Message](t *testing.T, m M, text string) M {
	t.Helper()
	if err := protojson.Unmarshal([]byte("{"+text+"}"), m); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return m
}

// open is the settings of a socket's own type.
func open[M proto.Message](t *testing.T, socket *corev3.TransportSocket, m M) M {
	t.Helper()
	if err := socket.GetTypedConfig().UnmarshalTo(m); err != nil {
		t.Fatal(err)
	}
	return m
}

// line is what both sides of TLS have in common, of what differs from socket to socket.
func line(c *tlsv3.CommonTlsContext) string {
	var words []string
	add := func(what, value string) {
		if value != "" {
			words = append(words, what+" "+value)
		}
	}
	for _, cert := range c.GetTlsCertificates() {
		add("presents", source(cert.GetCertificateChain())+"+"+source(cert.GetPrivateKey()))
	}
	for _, secret := range c.GetTlsCertificateSdsSecretConfigs() {
		add("presents", secret.GetName())
	}
	check := c.GetValidationContext()
	if combined := c.GetCombinedValidationContext(); combined != nil {
		check = combined.GetDefaultValidationContext()
		add("trusts", combined.GetValidationContextSdsSecretConfig().GetName())
	}
	add("trusts", source(check.GetTrustedCa()))
	add("revokes", source(check.GetCrl()))
	for _, m := range check.GetMatchTypedSubjectAltNames() {
		kind := m.GetSanType().String()
		if kind == "IP_ADDRESS" {
			kind = "IP"
		}
		add(kind, m.GetMatcher().GetExact()+pattern("*", m.GetMatcher().GetSuffix(), "")+pattern("", m.GetMatcher().GetPrefix(), "*"))
	}
	add("offers", strings.Join(c.GetAlpnProtocols(), ","))
	return strings.Join(words, "; ")
}

func pattern(before, text, after string) string {
	if text == "" {
		return ""
	}
	return before + text + after
}

func source(d *corev3.DataSource) string { return d.GetFilename() + d.GetInlineString() }

func TestClientTLS(t *testing.T) {
	const system = "trusts /etc/ssl/certs/ca-certificates.crt"
	for name, test := range map[string]struct {
		tls  string
		to   transport.Server
		http bool
		want string
	}{
		"SIMPLE":                  {tls: `"mode": "SIMPLE"`, want: system},
		"authorities of a file":   {tls: `"mode": "SIMPLE", "caCertificates": "/ca.pem"`, want: "trusts /ca.pem"},
		"revoked":                 {tls: `"mode": "SIMPLE", "caCertificates": "/ca.pem", "caCrl": "/crl.pem"`, want: "trusts /ca.pem; revokes /crl.pem"},
		"a certificate in SIMPLE": {tls: `"mode": "SIMPLE", "clientCertificate": "/c.pem", "privateKey": "/k.pem"`, want: system},
		"MUTUAL": {
			tls:  `"mode": "MUTUAL", "clientCertificate": "/c.pem", "privateKey": "/k.pem", "caCertificates": "/ca.pem"`,
			want: "presents /c.pem+/k.pem; trusts /ca.pem",
		},
		"SIMPLE of a Secret": {tls: `"mode": "SIMPLE", "credentialName": "web"`, want: "trusts kubernetes://web-cacert"},
		"MUTUAL of a Secret": {
			tls:  `"mode": "MUTUAL", "credentialName": "kubernetes://web"`,
			want: "presents kubernetes://web; trusts kubernetes://web-cacert",
		},
		"names of a Secret's peer": {
			tls: `"mode": "SIMPLE", "credentialName": "web"`, to: transport.Server{Names: []string{"a.com"}},
			want: "trusts kubernetes://web-cacert; DNS a.com",
		},
		"a name to ask for":   {tls: `"mode": "SIMPLE"`, to: transport.Server{SNI: "a.com"}, want: system + "; asks for a.com"},
		"HTTP without a name": {tls: `"mode": "SIMPLE"`, http: true, want: system + "; asks for the host; verifies the host"},
		"HTTP with a name to ask for": {
			tls: `"mode": "SIMPLE"`, to: transport.Server{SNI: "a.com"}, http: true, want: system + "; asks for a.com; verifies the host",
		},
		"HTTP with names to verify": {
			tls: `"mode": "SIMPLE"`, to: transport.Server{Names: []string{"a.com"}}, http: true, want: system + "; DNS a.com; asks for the host",
		},
		"nothing is verified": {
			tls: `"mode": "SIMPLE", "insecureSkipVerify": true`, to: transport.Server{Names: []string{"a.com"}}, http: true, want: "asks for the host",
		},
		"nothing is verified with a Secret": {
			tls: `"mode": "MUTUAL", "credentialName": "web", "insecureSkipVerify": true`, want: "presents kubernetes://web",
		},
		"HTTP/2":                  {tls: `"mode": "SIMPLE"`, to: transport.Server{Http2: true}, want: system + "; offers h2"},
		"a Gateway's certificate": {tls: `"mode": "SIMPLE"`, to: transport.Server{Certificate: "kubernetes://gw"}, want: "presents kubernetes://gw; " + system},
		"a Gateway's certificate comes first": {
			tls:  `"mode": "MUTUAL", "clientCertificate": "/c.pem", "privateKey": "/k.pem"`,
			to:   transport.Server{Certificate: "kubernetes://gw"},
			want: "presents kubernetes://gw; " + system,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var options *upstreamhttpv3.HttpProtocolOptions
			if test.http {
				options = &upstreamhttpv3.HttpProtocolOptions{}
			}
			socket := transport.TLSSocket(read(t, &networking.ClientTLSSettings{}, test.tls), test.to, options)
			tls := open(t, socket, &tlsv3.UpstreamTlsContext{})
			got := line(tls.GetCommonTlsContext()) + pattern("; asks for ", tls.GetSni(), "")
			if options.GetUpstreamHttpProtocolOptions().GetAutoSni() {
				got += "; asks for the host"
			}
			if options.GetUpstreamHttpProtocolOptions().GetAutoSanValidation() {
				got += "; verifies the host"
			}
			got = strings.TrimPrefix(got, "; ")
			if got != test.want {
				t.Errorf("the client %s\nwant       %s", got, test.want)
			}
			versions := tls.GetCommonTlsContext().GetTlsParams()
			if fmt.Sprint(versions.GetTlsMinimumProtocolVersion(), versions.GetTlsMaximumProtocolVersion()) != "TLSv1_2 TLSv1_3" {
				t.Errorf("the client speaks %v", versions)
			}
		})
	}
}

// TestG88NamesOfEveryType: a name in a certificate matches by its own type. Istio has Envoy try all types.
func TestG88NamesOfEveryType(t *testing.T) {
	for name, want := range map[string]string{
		"a.example.com":             "DNS a.example.com",
		"*.example.com":             "DNS *.example.com",
		"spiffe://td/ns/a/sa/b":     "URI spiffe://td/ns/a/sa/b",
		"https://a.example.com/who": "URI https://a.example.com/who",
		"urn:example:caller":        "URI urn:example:caller",
		"mailto:ops@example.com":    "URI mailto:ops@example.com",
		"ops@example.com":           "EMAIL ops@example.com",
		"10.0.0.1":                  "IP 10.0.0.1",
		"2001:db8::1":               "IP 2001:db8::1",
	} {
		client := transport.TLSSocket(read(t, &networking.ClientTLSSettings{}, `"mode": "SIMPLE"`), transport.Server{Names: []string{name}}, nil)
		got := line(open(t, client, &tlsv3.UpstreamTlsContext{}).GetCommonTlsContext())
		if !strings.HasSuffix(got, "; "+want) {
			t.Errorf("the client of a server called %s: %s, want %s", name, got, want)
		}
		if strings.HasPrefix(name, "*") {
			continue // callers are named one by one
		}
		settings := read(t, &networking.ServerTLSSettings{}, `"mode": "MUTUAL", "credentialName": "web", "subjectAltNames": ["`+name+`"]`)
		server, err := transport.Termination{}.TLS(settings)
		if err != nil {
			t.Fatal(err)
		}
		got = line(open(t, server, &tlsv3.DownstreamTlsContext{}).GetCommonTlsContext())
		if !strings.HasSuffix(got, "; "+want) {
			t.Errorf("the server of a caller called %s: %s, want %s", name, got, want)
		}
	}
}

func TestMeshTLS(t *testing.T) {
	const own = "presents default; trusts ROOTCA"
	peers := transport.OfTrustDomains([]string{"td"})
	for name, test := range map[string]struct {
		client transport.Client
		names  []string
		want   string
	}{
		"bytes":                       {want: own + "; URI spiffe://td/*; offers istio"},
		"requests":                    {client: transport.Client{HTTP: true}, want: own + "; URI spiffe://td/*; offers istio-http/1.1,istio"},
		"HTTP/2":                      {client: transport.Client{HTTP: true, Http2: true}, want: own + "; URI spiffe://td/*; offers istio-h2,istio,h2"},
		"bytes with metadata":         {client: transport.Client{Exchange: true}, want: own + "; URI spiffe://td/*; offers istio-peer-exchange,istio"},
		"requests carry it otherwise": {client: transport.Client{Exchange: true, HTTP: true}, want: own + "; URI spiffe://td/*; offers istio-http/1.1,istio"},
		"a name to ask for":           {client: transport.Client{SNI: "a.com"}, want: own + "; URI spiffe://td/*; offers istio; asks for a.com"},
		"names of a rule": {
			names: []string{"spiffe://td/ns/b/sa/b", "spiffe://td/ns/a/sa/a", "spiffe://td/ns/b/sa/b"},
			want:  own + "; URI spiffe://td/ns/a/sa/a; URI spiffe://td/ns/b/sa/b; offers istio",
		},
	} {
		t.Run(name, func(t *testing.T) {
			given := strings.Join(test.names, " ")
			tls := open(t, transport.MeshTLS(test.client, peers, test.names), &tlsv3.UpstreamTlsContext{})
			if got := line(tls.GetCommonTlsContext()) + pattern("; asks for ", tls.GetSni(), ""); got != test.want {
				t.Errorf("the client %s\nwant       %s", got, test.want)
			}
			if tls.GetCommonTlsContext().GetTlsParams().GetTlsMinimumProtocolVersion() != tlsv3.TlsParameters_TLSv1_3 {
				t.Error("the mesh speaks less than TLS 1.3")
			}
			if strings.Join(test.names, " ") != given {
				t.Error("the rule's names changed")
			}
		})
	}
}

func TestSecretsOfTheAgent(t *testing.T) {
	for agent, want := range map[bool]string{false: "ADS", true: "sds-grpc"} {
		common := transport.MeshContext(nil, agent)
		for _, secret := range []*tlsv3.SdsSecretConfig{
			common.GetTlsCertificateSdsSecretConfigs()[0], common.GetCombinedValidationContext().GetValidationContextSdsSecretConfig(),
		} {
			got := "ADS"
			if services := secret.GetSdsConfig().GetApiConfigSource().GetGrpcServices(); len(services) > 0 {
				got = services[0].GetEnvoyGrpc().GetClusterName()
			}
			if got != want {
				t.Errorf("with an agent: %t: %s comes by %s, want %s", agent, secret.GetName(), got, want)
			}
		}
	}
}

// peer is CLUSTER/NETWORK.
func peer(text string) federation.PeerAccounts {
	cluster, network, _ := strings.Cut(text, "/")
	return federation.PeerAccounts{Cluster: federation.ClusterID(cluster), Network: federation.NetworkID(network)}
}

func TestPeerGroups(t *testing.T) {
	for peers, want := range map[string]string{
		"":               "",
		"a/n1":           "",
		"a/n1 b/n2":      "cluster=a:1 cluster=b:1",
		"b/n1 a/n1":      "cluster=a:1 cluster=b:1 network=n1:2",
		"a/n1 a/n2":      "",
		"a/n1 a/n2 b/n2": "cluster=a:2 cluster=b:1 network=n2:2",
	} {
		var all []federation.PeerAccounts
		for text := range strings.FieldsSeq(peers) {
			all = append(all, peer(text))
		}
		var got []string
		for _, g := range transport.PeerGroups(all) {
			got = append(got, fmt.Sprintf("%s=%s:%d", g.Key, g.Value, len(g.Peers)))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("peers %q: groups %q, want %q", peers, got, want)
		}
	}
}

// TestPeerBehindAGateway: the metadata of a gateway picks a socket that verifies those behind it, and no others.
func TestPeerBehindAGateway(t *testing.T) {
	s := &federation.Service{}
	for text := range strings.FieldsSeq("a/n1 b/n2 c/n2 d/n3") {
		s.Peers = append(s.Peers, peer(text))
	}
	for networks, want := range map[string]string{
		"n1":    "cluster=a tlsMode=istio",
		"n2":    "network=n2 tlsMode=istio",
		"n1 n2": "tlsMode=istio",
		"n1 n4": "cluster=a tlsMode=istio",
		"n4":    "network=n4 tlsMode=istio",
	} {
		var ids []federation.NetworkID
		for n := range strings.FieldsSeq(networks) {
			ids = append(ids, federation.NetworkID(n))
		}
		fields := transport.PeerBehind(s, ids...).GetFilterMetadata()["envoy.transport_socket_match"].GetFields()
		var got []string
		for _, key := range []string{"cluster", "network", "tlsMode"} {
			if v, ok := fields[key]; ok {
				got = append(got, key+"="+v.GetStringValue())
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("behind %s: %q, want %q", networks, got, want)
		}
	}
}
