package xds

import (
	"slices"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tcpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	proxyprotocolv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/proxy_protocol/v3"
	quicv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/quic/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"isthmus.dev/isthmus/xds/envoy"
	"isthmus.dev/isthmus/xds/envoy/transport"
)

// references are the names of other resources that a resource needs, sorted.
type references struct {
	clusters    []string
	assignments []string // EDS names of a cluster
	routes      []string // RDS names of a listener
	secrets     []string // SDS names of a listener, and of a cluster those of credentials
}

func (r references) hasCluster(name string) bool {
	_, found := slices.BinarySearch(r.clusters, name)
	return found
}

// usage is the clusters that the client may use because of one type. Resources
// that refer to one cluster are many, those that refer to more are few.
type usage struct {
	single  map[string]struct{}
	several []references
}

func (u *usage) add(r *resource) {
	switch {
	case r == nil || len(r.refs.clusters) == 0:
	case len(r.refs.clusters) == 1:
		u.single[r.refs.clusters[0]] = struct{}{}
	default:
		u.several = append(u.several, r.refs)
	}
}

func (u usage) has(cluster string) bool {
	_, single := u.single[cluster]
	return single || slices.ContainsFunc(u.several, func(r references) bool { return r.hasCluster(cluster) })
}

// referencesOf finds what the message refers to. What it does not know refers
// to nothing.
func referencesOf(m proto.Message) references {
	var r references
	switch m := m.(type) {
	case *clusterv3.Cluster:
		r.cluster(m)
	case *listenerv3.Listener:
		r.listener(m)
	case *routev3.RouteConfiguration:
		r.routeConfiguration(m)
	}
	for _, names := range []*[]string{&r.clusters, &r.assignments, &r.routes, &r.secrets} {
		slices.Sort(*names)
		*names = slices.Clip(slices.Compact(*names))
	}
	return r
}

func (r *references) cluster(c *clusterv3.Cluster) {
	r.upstream(c.GetTransportSocket().GetTypedConfig())
	if c.GetType() != clusterv3.Cluster_EDS {
		return
	}
	name := c.GetEdsClusterConfig().GetServiceName()
	if name == "" {
		name = c.GetName()
	}
	r.assignments = append(r.assignments, name)
}

func (r *references) listener(l *listenerv3.Listener) {
	for _, chain := range append(l.GetFilterChains(), l.GetDefaultFilterChain()) {
		for _, filter := range chain.GetFilters() {
			r.filter(filter.GetTypedConfig())
		}
		r.transport(chain.GetTransportSocket().GetTypedConfig())
	}
	r.filter(l.GetApiListener().GetApiListener())
}

func (r *references) filter(config *anypb.Any) {
	m, err := config.UnmarshalNew()
	if err != nil {
		return
	}
	switch f := m.(type) {
	case *hcmv3.HttpConnectionManager:
		if name := f.GetRds().GetRouteConfigName(); name != "" {
			r.routes = append(r.routes, name)
		}
		r.routeConfiguration(f.GetRouteConfig())
	case *tcpv3.TcpProxy:
		r.addCluster(f.GetCluster())
		for _, w := range f.GetWeightedClusters().GetClusters() {
			r.addCluster(w.GetName())
		}
	}
}

func (r *references) transport(config *anypb.Any) {
	if config == nil {
		return
	}
	m, err := config.UnmarshalNew()
	if err != nil {
		return
	}
	switch socket := m.(type) {
	case *tlsv3.DownstreamTlsContext:
		r.context(socket.GetCommonTlsContext())
	case *quicv3.QuicDownstreamTransport:
		r.context(socket.GetDownstreamTlsContext().GetCommonTlsContext())
	}
}

// upstream is the client's side. Only credentials are looked for: most clusters have the proxy's
// own secrets, for which it asks anyway.
func (r *references) upstream(config *anypb.Any) {
	if !transport.MentionsCredential(config) {
		return
	}
	m, err := config.UnmarshalNew()
	if err != nil {
		return
	}
	switch socket := m.(type) {
	case *tlsv3.UpstreamTlsContext:
		r.context(socket.GetCommonTlsContext())
	case *proxyprotocolv3.ProxyProtocolUpstreamTransport:
		r.upstream(socket.GetTransportSocket().GetTypedConfig())
	}
}

func (r *references) context(common *tlsv3.CommonTlsContext) {
	all := append([]*tlsv3.SdsSecretConfig{
		common.GetValidationContextSdsSecretConfig(), common.GetCombinedValidationContext().GetValidationContextSdsSecretConfig(),
	}, common.GetTlsCertificateSdsSecretConfigs()...)
	for _, secret := range all {
		if secret.GetName() != "" {
			r.secrets = append(r.secrets, secret.GetName())
		}
	}
}

func (r *references) routeConfiguration(c *routev3.RouteConfiguration) {
	for _, host := range c.GetVirtualHosts() {
		for _, route := range host.GetRoutes() {
			action := route.GetRoute()
			r.addCluster(action.GetCluster())
			for _, w := range action.GetWeightedClusters().GetClusters() {
				r.addCluster(w.GetName())
			}
			for _, mirror := range action.GetRequestMirrorPolicies() {
				r.addCluster(mirror.GetCluster())
			}
		}
	}
}

func (r *references) addCluster(name string) {
	if name != "" {
		r.clusters = append(r.clusters, name)
	}
}

// nameOf is the name under which a client files the resource; empty: its type has
// messages that do not say it.
func nameOf(m proto.Message) string {
	switch m := m.(type) {
	case interface{ GetClusterName() string }:
		return m.GetClusterName()
	case interface{ GetName() string }:
		return m.GetName()
	}
	return ""
}

// pushOrder is the order in which changes of the types that are built from
// snapshots are pushed.
var pushOrder = envoy.TypesWith(envoy.Built)

// servedTypes are all types, in the order in which changes are pushed.
var servedTypes = typesOf(envoy.Types())

// renewedTypes are those whose resources change whatever the snapshot.
var renewedTypes = slices.DeleteFunc(typesOf(envoy.Types()), func(t envoy.Type) bool { return t.Has(envoy.Built) })

// referringTypes are those whose resources refer to clusters.
var referringTypes = envoy.TypesWith(envoy.Refers)

func typesOf(rows []envoy.TypeRow) []envoy.Type {
	var types []envoy.Type
	for _, r := range rows {
		types = append(types, r.Type)
	}
	return types
}
