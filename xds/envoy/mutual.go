package envoy

import (
	"cmp"
	"fmt"
	"slices"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/structpb"
	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

// meshProtocol is what connections between proxies of the mesh offer by ALPN, so
// that they are told from those of workloads that speak TLS themselves.
const meshProtocol = "istio"

// What an endpoint's metadata says of its transport, for transport_socket_matches.
const (
	socketMatchFilter = "envoy.transport_socket_match"
	tlsModeKey        = "tlsMode"
	clusterKey        = "cluster"
	networkKey        = "network"
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

// setMutual has the cluster speak mutual TLS with the endpoints that take it.
// Those of each cluster of the federation are held to the accounts of that
// cluster, so that none can stand in for another's.
func (b *builder) setMutual(c *clusterv3.Cluster, d destination) {
	d.service, _ = b.reader.Accounts(d.service.Key)
	names := d.policy.GetTls().GetSubjectAltNames()
	anyone := meshTLS(d, b.identities(d.service.Peers, d.service), names)
	if d.demandsMutual() {
		c.TransportSocket = anyone
		if len(names) > 0 {
			return
		}
	}
	for _, g := range peerGroups(d.service.Peers) {
		c.TransportSocketMatches = append(c.TransportSocketMatches, socketMatch(g.key, g.value, meshTLS(d, b.identities(g.peers, d.service), names)))
	}
	c.TransportSocketMatches = append(c.TransportSocketMatches, socketMatch("", "", anyone))
}

// setMutualByAddress has a cluster whose callers choose the endpoint by its address
// speak mutual TLS. Envoy learns of such an endpoint when it is dialed, so that
// nothing tells it which of them take mutual TLS: all of them must, as with Istio.
func (b *builder) setMutualByAddress(c *clusterv3.Cluster, d destination) {
	b.reader.Endpoints(d.service.Key)
	d.service, _ = b.reader.Accounts(d.service.Key)
	if plain := plainEndpoint(d.service); !d.demandsMutual() && (plain != nil || len(d.service.Peers) == 0) {
		if plain != nil && len(d.service.Peers) > 0 {
			b.leaveOut(resource.Reason{Code: resource.ReasonNoMutualTLS, Message: fmt.Sprintf("%s: callers choose the endpoint by its address, and %s does not take mutual TLS, so that all connections to the service are plain text; give it a sidecar, or add a DestinationRule with tls.mode ISTIO_MUTUAL", d.title(), plain.Address)})
		}
		return
	}
	c.TransportSocket = meshTLS(d, b.identities(d.service.Peers, d.service), d.policy.GetTls().GetSubjectAltNames())
}

// plainEndpoint is the first endpoint that does not take mutual TLS.
func plainEndpoint(s *federation.Service) *federation.Endpoint {
	for _, group := range s.Endpoints {
		for i := range group.Endpoints {
			if e := &group.Endpoints[i]; !e.TakesMutualTLS() {
				return e
			}
		}
	}
	return nil
}

// peerGroup is peers that a proxy cannot tell apart.
type peerGroup struct {
	key, value string // in the metadata of endpoints
	peers      []federation.PeerAccounts
}

// peerGroups are the clusters of a service and the networks in which several of
// them are; none where there is one cluster.
func peerGroups(peers []federation.PeerAccounts) []peerGroup {
	var groups []peerGroup
	add := func(key, value string, p federation.PeerAccounts) {
		i := slices.IndexFunc(groups, func(g peerGroup) bool { return g.key == key && g.value == value })
		if i < 0 {
			i, groups = len(groups), append(groups, peerGroup{key: key, value: value})
		}
		groups[i].peers = append(groups[i].peers, p)
	}
	for _, p := range peers {
		add(clusterKey, string(p.Cluster), p)
		add(networkKey, string(p.Network), p)
	}
	groups = slices.DeleteFunc(groups, func(g peerGroup) bool { return g.key == networkKey && len(g.peers) == 1 })
	if len(groups) == 1 {
		return nil
	}
	slices.SortFunc(groups, func(g, h peerGroup) int { return cmp.Or(cmp.Compare(g.key, h.key), cmp.Compare(g.value, h.value)) })
	return groups
}

func socketMatch(key, value string, socket *corev3.TransportSocket) *clusterv3.Cluster_TransportSocketMatch {
	name := tlsModeKey + "-" + federation.MutualTLS
	if key != "" {
		name += " " + key + "=" + value
	}
	return &clusterv3.Cluster_TransportSocketMatch{Name: name, Match: peerMetadata(key, value), TransportSocket: socket}
}

func peerMetadata(key, value string) *structpb.Struct {
	fields := map[string]*structpb.Value{tlsModeKey: structpb.NewStringValue(federation.MutualTLS)}
	if key != "" {
		fields[key] = structpb.NewStringValue(value)
	}
	return &structpb.Struct{Fields: fields}
}

// peerOf is the metadata of an endpoint of the cluster that is spoken to directly
// and takes mutual TLS.
func peerOf(cluster federation.ClusterID) *corev3.Metadata {
	return &corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{socketMatchFilter: peerMetadata(clusterKey, string(cluster))}}
}

// peerBehind is the metadata of a gateway behind which are the service's
// endpoints of the networks: of one cluster, of one network, or of several.
func peerBehind(s *federation.Service, networks ...federation.NetworkID) *corev3.Metadata {
	var clusters []federation.ClusterID
	for _, p := range s.Peers {
		if slices.Contains(networks, p.Network) && !slices.Contains(clusters, p.Cluster) {
			clusters = append(clusters, p.Cluster)
		}
	}
	key, value := "", ""
	switch {
	case len(clusters) == 1:
		key, value = clusterKey, string(clusters[0])
	case len(networks) == 1:
		key, value = networkKey, string(networks[0])
	}
	return &corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{socketMatchFilter: peerMetadata(key, value)}}
}

// identities are what the certificates of the peers must say. Peers whose
// accounts are unknown may be anyone of their trust domain.
func (b *builder) identities(peers []federation.PeerAccounts, s *federation.Service) []*tlsv3.SubjectAltNameMatcher {
	var exact, domains []string
	for _, p := range peers {
		trust := b.reader.TrustDomain(p.Cluster)
		for _, account := range p.Accounts {
			exact = append(exact, federation.SPIFFE(trust, account))
		}
		if len(p.Accounts) == 0 {
			domains = append(domains, trust)
		}
	}
	if len(peers) == 0 {
		domains = append(domains, b.reader.Mesh().Trust())
		for _, account := range s.ServiceAccounts {
			exact = append(exact, federation.SPIFFE(domains[0], account))
		}
		if len(exact) > 0 {
			domains = nil
		}
	}
	return append(exactNames(exact), ofTrustDomains(domains)...)
}

func exactNames(names []string) []*tlsv3.SubjectAltNameMatcher {
	slices.Sort(names)
	var matchers []*tlsv3.SubjectAltNameMatcher
	for _, name := range slices.Compact(names) {
		matchers = append(matchers, &tlsv3.SubjectAltNameMatcher{
			SanType: sanType(name), Matcher: &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Exact{Exact: name}},
		})
	}
	return matchers
}

// ofTrustDomains takes whoever has an identity of one of the trust domains.
func ofTrustDomains(domains []string) []*tlsv3.SubjectAltNameMatcher {
	slices.Sort(domains)
	var matchers []*tlsv3.SubjectAltNameMatcher
	for _, domain := range slices.Compact(domains) {
		matchers = append(matchers, &tlsv3.SubjectAltNameMatcher{
			SanType: tlsv3.SubjectAltNameMatcher_URI,
			Matcher: &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Prefix{Prefix: "spiffe://" + domain + "/"}},
		})
	}
	return matchers
}

// meshTLS is the client's side of mutual TLS between proxies of the mesh. The
// names of a rule take the place of those of the accounts.
func meshTLS(d destination, peers []*tlsv3.SubjectAltNameMatcher, names []string) *corev3.TransportSocket {
	common := meshContext(peers, d.agent)
	if len(names) > 0 {
		common = meshContext(exactNames(slices.Clone(names)), d.agent)
	}
	common.AlpnProtocols = []string{meshProtocol}
	if d.speaksHTTP2() {
		common.AlpnProtocols = append(common.AlpnProtocols, "h2")
	}
	return &corev3.TransportSocket{Name: tlsTransport, ConfigType: &corev3.TransportSocket_TypedConfig{
		TypedConfig: resource.Any(&tlsv3.UpstreamTlsContext{CommonTlsContext: common, Sni: cmp.Or(d.policy.GetTls().GetSni(), d.sni)}),
	}}
}

// meshContext is what both sides have in common: TLS 1.3 alone, their own
// certificate, and whom they trust. Both come from the hub, or from the agent
// beside the proxy.
func meshContext(peers []*tlsv3.SubjectAltNameMatcher, agent bool) *tlsv3.CommonTlsContext {
	own := fromSDS
	if agent {
		own = fromAgent
	}
	return &tlsv3.CommonTlsContext{
		TlsParams: &tlsv3.TlsParameters{
			TlsMinimumProtocolVersion: tlsv3.TlsParameters_TLSv1_3, TlsMaximumProtocolVersion: tlsv3.TlsParameters_TLSv1_3,
		},
		TlsCertificateSdsSecretConfigs: []*tlsv3.SdsSecretConfig{own(OwnCertificate)},
		ValidationContextType: &tlsv3.CommonTlsContext_CombinedValidationContext{CombinedValidationContext: &tlsv3.CommonTlsContext_CombinedCertificateValidationContext{
			DefaultValidationContext:         &tlsv3.CertificateValidationContext{MatchTypedSubjectAltNames: peers},
			ValidationContextSdsSecretConfig: own(OwnRoots),
		}},
	}
}
