package check

import (
	"fmt"
	"net/netip"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
)

func validateCluster(c *clusterv3.Cluster) error {
	for _, rule := range []func(*clusterv3.Cluster) error{validateDiscovery, validateBalancing, validateTransport} {
		if err := rule(c); err != nil {
			return err
		}
	}
	return nil
}

// validateDiscovery leaves extensions to Envoy: they have rules of their own for load_assignment.
func validateDiscovery(c *clusterv3.Cluster) error {
	if c.GetClusterType() != nil {
		return nil
	}
	local := c.GetLoadAssignment()
	switch c.GetType() {
	case clusterv3.Cluster_EDS:
		if c.GetEdsClusterConfig().GetEdsConfig().GetAds() == nil {
			return fmt.Errorf("eds_cluster_config: endpoints do not come by ADS")
		}
		if name := c.GetEdsClusterConfig().GetServiceName(); name != "" && name != c.GetName() {
			return fmt.Errorf("eds_cluster_config.service_name: %q is not the cluster's own name", name)
		}
	case clusterv3.Cluster_ORIGINAL_DST:
		if c.GetLbPolicy() != clusterv3.Cluster_CLUSTER_PROVIDED || local != nil {
			return fmt.Errorf("lb_policy: an ORIGINAL_DST cluster needs CLUSTER_PROVIDED and no endpoints")
		}
	case clusterv3.Cluster_LOGICAL_DNS:
		if n := CountEndpoints(local); n != 1 {
			return fmt.Errorf("load_assignment: a LOGICAL_DNS cluster needs one endpoint, this has %d", n)
		}
		return validateAssignment(local, onlySockets)
	case clusterv3.Cluster_STATIC:
		return validateStatic(local)
	case clusterv3.Cluster_STRICT_DNS:
		return validateAssignment(local, onlySockets)
	}
	return nil
}

// validateStatic demands addresses that Envoy need not resolve.
func validateStatic(a *endpointv3.ClusterLoadAssignment) error {
	for i, group := range a.GetEndpoints() {
		for j, e := range group.GetLbEndpoints() {
			socket := e.GetEndpoint().GetAddress().GetSocketAddress()
			if socket == nil || socket.GetResolverName() != "" {
				continue
			}
			if _, err := netip.ParseAddr(socket.GetAddress()); err != nil {
				return fmt.Errorf("load_assignment: endpoints[%d]: lb_endpoints[%d]: %q is not an IP address; a cluster of names has the type STRICT_DNS",
					i, j, socket.GetAddress())
			}
		}
	}
	return nil
}

func validateBalancing(c *clusterv3.Cluster) error {
	if c.GetLbPolicy() == clusterv3.Cluster_CLUSTER_PROVIDED && c.GetClusterType() == nil && c.GetType() != clusterv3.Cluster_ORIGINAL_DST {
		return fmt.Errorf("lb_policy: CLUSTER_PROVIDED is for ORIGINAL_DST clusters and for those that are an extension alone")
	}
	if ring := c.GetRingHashLbConfig(); ring.GetMinimumRingSize() != nil {
		most := uint64(MaxRingSize)
		if ring.GetMaximumRingSize() != nil {
			most = ring.GetMaximumRingSize().GetValue()
		}
		if least := ring.GetMinimumRingSize().GetValue(); least > most {
			return fmt.Errorf("ring_hash_lb_config.minimum_ring_size: %d is more than the largest ring, %d", least, most)
		}
	}
	if size := c.GetMaglevLbConfig().GetTableSize(); size != nil && !IsTableSize(size.GetValue()) {
		return fmt.Errorf("maglev_lb_config.table_size: %d is not a prime number up to %d", size.GetValue(), MaxTableSize)
	}
	return nil
}

func validateTransport(c *clusterv3.Cluster) error {
	config := c.GetTransportSocket().GetTypedConfig()
	if config == nil {
		return nil
	}
	m, err := config.UnmarshalNew()
	if err != nil {
		return fmt.Errorf("transport_socket: %w", err)
	}
	tls, ok := m.(*tlsv3.UpstreamTlsContext)
	if !ok {
		return nil
	}
	common := tls.GetCommonTlsContext()
	if p := common.GetTlsParams(); p.GetTlsMaximumProtocolVersion() != 0 &&
		p.GetTlsMinimumProtocolVersion() > p.GetTlsMaximumProtocolVersion() {
		return fmt.Errorf("transport_socket: the least version of TLS, %s, is above the greatest", p.GetTlsMinimumProtocolVersion())
	}
	if check := common.GetValidationContext(); len(check.GetMatchTypedSubjectAltNames()) > 0 && check.GetTrustedCa() == nil {
		return fmt.Errorf("transport_socket: names in certificates mean nothing without trusted_ca")
	}
	for i, cert := range common.GetTlsCertificates() {
		if cert.GetCertificateChain() == nil || cert.GetPrivateKey() == nil {
			return fmt.Errorf("transport_socket: tls_certificates[%d] has no certificate or no key", i)
		}
	}
	return nil
}
