package proxyless

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
	"isthmus.dev/isthmus/xds/envoy/cluster"
	"isthmus.dev/isthmus/xds/envoy/destination"
	"isthmus.dev/isthmus/xds/envoy/destinationrule"
	"isthmus.dev/isthmus/xds/envoy/endpoint"
	"isthmus.dev/isthmus/xds/envoy/facet"
	"isthmus.dev/isthmus/xds/envoy/resource"
	"isthmus.dev/isthmus/xds/envoy/service"
)

// StaticCluster is where requests go that have no destination.
func StaticCluster(_ *facet.View, name string) proto.Message {
	if name != resource.BlackHoleCluster {
		return nil
	}
	return newCluster(name)
}

// Cluster builds the cluster of a service port, or of a subset of it, for
// gRPC clients: with endpoints by EDS, else of one DNS name.
func Cluster(v *facet.View, name string) proto.Message {
	d, ok := destination.Of(v, name)
	if !ok {
		return nil
	}
	c := newCluster(name)
	if why := grpcRefusal(d); why != "" {
		destination.Refuse(v, d, why)
		return c
	}
	if limit := d.Policy.GetConnectionPool().GetHttp().GetHttp2MaxRequests(); limit > 0 {
		c.GetCircuitBreakers().GetThresholds()[0].MaxRequests.Value = uint32(limit)
	}
	setGRPCBalancing(v, c, d)
	reportUnlisted(v, d)
	reportNotInGRPC(v, d)
	if !byDNS(d) {
		return c
	}
	if found, byName := grpcOffers(v, d); byName {
		c.EdsClusterConfig = nil
		c.ClusterDiscoveryType = &clusterv3.Cluster_Type{Type: clusterv3.Cluster_LOGICAL_DNS}
		c.LoadAssignment = endpoint.Assign(name, found)
	}
	return c
}

// newCluster is one with endpoints by EDS and without a limit on requests;
// gRPC's default is 1024.
func newCluster(name string) *clusterv3.Cluster {
	return &clusterv3.Cluster{
		Name: name, ConnectTimeout: durationpb.New(cluster.ConnectTimeout),
		ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS},
		EdsClusterConfig:     &clusterv3.Cluster_EdsClusterConfig{EdsConfig: resource.ADSSource()},
		CircuitBreakers: &clusterv3.CircuitBreakers{Thresholds: []*clusterv3.CircuitBreakers_Thresholds{
			{MaxRequests: wrapperspb.UInt32(math.MaxUint32)},
		}},
	}
}

// grpcRefusal says why gRPC clients may send nothing to the destination: TLS
// that they cannot be told of is never replaced by plain text.
func grpcRefusal(d destination.Destination) string {
	if tls := d.Policy.GetTls(); destinationrule.IsTLS(tls) {
		return fmt.Sprintf("tls.mode %s cannot be told to gRPC clients, which take certificates of their own providers only; use DISABLE, or a proxy", tls.GetMode())
	}
	return ""
}

// setGRPCBalancing chooses among endpoints. Least request is put below the
// choice of a locality, since gRPC would otherwise leave weights unregarded.
func setGRPCBalancing(v *facet.View, c *clusterv3.Cluster, d destination.Destination) {
	balancer := d.Policy.GetLoadBalancer()
	hash := balancer.GetConsistentHash()
	switch simple := balancer.GetSimple(); {
	case hash != nil:
		c.LbPolicy = clusterv3.Cluster_RING_HASH
		if hash.GetMaglev() != nil {
			v.LeaveOut(notInGRPC(d, "loadBalancer.consistentHash.maglev", "a ring is used instead"))
		}
		destination.ReportIgnored(v, d, destinationrule.SetRing(c, max(hash.GetRingHash().GetMinimumRingSize(), hash.GetMinimumRingSize())))
	case simple == networking.LoadBalancerSettings_LEAST_REQUEST || simple == networking.LoadBalancerSettings_LEAST_CONN:
		c.LbPolicy = clusterv3.Cluster_LEAST_REQUEST
		least := policyOf("envoy.load_balancing_policies.least_request", &leastrequestv3.LeastRequest{})
		c.LoadBalancingPolicy = policyOf("envoy.load_balancing_policies.wrr_locality", &wrrlocalityv3.WrrLocality{EndpointPickingPolicy: least})
	case simple == networking.LoadBalancerSettings_RANDOM || simple == networking.LoadBalancerSettings_PASSTHROUGH:
		v.LeaveOut(notInGRPC(d, "loadBalancer.simple", fmt.Sprintf("%s is not known; endpoints take turns", simple)))
	}
}

func policyOf(name string, config proto.Message) *clusterv3.LoadBalancingPolicy {
	return &clusterv3.LoadBalancingPolicy{Policies: []*clusterv3.LoadBalancingPolicy_Policy{{
		TypedExtensionConfig: &corev3.TypedExtensionConfig{Name: name, TypedConfig: resource.Any(config)},
	}}}
}

// byRing reports whether gRPC chooses among the destination's endpoints by hash.
func byRing(d destination.Destination) bool {
	return d.Policy.GetLoadBalancer().GetConsistentHash() != nil
}

// reportNotInGRPC reports the parts of the policy that gRPC clients do not support.
func reportNotInGRPC(v *facet.View, d destination.Destination) {
	pool := d.Policy.GetConnectionPool()
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
		{"outlierDetection", "failures in a row are not counted", d.Policy.GetOutlierDetection() != nil},
		{
			"loadBalancer.localityLbSetting", "localities have the weights of their endpoints",
			d.Policy.GetLoadBalancer().GetLocalityLbSetting() != nil,
		},
		{"loadBalancer.warmup", "new endpoints get their whole share at once", d.Policy.GetLoadBalancer().GetWarmup() != nil ||
			d.Policy.GetLoadBalancer().GetWarmupDurationSecs() != nil},
		{"proxyProtocol", "connections are the client's own", d.Policy.GetProxyProtocol() != nil},
		{"retryBudget", "retries are limited by the client itself", d.Policy.GetRetryBudget() != nil},
	} {
		if part.there {
			v.LeaveOut(notInGRPC(d, part.field, part.why))
		}
	}
}

// reportUnlisted reports a service that the client would have to call by an address: it dials hosts.
func reportUnlisted(v *facet.View, d destination.Destination) {
	if !service.IsUnlisted(d.Service) {
		return
	}
	why := fmt.Sprintf("gRPC clients dial hosts, and nothing lists the addresses of %s, which has the resolution NONE: calls fail", d.Service.Key)
	if d.Port.Target != 0 {
		why += fmt.Sprintf(", and targetPort of port %d has no effect", d.Port.Number)
	}
	v.LeaveOut(resource.Reason{Code: resource.ReasonProxyless, Service: d.Service.Key, Message: why + "; write the resolution STATIC or DNS"})
}

func notInGRPC(d destination.Destination, field, why string) resource.Reason {
	return resource.Reason{Code: resource.ReasonProxyless, Cause: d.Rule(), Message: d.RuledBy() + ": trafficPolicy." + field +
		" has no effect on gRPC clients: " + why}
}

// byDNS reports whether the destination's endpoints may be names.
func byDNS(d destination.Destination) bool {
	return d.Service.Resolution == federation.DNSLB || d.Service.Resolution == federation.DNSRoundRobinLB
}

// grpcOffers lists the endpoints of a destination: those with an IP address.
// Where the service is found by DNS and none has, byName reports whether it is the
// first name alone.
func grpcOffers(v *facet.View, d destination.Destination) (found []endpoint.Offer, byName bool) {
	d.Service, _ = v.Reader.Endpoints(d.Service.Key)
	h := endpoint.SplitHorizon(v, d, endpoint.KeepClusterLocal(v, d, endpoint.Offers(v, d)))
	offers := h.Direct
	addresses := slices.ContainsFunc(offers, func(o endpoint.Offer) bool { _, is := o.Endpoint.Address.IP(); return is })
	for _, o := range offers {
		host, isName := o.Endpoint.Address.Host()
		path, isSocket := o.Endpoint.Address.Unix()
		switch {
		case isSocket:
			endpoint.LeaveOutEndpoint(v, o, resource.ReasonSocket, path+" is a socket, which gRPC clients are not sent")
		case !isName:
			found = append(found, o)
		case !byDNS(d) || addresses:
			endpoint.LeaveOutEndpoint(v, o, resource.ReasonHostname,
				host+" is a DNS name among addresses, and gRPC clients resolve one name or none")
		case len(found) > 0:
			endpoint.LeaveOutEndpoint(v, o, resource.ReasonOneAddressOnly,
				fmt.Sprintf("gRPC clients resolve one name, %s", found[0].Endpoint.Address))
		default:
			found, byName = append(found, o), true
		}
	}
	return found, byName
}
