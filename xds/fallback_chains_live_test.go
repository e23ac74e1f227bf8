package xds

import (
	"crypto/tls"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/xds/envoy"
	resources "isthmus.dev/isthmus/xds/envoy/resource"
)

// chainDefects are what Envoy refuses in the filter chain of a server whose clients
// must have the name of the defect: each is what no rule of the schema finds.
var chainDefects = map[string]func(*listenerv3.FilterChain, *tlsv3.DownstreamTlsContext){
	"a cipher suite that is unknown": func(_ *listenerv3.FilterChain, c *tlsv3.DownstreamTlsContext) {
		c.CommonTlsContext.TlsParams.CipherSuites = []string{"NOPE"}
	},
	"a hash that is none": func(_ *listenerv3.FilterChain, c *tlsv3.DownstreamTlsContext) {
		c.CommonTlsContext.GetCombinedValidationContext().DefaultValidationContext.VerifyCertificateHash = []string{strings.Repeat("zz", 32)}
	},
	"a network filter that is unknown": func(chain *listenerv3.FilterChain, _ *tlsv3.DownstreamTlsContext) {
		nope := &anypb.Any{TypeUrl: "type.googleapis.com/nope.v1.Nope"}
		chain.Filters[0].ConfigType = &listenerv3.Filter_TypedConfig{TypedConfig: nope}
	},
}

// words are from what Envoy says about each cause of rejection.
var words = map[string]string{
	"a cipher suite that is unknown":   "Failed to initialize cipher suites NOPE",
	"a hash that is none":              "Invalid hex-encoded SHA-256 " + strings.Repeat("zz", 32),
	"a network filter that is unknown": "nope.v1.Nope",
}

// plantingInChains builds filter chains with defects, and does not look for them.
func plantingInChains() *builder {
	made := envoyBuilder
	made.validate = func(proto.Message) error { return nil }
	made.build = func(t envoy.Type, name string, f envoy.Facet, r *federation.Reader) (proto.Message, []envoy.Reason, error) {
		m, reasons, err := envoy.Build(t, name, f, r)
		if l, ok := m.(*listenerv3.Listener); ok && l != nil {
			plantInChains(l)
		}
		return m, reasons, err
	}
	return &made
}

func plantInChains(l *listenerv3.Listener) {
	for _, chain := range l.GetFilterChains() {
		c := &tlsv3.DownstreamTlsContext{}
		if chain.GetTransportSocket().GetTypedConfig().UnmarshalTo(c) != nil {
			continue
		}
		for _, name := range c.GetCommonTlsContext().GetCombinedValidationContext().GetDefaultValidationContext().GetMatchTypedSubjectAltNames() {
			if plant := chainDefects[name.GetMatcher().GetExact()]; plant != nil {
				plant(chain, c)
				chain.GetTransportSocket().ConfigType = &corev3.TransportSocket_TypedConfig{TypedConfig: resources.Any(c)}
			}
		}
	}
}

// atVersion are settings by which the newest version of TLS is the given one.
func atVersion(version networking.ServerTLSSettings_TLSProtocol) *networking.ServerTLSSettings {
	tls := simpleTLS()
	tls.MaxProtocolVersion = version
	return tls
}

// speaks fails unless the tenant's host accepts the version of TLS.
func (e *edge) speaks(tenant string, want uint16) func() error {
	return func() error {
		c, err := e.dial(tenant + ".example.com")
		if err != nil {
			return err
		}
		if got := c.conn.ConnectionState().Version; got != want {
			return fmt.Errorf("%s speaks %x, want %x", tenant, got, want)
		}
		return nil
	}
}

// The same for filter chains: tenants share the port of TLS.
func TestR05ARefusedFilterChainStopsNobodyElse(t *testing.T) {
	e := newEdge(t, plantingInChains())
	e.rotate("one", "a.example.com", "b.example.com")
	a, b := tenantKey("Gateway", "a"), tenantKey("Gateway", "b")
	const tls12, tls13 = networking.ServerTLSSettings_TLSV1_2, networking.ServerTLSSettings_TLSV1_3
	speaks := map[networking.ServerTLSSettings_TLSProtocol]uint16{tls12: tls.VersionTLS12, tls13: tls.VersionTLS13}
	e.objects(tenantGateway("a", simpleTLS()), tenantGateway("b", atVersion(tls13)), answering("a", "a0"), answering("b", "b0"))
	e.await("a to serve TLS", e.speaks("a", tls.VersionTLS13))
	e.await("b to serve TLS", e.speaks("b", tls.VersionTLS13))
	mutual := func() *networking.ServerTLSSettings {
		s := atVersion(tls12)
		s.Mode = networking.ServerTLSSettings_MUTUAL
		return s
	}
	causes := map[string]*networking.ServerTLSSettings{}
	for name := range chainDefects {
		causes[name] = mutual()
		causes[name].SubjectAltNames = []string{name}
	}
	next := tls12
	for cause, bad := range causes {
		e.objects(tenantGateway("a", bad))
		e.await(cause+": the refusal to be shown", func() error {
			if reports := slices.Collect(e.server.Object(e.snapshots.Latest(), e.fleet.Latest(), a).Proxies()); len(reports) != 1 ||
				!strings.Contains(reports[0].Error, words[cause]) {
				return fmt.Errorf("the status of a has not what Envoy said, %q: %+v", words[cause], reports)
			}
			return e.stands(a, fleet.Rejected)()
		})
		e.objects(tenantGateway("b", atVersion(next)))
		e.await(cause+": the change of b", e.speaks("b", speaks[next]))
		if err := e.speaks("a", tls.VersionTLS13)(); err != nil {
			t.Errorf("%s: what was accepted last is not in force: %v", cause, err)
		}
		e.await(cause+": a to stay refused", e.stands(a, fleet.Rejected))
		e.await(cause+": b to be well", e.stands(b, fleet.Accepted))
		e.objects(tenantGateway("a", simpleTLS()))
		e.await(cause+": a to be well", e.stands(a, fleet.Accepted))
		next = tls12 + tls13 - next
	}
	e.objects(tenantGateway("a", atVersion(tls12)))
	e.await("the correction", e.speaks("a", tls.VersionTLS12))
	e.await("everything to be accepted", e.inSync)
}
