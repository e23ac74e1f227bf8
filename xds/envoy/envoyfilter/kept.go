package envoyfilter

import (
	"fmt"
	"slices"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tcpproxyv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	"google.golang.org/protobuf/proto"

	"isthmus.dev/isthmus/xds/envoy/check"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

// maxResource bounds the bytes of a resource that was patched.
const maxResource = 4 << 20

// valid reports why the resource cannot be what was made of the one before; nil: it was removed.
func valid(before, now proto.Message) error {
	if now == nil {
		return removable(before)
	}
	if size := proto.Size(now); size > maxResource {
		return fmt.Errorf("the resource would have %d bytes, at most %d are sent", size, maxResource)
	}
	if err := check.Resource(now); err != nil {
		return err
	}
	switch now := now.(type) {
	case *listenerv3.Listener:
		return validListener(before.(*listenerv3.Listener), now)
	case *clusterv3.Cluster:
		if was := before.(*clusterv3.Cluster); was.GetType() != clusterv3.Cluster_EDS && now.GetType() == clusterv3.Cluster_EDS {
			return fmt.Errorf("type: the hub has no endpoints for this cluster: it cannot become EDS")
		}
	}
	return sameName(before, now)
}

func sameName(before, now proto.Message) error {
	was, is := nameOf(before), nameOf(now)
	if was != is {
		return fmt.Errorf("name: it cannot change from %q to %q: others refer to it", was, is)
	}
	return nil
}

func nameOf(m proto.Message) string {
	if named, ok := m.(interface{ GetName() string }); ok {
		return named.GetName()
	}
	return ""
}

// removable reports that everything else depends on the resource.
func removable(m proto.Message) error {
	switch name := nameOf(m); name {
	case resource.VirtualInbound, resource.VirtualOutbound, resource.BlackHoleCluster, resource.PassthroughCluster,
		resource.InboundPassthroughCluster:
		return fmt.Errorf("%s cannot be removed: captured connections need it", name)
	}
	return nil
}

func validListener(before, now *listenerv3.Listener) error {
	if err := sameName(before, now); err != nil {
		return err
	}
	if !proto.Equal(before.GetAddress(), now.GetAddress()) {
		return fmt.Errorf("address: it cannot change: connections are redirected to it")
	}
	for i, chain := range chainsOf(now) {
		if err := validChain(chain); err != nil {
			return fmt.Errorf("filter chain %d: %w", i, err)
		}
	}
	return nil
}

// validChain reports what Envoy refuses of the order of filters.
func validChain(chain *listenerv3.FilterChain) error {
	if at := slices.IndexFunc(chain.GetFilters(), isTerminal); at >= 0 && at < len(chain.GetFilters())-1 {
		return fmt.Errorf("filter %q must be the last one", chain.GetFilters()[at].GetName())
	}
	for _, f := range chain.GetFilters() {
		manager := &hcmv3.HttpConnectionManager{}
		if !f.GetTypedConfig().MessageIs(manager) {
			continue
		}
		if err := f.GetTypedConfig().UnmarshalTo(manager); err != nil {
			return fmt.Errorf("unpacking %q: %w", f.GetName(), err)
		}
		if at := slices.IndexFunc(manager.GetHttpFilters(), isRouter); at < 0 || at < len(manager.GetHttpFilters())-1 {
			return fmt.Errorf("the HTTP filter %s must be there, and the last one", resource.RouterFilter)
		}
	}
	if last := chain.GetFilters()[len(chain.GetFilters())-1]; isPassing(last) {
		return fmt.Errorf("the last filter is %q, which does not end connections: %s or another must follow",
			last.GetName(), resource.TCPProxyFilter)
	}
	return nil
}

// isTerminal reports whether the filter ends connections.
func isTerminal(f *listenerv3.Filter) bool {
	return f.GetTypedConfig().MessageIs((*hcmv3.HttpConnectionManager)(nil)) || f.GetTypedConfig().MessageIs((*tcpproxyv3.TcpProxy)(nil))
}

// passing are filters that pass connections on to the next one.
var passing = []string{
	"envoy.extensions.filters.network.rbac.v3.RBAC",
	"envoy.extensions.filters.network.local_ratelimit.v3.LocalRateLimit",
	"envoy.extensions.filters.network.ratelimit.v3.RateLimit",
	"envoy.extensions.filters.network.ext_authz.v3.ExtAuthz",
	"envoy.extensions.filters.network.sni_cluster.v3.SniCluster",
	"envoy.extensions.filters.network.connection_limit.v3.ConnectionLimit",
}

func isPassing(f *listenerv3.Filter) bool {
	return slices.Contains(passing, typeOf(f.GetTypedConfig()))
}

func isRouter(f *hcmv3.HttpFilter) bool {
	return f.GetTypedConfig().MessageIs((*routerv3.Router)(nil))
}

// beforeLast is where ADD inserts: before the item at the end that must stay the last one.
func beforeLast[T any](items []T, mustBeLast func(T) bool) int {
	if n := len(items); n > 0 && mustBeLast(items[n-1]) {
		return n - 1
	}
	return len(items)
}
