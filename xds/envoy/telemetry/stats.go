package telemetry

import (
	"slices"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	grpcstatsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/grpc_stats/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"isthmus.dev/isthmus/xds/envoy/facet"
	"isthmus.dev/isthmus/xds/envoy/node"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

// stats are the filters of a listener by which its proxies count as Istio's do.
type stats struct {
	inbound bool
	counts  *anypb.Any // nil: nothing is counted
	done    map[*listenerv3.Filter]bool
}

// applyStats has the proxies of Istio's agent count requests and connections, and learn with whom they speak.
func applyStats(v *facet.View, l *listenerv3.Listener) {
	s := settingsOf(v, l)
	if !v.Facet.Stats {
		s.reportUncounted()
		return
	}
	inbound := l.GetTrafficDirection() == corev3.TrafficDirection_INBOUND
	f := stats{inbound: inbound, counts: s.counts(v.Facet.Has(node.Receives)), done: map[*listenerv3.Filter]bool{}}
	for _, chain := range append(slices.Clone(l.GetFilterChains()), l.GetDefaultFilterChain()) {
		if n := len(chain.GetFilters()); n > 0 {
			f.chain(chain, chain.GetFilters()[n-1])
		}
		for _, o := range s.objects {
			if len(chain.GetFilters()) > 0 {
				v.CausedBy(o, chain.GetFilters()[0])
			}
		}
	}
}

// chain adds the filters to a chain that ends with the last one.
func (s stats) chain(chain *listenerv3.FilterChain, last *listenerv3.Filter) {
	m, err := last.GetTypedConfig().UnmarshalNew()
	manager, isHTTP := m.(*hcmv3.HttpConnectionManager)
	switch {
	case err != nil:
		return
	case isHTTP && !s.done[last]:
		s.requests(manager)
		last.ConfigType = &listenerv3.Filter_TypedConfig{TypedConfig: resource.Any(manager)}
		s.done[last] = true
	case !isHTTP && s.counts != nil:
		counter := &listenerv3.Filter{Name: resource.StatsFilter, ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: s.counts}}
		chain.Filters = slices.Insert(slices.Clone(chain.GetFilters()), len(chain.GetFilters())-1, counter)
	}
	if s.inbound {
		exchange := &listenerv3.Filter{
			Name:       resource.ExchangeFilter,
			ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: resource.Exchange()},
		}
		chain.Filters = slices.Insert(slices.Clone(chain.GetFilters()), 0, exchange)
	}
}

// countedMessages has Istio's filter know how many messages of gRPC a request and its response have (G123). Envoy has no
// statistics of its own for each method.
var countedMessages = &grpcstatsv3.FilterConfig{
	EmitFilterState:        true,
	PerMethodStatSpecifier: &grpcstatsv3.FilterConfig_StatsForAllMethods{StatsForAllMethods: wrapperspb.Bool(false)},
}

// requests adds the filters for requests: peers are known before policies decide, messages of gRPC are counted as the
// service has them, and requests are counted after all other filters, before they are routed.
func (s stats) requests(m *hcmv3.HttpConnectionManager) {
	filter := func(name string, config *anypb.Any) *hcmv3.HttpFilter {
		return &hcmv3.HttpFilter{Name: name, ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: config}}
	}
	filters := append([]*hcmv3.HttpFilter{filter(resource.ExchangeFilter, resource.RequestPeers(s.inbound))}, m.GetHttpFilters()...)
	if s.counts != nil {
		web := slices.IndexFunc(filters, func(f *hcmv3.HttpFilter) bool { return f.GetName() == resource.GRPCWebFilter })
		filters = slices.Insert(filters, max(web, 0)+1, resource.InHTTP(resource.GRPCStatsFilter, countedMessages))
		filters = slices.Insert(filters, len(filters)-1, filter(resource.StatsFilter, s.counts))
	}
	m.HttpFilters = filters
}
