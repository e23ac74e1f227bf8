package envoy_test

import (
	"slices"
	"testing"

	"isthmus.dev/isthmus/xds/envoy"
	"isthmus.dev/isthmus/xds/envoy/transport"
)

const oneGateway = `
kind: Gateway
metadata: {name: front, namespace: edge}
spec:
  selector: {istio: ingress}
  servers:
  - {port: {number: 80, name: http, protocol: HTTP}, hosts: ["*"]}
`

// Labels that no object asks for do not part proxies.
func TestGatewaysAreForRoutersWithTheLabels(t *testing.T) {
	w := newFixture().attach("c1", "").say("c1", webKey, web(at("10.0.0.1", 8080))).config(t, oneGateway)
	for _, c := range []struct {
		id     string
		labels map[string]any
		mode   string
		want   []string
	}{
		{"router~10.0.0.9~gw.edge~edge.svc.cluster.local", map[string]any{"istio": "ingress"}, "", []string{"0.0.0.0_80"}},
		{"ingress~10.0.0.9~gw.edge~edge.svc.cluster.local", map[string]any{"istio": "ingress", "pod": "1"}, "", []string{"0.0.0.0_80"}},
		{"router~10.0.0.9~gw.edge~edge.svc.cluster.local", map[string]any{"istio": "egress"}, "", []string{}},
		{"router~10.0.0.9~gw.edge~edge.svc.cluster.local", map[string]any{"istio": "ingress"}, "sni-dnat", []string{"0.0.0.0_80"}},
		{"router~10.0.0.9~gw.edge~edge.svc.cluster.local", nil, "", []string{}},
	} {
		metadata := map[string]any{"NAMESPACE": "edge", "ROUTER_MODE": c.mode}
		if c.labels != nil {
			metadata["LABELS"] = c.labels
		}
		built := buildAll(t, parse(t, c.id, metadata), w.snapshot)
		if got := namesOf(built[envoy.ListenerType]); !slices.Equal(got, c.want) {
			t.Errorf("%s %v %s: listeners %q, want %q", c.id, c.labels, c.mode, got, c.want)
		}
	}
	one := envoy.Facets(envoy.ListenerType, parse(t, "router~10.0.0.9~a.edge~edge.svc.cluster.local",
		map[string]any{"LABELS": map[string]any{"istio": "ingress", "pod": "1"}}), w.snapshot)
	two := envoy.Facets(envoy.ListenerType, parse(t, "router~10.0.0.8~b.edge~edge.svc.cluster.local",
		map[string]any{"LABELS": map[string]any{"istio": "ingress", "pod": "2"}}), w.snapshot)
	if !slices.Equal(one, two) {
		t.Errorf("two proxies of one gateway do not share: %v and %v", one, two)
	}
}

// BX11: names are matched; a value that is not a secret name is rejected.
func TestBX11SecretNames(t *testing.T) {
	for _, name := range []string{"web", "web.example.com", "a-1"} {
		for _, want := range []transport.CredentialSecret{
			{Credential: name},
			{Credential: name, Authorities: true},
			{Credential: name, Authorities: true, CRL: "/etc/a~b-cacert.crl"},
			{Namespace: "shop", Credential: name},
			{Namespace: "shop", Credential: name, Authorities: true},
		} {
			if got, ok := transport.ParseSecretName(want.Name()); got != want || !ok {
				t.Errorf("%s is read as %+v, %t", want.Name(), got, ok)
			}
		}
	}
	for _, name := range []string{
		"", "web", "kubernetes://", "kubernetes://../a", "kubernetes://a/b", "file:///etc/shadow",
		"kubernetes://..data", "kubernetes://-cacert", "kubernetes://A", "kubernetes://a\n", "kubernetes-gateway://a/b", "kubernetes-ingress://a",
		"kubernetes-ingress:///a", "kubernetes-ingress://a/", "kubernetes-ingress://a/b/c", "kubernetes-ingress://../a", "default", "ROOTCA",
		"kubernetes://web~/crl.pem", "kubernetes://web-cacert~", "kubernetes://~-cacert",
	} {
		if _, ok := transport.ParseSecretName(name); ok {
			t.Errorf("%q counts as the name of a secret", name)
		}
	}
}

func TestWhatIsNotHonouredOfGatewaysIsSaid(t *testing.T) {
	for name, c := range map[string]struct {
		server string
		want   []string
	}{
		"all supported": {`{port: {number: 443, name: a, protocol: HTTPS}, bind: "::1", hosts: ["./a.example", "*"], tls: {mode: MUTUAL, credentialName: a, subjectAltNames: [b], cipherSuites: [AES128-SHA]}}`, nil},
		"redirect":      {`{port: {number: 80, name: a, protocol: HTTP}, hosts: ["*"], tls: {httpsRedirect: true}}`, nil},
		"fields": {
			`{port: {number: 80, name: a, protocol: HTTP, targetPort: 8080}, defaultEndpoint: "127.0.0.1:1", hosts: ["*"]}`,
			[]string{"servers[0].defaultEndpoint", "servers[0].port.targetPort"},
		},
		"mode":   {`{port: {number: 443, name: a, protocol: TLS}, hosts: ["*"], tls: {mode: AUTO_PASSTHROUGH}}`, nil},
		"values": {`{port: {number: 443, name: a, protocol: HTTPS}, bind: "unix:///a", hosts: ["*a", "a b"], tls: {mode: SIMPLE, credentialName: a/b, httpsRedirect: true}}`, []string{"servers[0].bind", "servers[0].hosts[0]", "servers[0].hosts[1]", "servers[0].tls.credentialName", "servers[0].tls.httpsRedirect"}},
		"plaintext": {
			`{port: {number: 80, name: a, protocol: HTTP}, hosts: ["*"], tls: {mode: SIMPLE, credentialName: a}}`,
			[]string{"servers[0].tls"},
		},
		"K56 clients whose certificates are not verified": {`{port: {number: 443, name: a, protocol: HTTPS}, hosts: ["*"], tls: {mode: OPTIONAL_MUTUAL, credentialName: a, insecureSkipVerify: true}}`, nil},
		"G56 datagrams": {`{port: {number: 53, name: a, protocol: UDP}, hosts: ["*"]}`, nil},
		"G56 datagrams with TLS": {
			`{port: {number: 53, name: a, protocol: UDP}, hosts: ["*"], tls: {mode: SIMPLE, credentialName: a}}`,
			[]string{"servers[0].port.protocol"},
		},
		"K56 nobody is verified": {`{port: {number: 443, name: a, protocol: HTTPS}, hosts: ["*"], tls: {mode: SIMPLE, credentialName: a, insecureSkipVerify: true}}`, []string{"servers[0].tls.insecureSkipVerify"}},
		"protocol": {
			`{port: {number: 0, name: a, protocol: SCTP}, hosts: ["*"]}`,
			[]string{"servers[0].port.number", "servers[0].port.protocol"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture().config(t, "kind: Gateway\nmetadata: {name: n, namespace: shop}\nspec: {servers: ["+c.server+"]}")
			var got []string
			for o := range w.snapshot.Objects().All() {
				for _, f := range envoy.NotHonoured(o) {
					got = append(got, f.Path)
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("not supported are %q, want %q", got, c.want)
			}
		})
	}
}
