package envoy

import (
	"math"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	upstreamhttpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/check"
	"isthmus.dev/isthmus/xds/envoy/destinationrule"
	"isthmus.dev/isthmus/xds/envoy/resource"
	"isthmus.dev/isthmus/xds/envoy/transport"
)

// connectTimeout is how long an endpoint may take to accept a connection.
const connectTimeout = 10 * time.Second

// How often DNS names are resolved again: where the answer says nothing of it, and
// after a failure.
const (
	dnsRefresh   = time.Minute
	dnsRetry     = time.Second
	dnsRetryMost = 10 * time.Second
)

// upstreamProtocols is the key of the HTTP options of a cluster.
const upstreamProtocols = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"

// The addresses from which the proxy speaks to its own workload; the capture
// rules let its connections through. That of IPv6 must be one of the pod's.
const (
	inboundSource     = "127.0.0.6"
	inboundSourceIPv6 = "::6"
)

// staticCluster builds the clusters that are the same everywhere.
func staticCluster(name string, ipv6 bool) proto.Message {
	switch name {
	case resource.PassthroughCluster:
		return originalDestination(name)
	case resource.InboundPassthroughCluster:
		c := originalDestination(name)
		c.UpstreamBindConfig = &corev3.BindConfig{SourceAddress: resource.SocketAddress(inboundSource, 0).GetSocketAddress()}
		if ipv6 {
			c.UpstreamBindConfig.ExtraSourceAddresses = []*corev3.ExtraSourceAddress{{Address: resource.SocketAddress(inboundSourceIPv6, 0).GetSocketAddress()}}
		}
		return c
	case resource.BlackHoleCluster:
		return emptyCluster(name)
	}
	return nil
}

// originalDestination sends to where the caller wanted, in the caller's version
// of HTTP.
func originalDestination(name string) *clusterv3.Cluster {
	c := newCluster(name)
	c.ClusterDiscoveryType = &clusterv3.Cluster_Type{Type: clusterv3.Cluster_ORIGINAL_DST}
	c.LbPolicy = clusterv3.Cluster_CLUSTER_PROVIDED
	setProtocols(c, &upstreamhttpv3.HttpProtocolOptions{
		UpstreamProtocolOptions: &upstreamhttpv3.HttpProtocolOptions_UseDownstreamProtocolConfig{
			UseDownstreamProtocolConfig: &upstreamhttpv3.HttpProtocolOptions_UseDownstreamHttpConfig{
				HttpProtocolOptions:  &corev3.Http1ProtocolOptions{},
				Http2ProtocolOptions: &corev3.Http2ProtocolOptions{},
			},
		},
	})
	return c
}

// newCluster has no limit on connections and requests: Envoy's default of 1024
// would refuse what worked without a proxy.
func newCluster(name string) *clusterv3.Cluster {
	unlimited := func() *wrapperspb.UInt32Value { return wrapperspb.UInt32(math.MaxUint32) }
	return &clusterv3.Cluster{
		Name: name, ConnectTimeout: durationpb.New(connectTimeout),
		CircuitBreakers: &clusterv3.CircuitBreakers{Thresholds: []*clusterv3.CircuitBreakers_Thresholds{{
			MaxConnections: unlimited(), MaxPendingRequests: unlimited(), MaxRequests: unlimited(), MaxRetries: unlimited(),
		}}},
	}
}

func setProtocols(c *clusterv3.Cluster, options *upstreamhttpv3.HttpProtocolOptions) {
	c.TypedExtensionProtocolOptions = map[string]*anypb.Any{upstreamProtocols: resource.Any(options)}
}

// destination is what the name of a cluster stands for.
type destination struct {
	servedPort
	name   string
	subset string
	labels map[string]string // of its endpoints
	policy *networking.TrafficPolicy
	rules  []*federation.Object // that made the policy
	// identity tells that callers have an identity of the mesh; sni is what mutual
	// TLS asks for, and taken whose name that is, if not the destination's.
	identity   bool
	agent      bool // it comes from Istio's agent
	sni, taken string
	balanced   bool // Envoy chooses the endpoint, whatever the service and the rules say
}

// destinationOf finds what the name stands for; false where it is not this
// facet's business, or there is no such subset.
func (b *builder) destinationOf(name string) (destination, bool) {
	id, ok := resource.ParseClusterName(name)
	if !ok {
		return destination{}, false
	}
	p, ok := b.ownerOf(id)
	if !ok || !b.ruledHere(p.service) || b.isAlias(p.service) || b.facet.Balanced && !callersChoose(p.service, b.reader) {
		return destination{}, false
	}
	r := b.ruling(p.service)
	subset, ok := r.Subset(id.Subset)
	if !ok && id.Subset != "" {
		return destination{}, false
	}
	d := destination{
		servedPort: p, name: name, subset: id.Subset, labels: subset.GetLabels(),
		policy: r.PolicyOf(p.port.Number, subset), rules: r.Rules, identity: b.facet.Identity, agent: b.facet.Agent,
		balanced: b.facet.Balanced,
	}
	if d.mutual() {
		d.sni, d.taken = b.serverNameOf(d, r.Subsets)
	}
	if d.passthrough() {
		d.taken = "" // the address decides where connections end, not the name that they ask for
	}
	return d, true
}

// eds tells that the destination's endpoints come by EDS.
func (d destination) eds() bool {
	known := d.service.Resolution == federation.ClientSideLB || d.service.Resolution == federation.Passthrough
	return known && !d.passthrough() && d.refusal() == "" && d.taken == ""
}

// passthrough tells that callers choose the endpoint.
func (d destination) passthrough() bool {
	return !d.balanced && (d.service.Resolution == federation.Passthrough ||
		d.policy.GetLoadBalancer().GetSimple() == networking.LoadBalancerSettings_PASSTHROUGH)
}

// callersChoose tells that sidecars send to where the caller wanted, because the
// service or a rule about it says so. Connections of a gateway were meant for the
// gateway: it balances over the endpoints.
func callersChoose(s *federation.Service, in destinationrule.Objects) bool {
	if s.Resolution == federation.Passthrough {
		return true
	}
	return s.Resolution == federation.ClientSideLB && destinationrule.Any(s.Key.Hostname, in, destinationrule.LetsChoose)
}

// cluster builds the cluster of a service port or of a subset of it.
func (b *builder) cluster(name string) proto.Message {
	d, ok := b.destinationOf(name)
	if !ok {
		return nil
	}
	if why := d.refusal(); why != "" {
		b.refuse(d, why)
		return emptyCluster(name)
	}
	if d.taken != "" {
		b.leaveOut(d.sniConflict(d.sni, d.taken, federation.ObjectKey{}))
		return emptyCluster(name)
	}
	c := newCluster(name)
	b.setDiscovery(c, d)
	b.balance(c, d)
	destinationrule.SetLimits(c, d.policy)
	destinationrule.SetOutlierDetection(c, d.policy.GetOutlierDetection())
	options := destinationrule.HTTPOptions(d.port.Protocol, d.policy)
	switch {
	case d.mutual() && d.passthrough():
		b.setMutualByAddress(c, d)
	case d.mutual():
		b.setMutual(c, d)
	case destinationrule.IsTLS(d.policy.GetTls()):
		d.service, _ = b.reader.Accounts(d.service.Key)
		c.TransportSocket = transport.TLSSocket(d.policy.GetTls(), d.server(options != nil), options)
	}
	if options != nil {
		setProtocols(c, options)
	}
	return c
}

// emptyCluster answers every request with an error.
func emptyCluster(name string) *clusterv3.Cluster {
	return &clusterv3.Cluster{
		Name: name, ConnectTimeout: durationpb.New(connectTimeout),
		ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STATIC},
	}
}

func (b *builder) setDiscovery(c *clusterv3.Cluster, d destination) {
	if d.passthrough() {
		c.ClusterDiscoveryType = &clusterv3.Cluster_Type{Type: clusterv3.Cluster_ORIGINAL_DST}
		c.LbPolicy = clusterv3.Cluster_CLUSTER_PROVIDED
		return
	}
	c.CommonLbConfig = &clusterv3.Cluster_CommonLbConfig{HealthyPanicThreshold: &typev3.Percent{Value: destinationrule.PanicThreshold(d.policy)}}
	if d.eds() {
		c.ClusterDiscoveryType = &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS}
		c.EdsClusterConfig = &clusterv3.Cluster_EdsClusterConfig{EdsConfig: resource.ADSSource()}
		return
	}
	c.LoadAssignment = b.namedEndpoints(d)
	c.DnsLookupFamily = clusterv3.Cluster_V4_PREFERRED
	// The TTL of an answer holds; what has none is asked for again at Istio's rate.
	c.RespectDnsTtl, c.DnsRefreshRate = true, durationpb.New(dnsRefresh)
	c.DnsFailureRefreshRate = &clusterv3.Cluster_RefreshRate{BaseInterval: durationpb.New(dnsRetry), MaxInterval: durationpb.New(dnsRetryMost)}
	c.ClusterDiscoveryType = &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STRICT_DNS}
	if d.service.Resolution == federation.DNSRoundRobinLB && check.CountEndpoints(c.LoadAssignment) == 1 {
		c.ClusterDiscoveryType = &clusterv3.Cluster_Type{Type: clusterv3.Cluster_LOGICAL_DNS}
	}
}
