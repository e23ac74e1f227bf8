package envoy

import (
	"fmt"
	"iter"
	"net/http"
	"slices"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	previoushostsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/retry/host/previous_hosts/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"isthmus.dev/isthmus/federation"
)

// retryOn are the faults after which a request has surely not been worked on,
// or may be repeated by the rules of gRPC.
const retryOn = "connect-failure,refused-stream,reset-before-request,unavailable,cancelled"

// routes builds the routes of one port, or those of the explicit HTTP proxy.
func (b *builder) routes(name string) proto.Message {
	if b.facet.Scope == scopeProxyRoutes && name == httpProxyRoutes {
		return b.proxyRoutes()
	}
	number, ok := parsePort(name)
	if b.facet.Scope != scopeRoutes || !ok {
		return nil
	}
	only := []uint16{number}
	hosts := b.httpHosts(b.reader.SpecsOnPort(number), func([]*federation.Service) []uint16 { return only })
	if len(hosts) == 0 {
		return nil
	}
	b.claimDomains(hosts, func(domain string, _ uint16) []string { return []string{domain} })
	return &routev3.RouteConfiguration{
		Name: name, VirtualHosts: append(virtualHosts(hosts), everything("allow_any", forward(passthroughCluster))),
		// The port was decided when the connection was caught.
		IgnorePortInHostMatching: true,
		ValidateClusters:         wrapperspb.Bool(false),
	}
}

// proxyRoutes tells ports apart by the request's authority. Where a connection
// would have gone without the proxy is not known here, so that unknown hosts
// cannot be reached through it.
func (b *builder) proxyRoutes() proto.Message {
	services := b.reader.Select(func(s *federation.Service) bool {
		return b.facet.covers(s) && slices.ContainsFunc(s.Ports, func(p federation.ServicePort) bool { return p.Protocol.Transport() == federation.TransportTCP })
	})
	hosts := slices.DeleteFunc(b.httpHosts(slices.Values(services), portNumbers), b.needsDestination)
	b.claimDomains(hosts, func(domain string, port uint16) []string {
		withPort := fmt.Sprintf("%s:%d", domain, port)
		if port == 80 {
			return []string{domain, withPort}
		}
		return []string{withPort}
	})
	unknown := &routev3.Route{
		Match:  anyPath(),
		Action: &routev3.Route_DirectResponse{DirectResponse: &routev3.DirectResponseAction{Status: http.StatusBadGateway, Body: inlineText("no such service\n")}},
	}
	return &routev3.RouteConfiguration{
		Name: httpProxyRoutes, VirtualHosts: append(virtualHosts(hosts), everything("block_all", unknown)),
		ValidateClusters: wrapperspb.Bool(false),
	}
}

// needsDestination tells that the host's callers choose the instance, which they
// cannot say to an explicit proxy.
func (b *builder) needsDestination(h *httpHost) bool {
	needs := h.service.Resolution == federation.Passthrough
	if needs {
		b.leaveOut(Reason{Code: ReasonNoDestination, Message: h.name() + " cannot be reached through the HTTP proxy port: its callers choose the instance by address; call it directly"})
	}
	return needs
}

// httpHost is a virtual host in the making.
type httpHost struct {
	servedPort
	domains []string
}

// httpHosts lists the HTTP ports among the numbers of services, given in the
// order of keys, that own their cluster's name.
func (b *builder) httpHosts(services iter.Seq[*federation.Service], numbers func([]*federation.Service) []uint16) []*httpHost {
	var hosts []*httpHost
	for group := range byHostname(services) {
		for _, number := range numbers(group) {
			owner, losers := firstOwner(group, number, b.facet.covers)
			for _, s := range losers {
				if p, _ := tcpPort(s, number); p.Protocol.IsHTTP() {
					b.leaveOut(hostnameTaken(owner, s))
				}
			}
			if owner.service != nil && owner.port.Protocol.IsHTTP() {
				hosts = append(hosts, &httpHost{servedPort: owner})
			}
		}
	}
	return hosts
}

// portNumbers are those of the services' TCP-based ports.
func portNumbers(services []*federation.Service) []uint16 {
	var numbers []uint16
	for _, s := range services {
		for _, p := range s.Ports {
			if p.Protocol.Transport() == federation.TransportTCP && !slices.Contains(numbers, p.Number) {
				numbers = append(numbers, p.Number)
			}
		}
	}
	return numbers
}

func (h *httpHost) name() string { return fmt.Sprintf("%s:%d", h.service.Key.Hostname, h.port.Number) }

// virtualHosts share what is the same for all of them.
func virtualHosts(hosts []*httpHost) []*routev3.VirtualHost {
	all := make([]*routev3.VirtualHost, 0, len(hosts)+1)
	retry, match, unlimited := retryPolicy(), anyPath(), durationpb.New(0)
	for _, h := range hosts {
		route := &routev3.Route{Match: match, Action: &routev3.Route_Route{Route: &routev3.RouteAction{
			ClusterSpecifier: &routev3.RouteAction_Cluster{Cluster: clusterName(h.service.Key.Hostname, h.port.Number)},
			RetryPolicy:      retry, Timeout: unlimited,
		}}}
		all = append(all, &routev3.VirtualHost{Name: h.name(), Domains: h.domains, Routes: []*routev3.Route{route}})
	}
	return all
}

// retryPolicy tries an endpoint that was not tried before, if there is one.
func retryPolicy() *routev3.RetryPolicy {
	return &routev3.RetryPolicy{
		RetryOn: retryOn, NumRetries: wrapperspb.UInt32(2), HostSelectionRetryMaxAttempts: 5,
		RetryHostPredicate: []*routev3.RetryPolicy_RetryHostPredicate{{
			Name:       "envoy.retry_host_predicates.previous_hosts",
			ConfigType: &routev3.RetryPolicy_RetryHostPredicate_TypedConfig{TypedConfig: toAny(&previoushostsv3.PreviousHostsPredicate{})},
		}},
	}
}

func everything(name string, route *routev3.Route) *routev3.VirtualHost {
	return &routev3.VirtualHost{Name: name, Domains: []string{"*"}, Routes: []*routev3.Route{route}}
}

// forward sends every request to the cluster, without a time limit.
func forward(cluster string) *routev3.Route {
	return &routev3.Route{Match: anyPath(), Action: &routev3.Route_Route{Route: &routev3.RouteAction{
		ClusterSpecifier: &routev3.RouteAction_Cluster{Cluster: cluster}, Timeout: durationpb.New(0),
	}}}
}

func anyPath() *routev3.RouteMatch {
	return &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: "/"}}
}

func inlineText(text string) *corev3.DataSource {
	return &corev3.DataSource{Specifier: &corev3.DataSource_InlineString{InlineString: text}}
}
