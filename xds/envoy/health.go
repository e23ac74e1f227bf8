package envoy

import (
	"net/netip"
	"slices"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/authentication"
	"isthmus.dev/isthmus/xds/envoy/destination"
	"isthmus.dev/isthmus/xds/envoy/edge"
	"isthmus.dev/isthmus/xds/envoy/node"
	"isthmus.dev/isthmus/xds/envoy/resource"
	"isthmus.dev/isthmus/xds/envoy/transport"
)

// How gateways probe. A gateway that is killed is found out in about a second,
// one behind a link that swallows everything in about three.
const (
	probeInterval  = 500 * time.Millisecond
	probeTimeout   = time.Second
	probeThreshold = 2 // failures
	probeNames     = 3 // for which each gateway is asked
	reportIdle     = 5 * time.Second
)

// ProbeNames are the names, for SNI, by which gateways probe those of each
// network: of services that have an endpoint there which takes mutual TLS, that
// everyone sees, and that the Gateways let in. A handshake goes through the
// gateway to the endpoint. There are up to three, so that a service that is down
// is not taken for its gateway; they are the first in order, so that they seldom
// change.
func ProbeNames(s *federation.Snapshot) map[federation.NetworkID][]string {
	lacking := map[federation.NetworkID]bool{}
	for n := range s.Networks() {
		if len(n.Gateways) > 0 {
			lacking[n.ID] = true
		}
	}
	names := map[federation.NetworkID][]string{}
	peers := authentication.NewPeers(s.Read(), "")
	admitting := edge.AdmittingServers(s)
	for svc := range s.Services().All() {
		if len(lacking) == 0 {
			break
		}
		port, passed := firstPassed(svc)
		if !passed || !node.IsPublic(svc) || !edge.AdmitsAny(admitting, svc) {
			continue
		}
		for id := range networksTakingMutual(svc, port, peers) {
			if !lacking[id] {
				continue
			}
			names[id] = append(names[id], resource.ServerName(svc.Key.Hostname, port.Number, ""))
			if len(names[id]) == probeNames {
				delete(lacking, id)
			}
		}
	}
	return names
}

func firstPassed(s *federation.Service) (federation.ServicePort, bool) {
	i := slices.IndexFunc(s.Ports, func(p federation.ServicePort) bool { return destination.Passes(s, p) })
	if i < 0 {
		return federation.ServicePort{}, false
	}
	return s.Ports[i], true
}

// networksTakingMutual are the networks in which the port has an endpoint that a
// router can pass connections on to.
func networksTakingMutual(s *federation.Service, port federation.ServicePort, peers *authentication.Peers) map[federation.NetworkID]bool {
	found := map[federation.NetworkID]bool{}
	for _, group := range s.Endpoints {
		name, declares := port.DeclaredBy(group.Shard)
		if !declares {
			continue
		}
		for i := range group.Endpoints {
			e := &group.Endpoints[i]
			number, serves := e.Port(name)
			_, isIP := e.Address.IP()
			if isIP && serves && e.TakesMutualTLS() && e.Health == federation.Healthy &&
				peers.PlainTextAlone(s, group, e, number) == nil {
				found[e.Network] = true
			}
		}
	}
	return found
}

// Probes are the gateways that a node is to probe, and how.
type Probes struct {
	Observer  federation.NetworkID
	Gateways  map[netip.AddrPort]bool
	Specifier *healthv3.HealthCheckSpecifier
}

// ProbesOf tells a gateway to probe those of the other networks that it may enter.
// With an identity it does so by a handshake with each of the names; without, or
// where nothing is known that would answer, it only connects.
func ProbesOf(n node.Node, s *federation.Snapshot, names map[federation.NetworkID][]string) Probes {
	n, _ = n.Registered(s.Read())
	p := Probes{
		Observer: s.At(n.Place()).Network(), Gateways: map[netip.AddrPort]bool{},
		Specifier: &healthv3.HealthCheckSpecifier{Interval: durationpb.New(reportIdle)},
	}
	for network := range s.Networks() {
		gateways := slices.DeleteFunc(slices.Clone(network.Gateways), func(g federation.Gateway) bool { return !g.Serves(p.Observer) })
		if network.ID == p.Observer || len(gateways) == 0 {
			continue
		}
		for _, g := range gateways {
			p.Gateways[g.Address] = true
		}
		asked := names[network.ID]
		if !n.Identity || len(asked) == 0 {
			asked = []string{""}
		}
		for _, name := range asked {
			p.Specifier.ClusterHealthChecks = append(p.Specifier.ClusterHealthChecks, probeCluster(network.ID, gateways, name))
		}
		p.Specifier.Interval = durationpb.New(probeInterval)
	}
	return p
}

func probeCluster(id federation.NetworkID, gateways []federation.Gateway, name string) *healthv3.ClusterHealthCheck {
	c := &healthv3.ClusterHealthCheck{
		ClusterName: string(id) + "/" + name,
		HealthChecks: []*corev3.HealthCheck{{
			Timeout: durationpb.New(probeTimeout), Interval: durationpb.New(probeInterval),
			// Nothing else uses these connections: without it a probe a minute is made.
			NoTrafficInterval: durationpb.New(probeInterval), NoTrafficHealthyInterval: durationpb.New(probeInterval),
			UnhealthyThreshold: wrapperspb.UInt32(probeThreshold), HealthyThreshold: wrapperspb.UInt32(1),
			ReuseConnection: wrapperspb.Bool(false),
			HealthChecker:   &corev3.HealthCheck_TcpHealthCheck_{TcpHealthCheck: &corev3.HealthCheck_TcpHealthCheck{}},
		}},
	}
	if name != "" {
		c.TransportSocketMatches = []*clusterv3.Cluster_TransportSocketMatch{
			{Name: transport.TLSTransport, Match: &structpb.Struct{}, TransportSocket: probeSocket(name)},
		}
	}
	for _, g := range gateways {
		locality := &corev3.Locality{Region: g.Locality.Region, Zone: g.Locality.Zone, SubZone: g.Locality.SubZone}
		endpoint := &endpointv3.Endpoint{Address: resource.SocketAddress(g.Address.Addr().String(), g.Address.Port())}
		i := slices.IndexFunc(c.LocalityEndpoints, func(l *healthv3.LocalityEndpoints) bool {
			return l.GetLocality().GetRegion() == g.Locality.Region && l.GetLocality().GetZone() == g.Locality.Zone &&
				l.GetLocality().GetSubZone() == g.Locality.SubZone
		})
		if i < 0 {
			i, c.LocalityEndpoints = len(c.LocalityEndpoints), append(c.LocalityEndpoints, &healthv3.LocalityEndpoints{Locality: locality})
		}
		c.LocalityEndpoints[i].Endpoints = append(c.LocalityEndpoints[i].Endpoints, endpoint)
	}
	return c
}

// probeSocket is the client's side of mutual TLS with any workload of the mesh that answers
// to the name.
func probeSocket(name string) *corev3.TransportSocket {
	common := transport.MeshContext(nil, false)
	common.AlpnProtocols = []string{transport.MeshProtocol}
	return &corev3.TransportSocket{Name: transport.TLSTransport, ConfigType: &corev3.TransportSocket_TypedConfig{
		TypedConfig: resource.Any(&tlsv3.UpstreamTlsContext{CommonTlsContext: common, Sni: name}),
	}}
}

// Found reads a report: for each gateway that the node was told to probe, whether
// it was reached, by any of the names. What says nothing is excluded.
func (p Probes) Found(r *healthv3.EndpointHealthResponse) map[netip.AddrPort]bool {
	found := map[netip.AddrPort]bool{}
	take := func(all []*healthv3.EndpointHealth) {
		for _, h := range all {
			socket := h.GetEndpoint().GetAddress().GetSocketAddress()
			ip, err := netip.ParseAddr(socket.GetAddress())
			gateway := netip.AddrPortFrom(ip.Unmap(), uint16(min(socket.GetPortValue(), 1<<16-1)))
			if err != nil || !p.Gateways[gateway] {
				continue
			}
			switch h.GetHealthStatus() {
			case corev3.HealthStatus_HEALTHY, corev3.HealthStatus_DEGRADED:
				found[gateway] = true
			case corev3.HealthStatus_UNHEALTHY, corev3.HealthStatus_TIMEOUT:
				if _, well := found[gateway]; !well {
					found[gateway] = false
				}
			}
		}
	}
	take(r.GetEndpointsHealth()) //nolint:staticcheck // deprecated, and some Envoys say no more
	for _, c := range r.GetClusterEndpointsHealth() {
		for _, l := range c.GetLocalityEndpointsHealth() {
			take(l.GetEndpointsHealth())
		}
	}
	return found
}
