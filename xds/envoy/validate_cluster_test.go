package envoy_test

import (
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"isthmus.dev/isthmus/xds/envoy"
)

func spoilTLS(t *testing.T, common *tlsv3.CommonTlsContext) func(*clusterv3.Cluster) {
	return func(c *clusterv3.Cluster) {
		c.TransportSocket = &corev3.TransportSocket{Name: "envoy.transport_sockets.tls", ConfigType: &corev3.TransportSocket_TypedConfig{
			TypedConfig: pack(t, &tlsv3.UpstreamTlsContext{CommonTlsContext: common}),
		}}
	}
}

// Clusters that DestinationRules can produce are judged as Envoy does.
func TestBadClustersAreNeverSent(t *testing.T) {
	w := newFixture().attach("c1", "").say("c1", webKey, web(at("10.0.0.1", 8080)))
	names := &tlsv3.CertificateValidationContext{MatchTypedSubjectAltNames: []*tlsv3.SubjectAltNameMatcher{{
		SanType: tlsv3.SubjectAltNameMatcher_DNS, Matcher: &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Exact{Exact: "a"}},
	}}}
	for name, c := range map[string]struct {
		want  string
		envoy bool
		do    func(*clusterv3.Cluster)
	}{
		"foreign endpoints": {"own name", false, func(c *clusterv3.Cluster) { c.EdsClusterConfig.ServiceName = "other" }},
		"provided for EDS":  {"CLUSTER_PROVIDED", true, func(c *clusterv3.Cluster) { c.LbPolicy = clusterv3.Cluster_CLUSTER_PROVIDED }},
		"large ring": {"minimum_ring_size", true, func(c *clusterv3.Cluster) {
			c.LbPolicy = clusterv3.Cluster_RING_HASH
			c.LbConfig = &clusterv3.Cluster_RingHashLbConfig_{RingHashLbConfig: &clusterv3.Cluster_RingHashLbConfig{MinimumRingSize: wrapperspb.UInt64(8<<20 + 1)}}
		}},
		"ring above its limit": {"minimum_ring_size", true, func(c *clusterv3.Cluster) {
			c.LbPolicy = clusterv3.Cluster_RING_HASH
			c.LbConfig = &clusterv3.Cluster_RingHashLbConfig_{RingHashLbConfig: &clusterv3.Cluster_RingHashLbConfig{MinimumRingSize: wrapperspb.UInt64(9), MaximumRingSize: wrapperspb.UInt64(8)}}
		}},
		"table without a prime": {"table_size", true, func(c *clusterv3.Cluster) {
			c.LbPolicy = clusterv3.Cluster_MAGLEV
			c.LbConfig = &clusterv3.Cluster_MaglevLbConfig_{MaglevLbConfig: &clusterv3.Cluster_MaglevLbConfig{TableSize: wrapperspb.UInt64(100)}}
		}},
		"names without authority": {
			"trusted_ca", true,
			spoilTLS(t, &tlsv3.CommonTlsContext{ValidationContextType: &tlsv3.CommonTlsContext_ValidationContext{ValidationContext: names}}),
		},
		"versions upside down": {"version", false, spoilTLS(t, &tlsv3.CommonTlsContext{TlsParams: &tlsv3.TlsParameters{
			TlsMinimumProtocolVersion: tlsv3.TlsParameters_TLSv1_3, TlsMaximumProtocolVersion: tlsv3.TlsParameters_TLSv1_2,
		}})},
		"certificate without key": {"no key", true, spoilTLS(t, &tlsv3.CommonTlsContext{TlsCertificates: []*tlsv3.TlsCertificate{{
			CertificateChain: &corev3.DataSource{Specifier: &corev3.DataSource_InlineString{InlineString: "x"}},
		}}})},
		"endless duration": {"duration", true, func(c *clusterv3.Cluster) {
			c.ConnectTimeout = durationpb.New(0)
			c.ConnectTimeout.Seconds = 300_000_000_000
		}},
	} {
		t.Run(name, func(t *testing.T) {
			spoil{envoy.ClusterType, webCluster, c.want, c.envoy, spoilCluster(c.do)}.judge(t, w)
		})
	}
}
