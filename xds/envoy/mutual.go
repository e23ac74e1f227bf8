package envoy

import (
	"cmp"
	"fmt"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/xds/envoy/destinationrule"
	"isthmus.dev/isthmus/xds/envoy/resource"
	"isthmus.dev/isthmus/xds/envoy/transport"
)

// mutual tells that connections to the destination are mutual TLS wherever the
// endpoint takes it.
func (d destination) mutual() bool {
	return d.identity && !d.service.MeshExternal && (d.policy.GetTls() == nil || d.demandsMutual())
}

// demandsMutual tells that the rules want mutual TLS of every endpoint.
func (d destination) demandsMutual() bool {
	return d.policy.GetTls().GetMode() == networking.ClientTLSSettings_ISTIO_MUTUAL
}

// Client is the side of mutual TLS that calls the destination.
func (d destination) client() transport.Client {
	return transport.Client{Agent: d.agent, Http2: destinationrule.SpeaksHTTP2(d.port.Protocol, d.policy), SNI: cmp.Or(d.policy.GetTls().GetSni(), d.sni)}
}

// setMutual has the cluster speak mutual TLS with the endpoints that take it.
// Those of each cluster of the federation are held to the accounts of that
// cluster, so that none can stand in for another's.
func (b *builder) setMutual(c *clusterv3.Cluster, d destination) {
	d.service, _ = b.reader.Accounts(d.service.Key)
	names := d.policy.GetTls().GetSubjectAltNames()
	anyone := transport.MeshTLS(d.client(), transport.Identities(d.service.Peers, d.service, b.reader), names)
	if d.demandsMutual() {
		c.TransportSocket = anyone
		if len(names) > 0 {
			return
		}
	}
	for _, g := range transport.PeerGroups(d.service.Peers) {
		c.TransportSocketMatches = append(c.TransportSocketMatches, transport.SocketMatch(g.Key, g.Value, transport.MeshTLS(d.client(), transport.Identities(g.Peers, d.service, b.reader), names)))
	}
	c.TransportSocketMatches = append(c.TransportSocketMatches, transport.SocketMatch("", "", anyone))
}

// setMutualByAddress has a cluster whose callers choose the endpoint by its address
// speak mutual TLS. Envoy learns of such an endpoint when it is dialed, so that
// nothing tells it which of them take mutual TLS: all of them must, as with Istio.
func (b *builder) setMutualByAddress(c *clusterv3.Cluster, d destination) {
	b.reader.Endpoints(d.service.Key)
	d.service, _ = b.reader.Accounts(d.service.Key)
	if plain := transport.PlainEndpoint(d.service); !d.demandsMutual() && (plain != nil || len(d.service.Peers) == 0) {
		if plain != nil && len(d.service.Peers) > 0 {
			b.leaveOut(resource.Reason{Code: resource.ReasonNoMutualTLS, Cause: d.rule(), Service: d.service.Key, Message: fmt.Sprintf("%s: callers choose the endpoint by its address, and %s does not take mutual TLS, so that all connections to the service are plain text; give it a sidecar, or add a DestinationRule with tls.mode ISTIO_MUTUAL", d.title(), plain.Address)})
		}
		return
	}
	c.TransportSocket = transport.MeshTLS(d.client(), transport.Identities(d.service.Peers, d.service, b.reader), d.policy.GetTls().GetSubjectAltNames())
}
