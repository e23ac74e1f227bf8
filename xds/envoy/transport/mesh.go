// Package transport has the transport sockets of both sides of TLS, and the secrets to
// which they refer.
package transport

import (
	"cmp"
	"slices"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

// MeshProtocol is what connections between proxies of the mesh offer by ALPN, so
// that they differ from those of workloads that use TLS themselves.
const MeshProtocol = "istio"

// The keys of an endpoint's metadata about its transport, for transport_socket_matches.
const (
	socketMatchFilter = "envoy.transport_socket_match"
	tlsModeKey        = "tlsMode"
	clusterKey        = "cluster"
	networkKey        = "network"
)

// PeerGroup is peers that a proxy cannot tell apart.
type PeerGroup struct {
	Key, Value string // in the metadata of endpoints
	Peers      []federation.PeerAccounts
}

// PeerGroups are the clusters of a service and the networks in which several of
// them are; none where there is one cluster.
func PeerGroups(peers []federation.PeerAccounts) []PeerGroup {
	var groups []PeerGroup
	add := func(key, value string, p federation.PeerAccounts) {
		i := slices.IndexFunc(groups, func(g PeerGroup) bool { return g.Key == key && g.Value == value })
		if i < 0 {
			i, groups = len(groups), append(groups, PeerGroup{Key: key, Value: value})
		}
		groups[i].Peers = append(groups[i].Peers, p)
	}
	for _, p := range peers {
		add(clusterKey, string(p.Cluster), p)
		add(networkKey, string(p.Network), p)
	}
	groups = slices.DeleteFunc(groups, func(g PeerGroup) bool { return g.Key == networkKey && len(g.Peers) == 1 })
	if len(groups) == 1 {
		return nil
	}
	slices.SortFunc(groups, func(g, h PeerGroup) int { return cmp.Or(cmp.Compare(g.Key, h.Key), cmp.Compare(g.Value, h.Value)) })
	return groups
}

// SocketMatch has endpoints whose metadata has the value speak through the socket.
func SocketMatch(key, value string, socket *corev3.TransportSocket) *clusterv3.Cluster_TransportSocketMatch {
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

// PeerOf is the metadata of an endpoint of the cluster that is spoken to directly
// and takes mutual TLS.
func PeerOf(cluster federation.ClusterID) *corev3.Metadata {
	return &corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{socketMatchFilter: peerMetadata(clusterKey, string(cluster))}}
}

// PeerBehind is the metadata of a gateway behind which are the service's
// endpoints of the networks: of one cluster, of one network, or of several.
func PeerBehind(s *federation.Service, networks ...federation.NetworkID) *corev3.Metadata {
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

// Identities are what the certificates of the peers must say. Peers whose
// accounts are unknown may be anyone of their trust domain.
func Identities(peers []federation.PeerAccounts, s *federation.Service, r *federation.Reader) []*tlsv3.SubjectAltNameMatcher {
	var exact, domains []string
	for _, p := range peers {
		trust := r.TrustDomain(p.Cluster)
		for _, account := range p.Accounts {
			exact = append(exact, federation.SPIFFE(trust, account))
		}
		if len(p.Accounts) == 0 {
			domains = append(domains, trust)
		}
	}
	if len(peers) == 0 {
		domains = append(domains, r.Mesh().Trust())
		for _, account := range s.ServiceAccounts {
			exact = append(exact, federation.SPIFFE(domains[0], account))
		}
		if len(exact) > 0 {
			domains = nil
		}
	}
	return append(ExactNames(exact), OfTrustDomains(domains)...)
}

// ExactNames accepts certificates that have one of the names.
func ExactNames(names []string) []*tlsv3.SubjectAltNameMatcher {
	slices.Sort(names)
	var matchers []*tlsv3.SubjectAltNameMatcher
	for _, name := range slices.Compact(names) {
		matchers = append(matchers, &tlsv3.SubjectAltNameMatcher{
			SanType: sanType(name), Matcher: &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Exact{Exact: name}},
		})
	}
	return matchers
}

// OfTrustDomains accepts every identity of the trust domains.
func OfTrustDomains(domains []string) []*tlsv3.SubjectAltNameMatcher {
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

// Client is what a client of the mesh reports about itself and its connections.
type Client struct {
	Agent bool   // its identity comes from Istio's agent
	HTTP  bool   // requests go to the server, and bytes only where a filter says so
	Http2 bool   // requests go in HTTP/2, whatever the caller speaks
	SNI   string // the name of the server for which it asks
	// Exchange: it tells the server of connections who it is.
	Exchange bool
}

// MeshTLS is the client's side of mutual TLS between proxies of the mesh. The
// names of a rule take the place of those of the accounts.
func MeshTLS(c Client, peers []*tlsv3.SubjectAltNameMatcher, names []string) *corev3.TransportSocket {
	common := MeshContext(peers, c.Agent)
	if len(names) > 0 {
		common = MeshContext(ExactNames(slices.Clone(names)), c.Agent)
	}
	common.AlpnProtocols = c.protocols()
	return &corev3.TransportSocket{Name: TLSTransport, ConfigType: &corev3.TransportSocket_TypedConfig{
		TypedConfig: resource.Any(&tlsv3.UpstreamTlsContext{CommonTlsContext: common, Sni: c.SNI}),
	}}
}

// protocols are what the client offers, as Istio's proxies do: a server that does not know what
// its workload speaks is told whether requests come.
func (c Client) protocols() []string {
	switch {
	case c.Http2:
		return []string{"istio-h2", MeshProtocol, "h2"}
	case c.HTTP:
		return []string{"istio-http/1.1", MeshProtocol}
	case c.Exchange:
		return []string{resource.ExchangeProtocol, MeshProtocol}
	}
	return []string{MeshProtocol}
}

// MeshContext is what both sides have in common: TLS 1.3 alone, their own
// certificate, and whom they trust. Both come from the hub, or from the agent
// beside the proxy.
func MeshContext(peers []*tlsv3.SubjectAltNameMatcher, agent bool) *tlsv3.CommonTlsContext {
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

// MeshListener is the server's side of mutual TLS between proxies of the mesh.
func MeshListener(callers []*tlsv3.SubjectAltNameMatcher, protocols []string, agent bool) *corev3.TransportSocket {
	common := MeshContext(callers, agent)
	common.AlpnProtocols = protocols
	return &corev3.TransportSocket{Name: TLSTransport, ConfigType: &corev3.TransportSocket_TypedConfig{
		TypedConfig: resource.Any(&tlsv3.DownstreamTlsContext{CommonTlsContext: common, RequireClientCertificate: wrapperspb.Bool(true)}),
	}}
}

// MeshProtocols are those that Istio's proxies and these offer between them.
func MeshProtocols() []string { return append(MeshConnections(), MeshRequests()...) }

// MeshConnections are those of connections of which nobody knows what they carry.
func MeshConnections() []string { return []string{MeshProtocol, resource.ExchangeProtocol} }

// MeshRequests are those of connections with requests.
func MeshRequests() []string { return []string{"istio-http/1.0", "istio-http/1.1", "istio-h2"} }

// TLSTransport is the name of Envoy's TLS.
const TLSTransport = "envoy.transport_sockets.tls"
