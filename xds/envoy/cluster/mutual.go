package cluster

import (
	"fmt"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"

	"isthmus.dev/isthmus/xds/envoy/destination"
	"isthmus.dev/isthmus/xds/envoy/endpoint"
	"isthmus.dev/isthmus/xds/envoy/facet"
	"isthmus.dev/isthmus/xds/envoy/resource"
	"isthmus.dev/isthmus/xds/envoy/transport"
)

// setMutual makes the cluster use mutual TLS with the endpoints that accept it.
// Endpoints of each cluster of the federation must prove an account of that
// cluster, so that none can impersonate another cluster's.
func setMutual(v *facet.View, c *clusterv3.Cluster, d destination.Destination) {
	d.Service, _ = v.Reader.Accounts(d.Service.Key)
	names := d.Policy.GetTls().GetSubjectAltNames()
	anyone := transport.MeshTLS(d.Client(), transport.Identities(d.Service.Peers, d.Service, v.Reader), names)
	if d.DemandsMutual() {
		c.TransportSocket = anyone
		if len(names) > 0 {
			return
		}
	}
	for _, g := range transport.PeerGroups(d.Service.Peers) {
		c.TransportSocketMatches = append(
			c.TransportSocketMatches,
			transport.SocketMatch(g.Key, g.Value, transport.MeshTLS(d.Client(), transport.Identities(g.Peers, d.Service, v.Reader), names)),
		)
	}
	c.TransportSocketMatches = append(c.TransportSocketMatches, transport.SocketMatch("", "", anyone))
}

// setMutualByAddress has a cluster whose callers choose the endpoint by its address
// speak mutual TLS. Envoy learns of such an endpoint when it is dialed, so that
// nothing tells it which of them take mutual TLS: all of them must, as with Istio.
func setMutualByAddress(v *facet.View, c *clusterv3.Cluster, d destination.Destination) {
	v.Reader.Endpoints(d.Service.Key)
	d.Service, _ = v.Reader.Accounts(d.Service.Key)
	if !d.DemandsMutual() {
		plain := endpoint.FirstPlain(v, d)
		if plain != nil && len(d.Service.Peers) > 0 {
			v.LeaveOut(resource.Reason{
				Code: resource.ReasonNoMutualTLS, Cause: d.Rule(), Service: d.Service.Key,
				Message: fmt.Sprintf("%s: callers choose the endpoint by its address, and %s does not take mutual TLS, so that all connections to the service are plain text; give it a sidecar, or add a DestinationRule with tls.mode ISTIO_MUTUAL", d.Title(), plain.Address),
			})
		}
		if plain != nil || len(d.Service.Peers) == 0 {
			return
		}
	}
	c.TransportSocket = transport.MeshTLS(d.Client(), transport.Identities(d.Service.Peers, d.Service, v.Reader),
		d.Policy.GetTls().GetSubjectAltNames())
}
