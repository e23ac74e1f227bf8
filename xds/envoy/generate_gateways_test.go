package envoy_test

import (
	"fmt"

	"google.golang.org/protobuf/types/known/wrapperspb"
	networking "istio.io/api/networking/v1"
	"pgregory.net/rapid"

	"isthmus.dev/isthmus/federation"
)

// drawGateway makes one of anything, not all of it sensible.
func drawGateway(t *rapid.T, name string) *federation.Object {
	spec := &networking.Gateway{Selector: rapid.SampledFrom([]map[string]string{
		nil,
		{"istio": "ingress"},
		{"istio": "other"},
		{federation.LabelCluster: "c1"},
	}).Draw(t, "selector")}
	for i := range rapid.IntRange(0, 4).Draw(t, "servers") {
		spec.Servers = append(spec.Servers, drawServer(t, i))
	}
	o := &federation.Object{
		Key:    federation.ObjectKey{Group: "networking.istio.io", Kind: "Gateway", Namespace: "shop", Name: name},
		Digest: fmt.Sprint(spec), Spec: spec,
	}
	if rapid.Bool().Draw(t, "of a listener") {
		o.Origin = federation.Origin{Key: federation.ObjectKey{Kind: "Gateway", Name: name}, Field: "spec.listeners[0]"}
	}
	if rapid.Bool().Draw(t, "of a namespace") {
		o.Credentials = federation.CredentialGrant{To: "shop", Only: true}
	}
	index(o)
	return o
}

func drawServer(t *rapid.T, i int) *networking.Server {
	s := &networking.Server{
		Port: &networking.Port{
			Number:   rapid.SampledFrom([]uint32{80, 443, 443, 0, 1 << 20}).Draw(t, "port"),
			Protocol: rapid.SampledFrom([]string{"HTTP", "HTTPS", "HTTPS", "TLS", "TCP", "UDP", ""}).Draw(t, "server protocol"),
			Name:     rapid.SampledFrom([]string{"", "a", fmt.Sprint("b", i)}).Draw(t, "port name"),
		},
		Bind: rapid.SampledFrom([]string{"", "", "127.0.0.1", "::1", "nowhere"}).Draw(t, "bind"),
		Hosts: rapid.SliceOfN(rapid.SampledFrom([]string{"*", "*/*", "./*.example", "shop/a.example", "A.example", "*a", "none/x", ""}),
			0, 3).Draw(t, "server hosts"),
	}
	if rapid.Bool().Draw(t, "has tls") {
		s.Tls = &networking.ServerTLSSettings{
			Mode:               networking.ServerTLSSettings_TLSmode(rapid.IntRange(0, 5).Draw(t, "tls mode")),
			HttpsRedirect:      rapid.Bool().Draw(t, "redirect to https"),
			CredentialName:     rapid.SampledFrom([]string{"a", "b-cacert", "", "x/y"}).Draw(t, "credential"),
			SubjectAltNames:    rapid.SampledFrom([][]string{nil, {"a.example", "spiffe://x/y"}}).Draw(t, "names of callers"),
			MinProtocolVersion: networking.ServerTLSSettings_TLSProtocol(rapid.IntRange(0, 4).Draw(t, "least version")),
			CipherSuites:       rapid.SampledFrom([][]string{nil, {"AES128-SHA", "AES128-SHA"}, {"X"}}).Draw(t, "suites"),
			InsecureSkipVerify: wrapperspb.Bool(rapid.Bool().Draw(t, "skip")),
			CaCertificates:     rapid.SampledFrom([]string{"", "/etc/proxy/ca.pem"}).Draw(t, "authorities"),
		}
	}
	return s
}
