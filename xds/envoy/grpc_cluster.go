package envoy

import (
	"fmt"
	"math"
	"slices"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	leastrequestv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/least_request/v3"
	wrrlocalityv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/wrr_locality/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/destinationrule"
	"isthmus.dev/isthmus/xds/envoy/node"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

// grpcCluster builds the cluster of a service port, or of a subset of it, for
// gRPC clients: with endpoints by EDS, else of one DNS name.
func (b *builder) grpcCluster(name string) proto.Message {
	if b.facet.Scope == node.ScopeStatic {
		if name != resource.BlackHoleCluster {
			return nil
		}
		return newGRPCCluster(name)
	}
	d, ok := b.destinationOf(name)
	if !ok {
		return nil
	}
	c := newGRPCCluster(name)
	if why := d.grpcRefusal(); why != "" {
		b.refuse(d, why)
		return c
	}
	if limit := d.policy.GetConnectionPool().GetHttp().GetHttp2MaxRequests(); limit > 0 {
		c.GetCircuitBreakers().GetThresholds()[0].MaxRequests.Value = uint32(limit)
	}
	b.setGRPCBalancing(c, d)
	b.notInGRPC(d)
	if !d.byDNS() {
		return c
	}
	if found, byName := b.grpcOffers(d); byName {
		c.EdsClusterConfig = nil
		c.ClusterDiscoveryType = &clusterv3.Cluster_Type{Type: clusterv3.Cluster_LOGICAL_DNS}
		c.LoadAssignment = assign(name, found)
	}
	return c
}

// newGRPCCluster is one with endpoints by EDS and without a limit on requests;
// gRPC's default is 1024.
func newGRPCCluster(name string) *clusterv3.Cluster {
	return &clusterv3.Cluster{
		Name: name, ConnectTimeout: durationpb.New(connectTimeout),
		ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS},
		EdsClusterConfig:     &clusterv3.Cluster_EdsClusterConfig{EdsConfig: resource.ADSSource()},
		CircuitBreakers: &clusterv3.CircuitBreakers{Thresholds: []*clusterv3.CircuitBreakers_Thresholds{
			{MaxRequests: wrapperspb.UInt32(math.MaxUint32)},
		}},
	}
}

// grpcRefusal says why gRPC clients may send nothing to the destination: TLS
// that they cannot be told of is never replaced by plain text.
func (d destination) grpcRefusal() string {
	if tls := d.policy.GetTls(); destinationrule.IsTLS(tls) {
		return fmt.Sprintf("tls.mode %s cannot be told to gRPC clients, which take certificates of their own providers only; use DISABLE, or a proxy", tls.GetMode())
	}
	return ""
}

// setGRPCBalancing chooses among endpoints. Least request is put below the
// choice of a locality, since gRPC would otherwise leave weights unregarded.
func (b *builder) setGRPCBalancing(c *clusterv3.Cluster, d destination) {
	balancer := d.policy.GetLoadBalancer()
	hash := balancer.GetConsistentHash()
	switch simple := balancer.GetSimple(); {
	case hash != nil:
		c.LbPolicy = clusterv3.Cluster_RING_HASH
		if hash.GetMaglev() != nil {
			b.leaveOut(d.notInGRPC("loadBalancer.consistentHash.maglev", "a ring is used instead"))
		}
		b.reportIgnored(d, destinationrule.SetRing(c, max(hash.GetRingHash().GetMinimumRingSize(), hash.GetMinimumRingSize())))
	case simple == networking.LoadBalancerSettings_LEAST_REQUEST || simple == networking.LoadBalancerSettings_LEAST_CONN:
		c.LbPolicy = clusterv3.Cluster_LEAST_REQUEST
		least := policyOf("envoy.load_balancing_policies.least_request", &leastrequestv3.LeastRequest{})
		c.LoadBalancingPolicy = policyOf("envoy.load_balancing_policies.wrr_locality", &wrrlocalityv3.WrrLocality{EndpointPickingPolicy: least})
	case simple == networking.LoadBalancerSettings_RANDOM || simple == networking.LoadBalancerSettings_PASSTHROUGH:
		b.leaveOut(d.notInGRPC("loadBalancer.simple", fmt.Sprintf("%s is not known; endpoints take turns", simple)))
	}
}

func policyOf(name string, config proto.Message) *clusterv3.LoadBalancingPolicy {
	return &clusterv3.LoadBalancingPolicy{Policies: []*clusterv3.LoadBalancingPolicy_Policy{{
		TypedExtensionConfig: &corev3.TypedExtensionConfig{Name: name, TypedConfig: resource.Any(config)},
	}}}
}

// byRing tells that gRPC chooses among the destination's endpoints by hash.
func (d destination) byRing() bool { return d.policy.GetLoadBalancer().GetConsistentHash() != nil }

// notInGRPC says of the parts of the policy that gRPC clients do not know them.
func (b *builder) notInGRPC(d destination) {
	pool := d.policy.GetConnectionPool()
	http := proto.CloneOf(pool.GetHttp())
	if http != nil {
		http.Http2MaxRequests = 0
	}
	for _, part := range []struct {
		field, why string
		there      bool
	}{
		{"connectionPool.tcp", "connections are the client's own", pool.GetTcp() != nil},
		{"connectionPool.http", "only http2MaxRequests is known", proto.Size(http) > 0},
		{"outlierDetection", "failures in a row are not counted", d.policy.GetOutlierDetection() != nil},
		{"retryBudget", "retries are limited by the client itself", d.policy.GetRetryBudget() != nil},
	} {
		if part.there {
			b.leaveOut(d.notInGRPC(part.field, part.why))
		}
	}
}

func (d destination) notInGRPC(field, why string) resource.Reason {
	return resource.Reason{Code: resource.ReasonProxyless, Cause: d.rule(), Message: d.ruledBy() + ": trafficPolicy." + field + " has no effect on gRPC clients: " + why}
}

// byDNS tells that the destination's endpoints may be names.
func (d destination) byDNS() bool {
	return d.service.Resolution == federation.DNSLB || d.service.Resolution == federation.DNSRoundRobinLB
}

// grpcOffers lists the endpoints of a destination: those with an IP address.
// Where the service is found by DNS and none has, byName tells that it is the
// first name alone.
func (b *builder) grpcOffers(d destination) (found []offer, byName bool) {
	d.service, _ = b.reader.Endpoints(d.service.Key)
	h := b.horizonOf(d, b.keepClusterLocal(d, b.offers(d)))
	offers := h.direct
	addresses := slices.ContainsFunc(offers, func(o offer) bool { _, is := o.endpoint.Address.IP(); return is })
	for _, o := range offers {
		host, isName := o.endpoint.Address.Host()
		path, isSocket := o.endpoint.Address.Unix()
		switch {
		case isSocket:
			b.leaveOutEndpoint(o, resource.ReasonSocket, path+" is a socket, which gRPC clients are not sent")
		case !isName:
			found = append(found, o)
		case !d.byDNS() || addresses:
			b.leaveOutEndpoint(o, resource.ReasonHostname, host+" is a DNS name among addresses, and gRPC clients resolve one name or none")
		case len(found) > 0:
			b.leaveOutEndpoint(o, resource.ReasonOneAddressOnly, fmt.Sprintf("gRPC clients resolve one name, %s", found[0].endpoint.Address))
		default:
			found, byName = append(found, o), true
		}
	}
	return found, byName
}
