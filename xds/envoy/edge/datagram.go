package edge

import (
	"fmt"
	"net/netip"
	"slices"

	corev3 "github.com/cncf/xds/go/xds/core/v3"
	matcherv3 "github.com/cncf/xds/go/xds/type/matcher/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	udpproxyv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/udp/udp_proxy/v3"
	"google.golang.org/protobuf/proto"

	"isthmus.dev/isthmus/xds/envoy/destination"
	"isthmus.dev/isthmus/xds/envoy/endpoint"
	"isthmus.dev/isthmus/xds/envoy/facet"
	"isthmus.dev/isthmus/xds/envoy/gateway"
	"isthmus.dev/isthmus/xds/envoy/listener"
	"isthmus.dev/isthmus/xds/envoy/resource"
	"isthmus.dev/isthmus/xds/envoy/service"
)

const udpProxy = "envoy.filters.udp_listener.udp_proxy"

// datagramTarget is where the datagrams of a port go: where the oldest VirtualService with a route for
// them says.
func datagramTarget(v *facet.View, p *listenPort) (to service.ServedPort, by *boundRule) {
	s := p.servers[0]
	for _, r := range bound(v, p, s) {
		for i, route := range r.Spec.GetTcp() {
			takes, err := r.Takes(route, netip.Prefix{})
			if err != nil {
				r.cannot(fmt.Errorf("tcp[%d]%w", i, err))
				break
			}
			if takes {
				return r.Datagrams(route.GetRoute()), &r
			}
		}
	}
	return to, nil
}

// datagramListener takes the datagrams of a port; nil where nothing takes them from it.
func datagramListener(v *facet.View, p *listenPort) *listenerv3.Listener {
	if len(p.servers) == 0 {
		return nil
	}
	to, by := datagramTarget(v, p)
	switch {
	case by == nil:
		v.LeaveOut(p.servers[0].withoutRoute("datagrams"))
		return nil
	case to.Service == nil:
		return nil
	}
	l := newDatagrams(v, p.listener(), p.bind, p.number)
	proxy := resource.Any(&udpproxyv3.UdpProxyConfig{
		StatPrefix: p.listener(),
		RouteSpecifier: &udpproxyv3.UdpProxyConfig_Matcher{Matcher: &matcherv3.Matcher{
			OnNoMatch: &matcherv3.Matcher_OnMatch{OnMatch: &matcherv3.Matcher_OnMatch_Action{Action: &corev3.TypedExtensionConfig{
				Name: "route", TypedConfig: resource.Any(&udpproxyv3.Route{Cluster: resource.DatagramCluster(to.Service.Key.Hostname, to.Port.Number)}),
			}}},
		}},
	})
	filter := &listenerv3.ListenerFilter{Name: udpProxy, ConfigType: &listenerv3.ListenerFilter_TypedConfig{TypedConfig: proxy}}
	l.ListenerFilters = []*listenerv3.ListenerFilter{filter}
	v.CausedBy(p.servers[0].object, filter)
	v.CausedBy(by.Object, filter)
	return l
}

// newDatagrams listens for datagrams.
func newDatagrams(v *facet.View, name string, bind netip.Addr, port uint16) *listenerv3.Listener {
	l := listener.New(name, bind.String(), port)
	if v.Facet.IPv6 && bind == netip.IPv4Unspecified() {
		listener.AlsoIPv6(l, port)
	}
	listener.OfDatagrams(l)
	return l
}

// datagramClusters are the names of the clusters to which the port sends datagrams: one, or none.
func (p *listenPort) datagramClusters(v *facet.View) []string {
	if p.protocol != gateway.ServesUDP || len(p.servers) == 0 {
		return nil
	}
	before := len(v.Reasons) // the listeners say what is wrong
	to, _ := datagramTarget(v, p)
	v.Reasons = v.Reasons[:before]
	if to.Service == nil {
		return nil
	}
	return []string{resource.DatagramCluster(to.Service.Key.Hostname, to.Port.Number)}
}

// datagramsTo is the destination of datagrams that the name means; false where no port sends any.
func datagramsTo(v *facet.View, name string) (d destination.Destination, ok bool) {
	id, is := resource.ParseDatagramCluster(name)
	sends := func(p *listenPort) bool { return slices.Contains(p.datagramClusters(v), name) }
	if !is || !slices.ContainsFunc(ports(v), sends) {
		return d, false
	}
	d.Name, d.ServedPort = name, service.DatagramOwner(v, service.SeenAt(v, id.Host), id.Port)
	return d, d.Service != nil
}

// Assignment has the endpoints of a cluster to which datagrams go.
func Assignment(v *facet.View, name string) proto.Message {
	d, is := datagramsTo(v, name)
	if !is {
		return nil
	}
	return endpoint.Datagrams(v, d)
}
