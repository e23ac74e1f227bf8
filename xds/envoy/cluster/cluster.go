// Package cluster makes clusters of destinations, and those that are the same for every
// proxy.
package cluster

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

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/check"
	"isthmus.dev/isthmus/xds/envoy/destination"
	"isthmus.dev/isthmus/xds/envoy/destinationrule"
	"isthmus.dev/isthmus/xds/envoy/endpoint"
	"isthmus.dev/isthmus/xds/envoy/facet"
	"isthmus.dev/isthmus/xds/envoy/resource"
	"isthmus.dev/isthmus/xds/envoy/transport"
)

// ConnectTimeout is how long an endpoint may take to accept a connection.
const ConnectTimeout = 10 * time.Second

// How often DNS names are resolved again: where the answer says nothing of it, and
// after a failure.
const (
	dnsRefresh   = time.Minute
	dnsRetry     = time.Second
	dnsRetryMost = 10 * time.Second
)

// upstreamProtocols is the key of the HTTP options of a cluster.
const upstreamProtocols = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"

// New has no limit on connections and requests: Envoy's default of 1024
// would refuse what worked without a proxy.
func New(name string) *clusterv3.Cluster {
	unlimited := func() *wrapperspb.UInt32Value { return wrapperspb.UInt32(math.MaxUint32) }
	return &clusterv3.Cluster{
		Name: name, ConnectTimeout: durationpb.New(ConnectTimeout),
		CircuitBreakers: &clusterv3.CircuitBreakers{Thresholds: []*clusterv3.CircuitBreakers_Thresholds{{
			MaxConnections: unlimited(), MaxPendingRequests: unlimited(), MaxRequests: unlimited(), MaxRetries: unlimited(),
		}}},
	}
}

// OfEndpoints has the endpoints that the hub serves for it, and the limits of the
// destination's policy.
func OfEndpoints(name string, d destination.Destination) *clusterv3.Cluster {
	c := New(name)
	setPanicThreshold(c, d)
	setEDS(c)
	destinationrule.SetLimits(c, d.Policy)
	return c
}

func setEDS(c *clusterv3.Cluster) {
	c.ClusterDiscoveryType = &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS}
	c.EdsClusterConfig = &clusterv3.Cluster_EdsClusterConfig{EdsConfig: resource.ADSSource()}
}

func setPanicThreshold(c *clusterv3.Cluster, d destination.Destination) {
	c.CommonLbConfig = &clusterv3.Cluster_CommonLbConfig{HealthyPanicThreshold: &typev3.Percent{Value: destinationrule.PanicThreshold(d.Policy)}}
}

func setProtocols(c *clusterv3.Cluster, options *upstreamhttpv3.HttpProtocolOptions) {
	c.TypedExtensionProtocolOptions = map[string]*anypb.Any{upstreamProtocols: resource.Any(options)}
}

// Build builds the cluster of a service port or of a subset of it.
func Build(v *facet.View, name string) proto.Message {
	d, ok := destination.Of(v, name)
	if !ok {
		return nil
	}
	if why := d.Refusal(); why != "" {
		destination.Refuse(v, d, why)
		return Empty(name)
	}
	if d.Taken != "" {
		v.LeaveOut(d.SNIConflict(d.SNI, d.Taken, federation.ObjectKey{}))
		return Empty(name)
	}
	c := New(name)
	c.Metadata = istioMetadata(d)
	if !d.Service.IsDynamic() {
		setDiscovery(v, c, d)
		Balance(v, c, d)
	}
	destinationrule.SetLimits(c, d.Policy)
	destinationrule.SetOutlierDetection(c, d.Policy.GetOutlierDetection())
	speaks, asCaller := d.Requests()
	options := destinationrule.HTTPOptions(speaks, asCaller, d.Policy)
	switch {
	case d.Mutual() && d.Passthrough():
		setMutualByAddress(v, c, d)
	case d.Mutual():
		setMutual(v, c, d)
	case destinationrule.IsTLS(d.Policy.GetTls()):
		d.Service, _ = v.Reader.Accounts(d.Service.Key)
		c.TransportSocket = transport.TLSSocket(d.Policy.GetTls(), d.Server(d.Port.Protocol.IsHTTP()), options)
	}
	if d.Service.IsDynamic() {
		setDynamic(v, c, d, options)
	}
	if options != nil {
		setProtocols(c, options)
	}
	if d.Stats {
		c.Filters = append(c.Filters, &clusterv3.Filter{Name: resource.ExchangeFilter, TypedConfig: resource.Exchange()})
	}
	if announced := d.Policy.GetProxyProtocol(); announced != nil {
		transport.SendProxyProtocol(c, announced)
	}
	return c
}

// istioMetadata is for proxies of Istio's agent: its tools read it.
func istioMetadata(d destination.Destination) *corev3.Metadata {
	if !d.Agent {
		return nil
	}
	var rule *federation.Object
	if len(d.Rules) > 0 {
		rule = d.Rules[0]
	}
	return resource.IstioMetadata(rule, d.Service.Key)
}

func setDiscovery(v *facet.View, c *clusterv3.Cluster, d destination.Destination) {
	if d.Passthrough() {
		c.ClusterDiscoveryType = &clusterv3.Cluster_Type{Type: clusterv3.Cluster_ORIGINAL_DST}
		c.LbPolicy = clusterv3.Cluster_CLUSTER_PROVIDED
		if target := d.Port.Target; target != 0 && d.Service.Resolution == federation.Passthrough {
			c.LbConfig = &clusterv3.Cluster_OriginalDstLbConfig_{OriginalDstLbConfig: &clusterv3.Cluster_OriginalDstLbConfig{
				UpstreamPortOverride: wrapperspb.UInt32(uint32(target)),
			}}
		}
		return
	}
	setPanicThreshold(c, d)
	if d.EDS() {
		setEDS(c)
		return
	}
	c.LoadAssignment = endpoint.NamedEndpoints(v, d)
	c.DnsLookupFamily = v.Facet.Lookup.Family()
	// The TTL of an answer holds; what has none is asked for again at Istio's rate.
	c.RespectDnsTtl, c.DnsRefreshRate = true, durationpb.New(dnsRefresh)
	c.DnsFailureRefreshRate = &clusterv3.Cluster_RefreshRate{BaseInterval: durationpb.New(dnsRetry), MaxInterval: durationpb.New(dnsRetryMost)}
	c.ClusterDiscoveryType = &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STRICT_DNS}
	if d.Service.Resolution == federation.DNSRoundRobinLB && check.CountEndpoints(c.LoadAssignment) == 1 {
		c.ClusterDiscoveryType = &clusterv3.Cluster_Type{Type: clusterv3.Cluster_LOGICAL_DNS}
	}
}

// Balance has Envoy choose among the endpoints, unless callers do.
func Balance(v *facet.View, c *clusterv3.Cluster, d destination.Destination) {
	if d.Passthrough() {
		return
	}
	destination.ReportIgnored(v, d, destinationrule.SetBalancing(c, d.Policy, d.EDS() && destinationrule.Weighted(d.Policy, v.Reader.Mesh())))
	destination.ReportIgnored(v, d, destinationrule.IgnoredLocalities(d.Policy, d.EDS()))
}
