package authorization

import (
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/encoding/protojson"
	security "istio.io/api/security/v1"
	"pgregory.net/rapid"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/check"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

// answering is a listener that answers the requests that the policies let pass.
func answering(port int, p *Policies) *listenerv3.Listener {
	everything := &routev3.Route{
		Match:  resource.AnyPath(),
		Action: &routev3.Route_DirectResponse{DirectResponse: &routev3.DirectResponseAction{Status: http.StatusOK}},
	}
	m := &hcmv3.HttpConnectionManager{
		StatPrefix:  "test",
		HttpFilters: []*hcmv3.HttpFilter{resource.InHTTP(resource.RouterFilter, &routerv3.Router{})},
		RouteSpecifier: &hcmv3.HttpConnectionManager_RouteConfig{RouteConfig: &routev3.RouteConfiguration{
			VirtualHosts: []*routev3.VirtualHost{{Name: "all", Domains: []string{"*"}, Routes: []*routev3.Route{everything}}},
		}},
	}
	p.Requests(m, func(*hcmv3.HttpConnectionManager) {})
	return &listenerv3.Listener{
		Name: fmt.Sprint(port), Address: resource.SocketAddress("127.0.0.1", uint16(port)),
		FilterChains: []*listenerv3.FilterChain{{Filters: []*listenerv3.Filter{resource.Filter(resource.HTTPFilter, m)}}},
	}
}

func bootstrapOf(t *testing.T, listeners []*listenerv3.Listener) []byte {
	t.Helper()
	config, err := protojson.Marshal(&bootstrapv3.Bootstrap{StaticResources: &bootstrapv3.Bootstrap_StaticResources{Listeners: listeners}})
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// TestK01ARealEnvoyDecidesAsThePoliciesSay: the second reading of the reference, with which the
// filters are compared, is what a real Envoy does with them.
func TestK01ARealEnvoyDecidesAsThePoliciesSay(t *testing.T) {
	const listeners, requests = 40, 25
	domains, loopback := []string{"td.example"}, netip.MustParseAddr("127.0.0.1")
	var all []*listenerv3.Listener
	var of []*Policies
	for i := range listeners {
		p := (&Policies{all: rapid.Custom(drawPolicies).Example(i), domains: domains}).build()
		of, all = append(of, p), append(all, answering(testbed.FreePort(t, nil, loopback), p))
	}
	testbed.StartEnvoy(t, testbed.EnvoyOptions{Config: bootstrapOf(t, all)}).WaitReady(time.Minute)
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answers := map[int]int{}
	for i, p := range of {
		for j := range requests {
			c := rapid.Custom(drawCall).Example(i*requests + j)
			if c.tcp {
				continue
			}
			c.peer, c.sni = "", ""
			c.source, c.destination = loopback.String(), loopback.String()
			c.port = int(all[i].GetAddress().GetSocketAddress().GetPortValue())
			want := http.StatusForbidden
			if admits(p.all, domains, c) {
				want = http.StatusOK
			}
			got := c.ask(t, client)
			answers[got]++
			if got != want {
				t.Errorf("%+v is answered with %d, want %d\nunder %s", c, got, want, strings.Join(specs(p.all), "\n"))
			}
		}
	}
	if answers[http.StatusOK] < 50 || answers[http.StatusForbidden] < 50 {
		t.Errorf("the answers are %v: they say little", answers)
	}
}

// ask sends the call as a request.
func (c call) ask(t *testing.T, client *http.Client) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), c.method, fmt.Sprintf("http://127.0.0.1:%d%s", c.port, c.path), nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Host = c.host
	request.Header.Set("X-Forwarded-For", c.remote)
	for name, value := range c.headers {
		request.Header.Set(name, value)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatalf("%+v: %v", c, err)
	}
	response.Body.Close()
	return response.StatusCode
}

// TestK04OddValuesAreNoneThatEnvoyRefuses: whatever text a value has, the filters are some that
// Envoy accepts; else the proxy would keep the policies that it had.
func TestK04OddValuesAreNoneThatEnvoyRefuses(t *testing.T) {
	odd := []string{
		"", "*", "**", "***", "a*b", "*a*", " ", "a b", "\t", "é", "\\", "\\Q", "(", "[", "a+b(c)[d]{2}|$^", "{", "}", "{*}", "{**}", "/{*}",
		"/{**}", "/{**}/", "//{*}", "/{*}//", "/{*}/{*}/{*}/{*}/{*}/{*}/{*}",
		"/a/{**}/b/{*}", "/a=b/{*}", "/a%20b/{*}", "/a%zz/{*}", "/a b/{*}", "/é/{*}", "/a{*}", "/{*}a", "/{a=*}/{*}",
		"/.;:@!$&'()+,~_-/{**}/x", "/a?b/{*}", "/a#b/{*}",
		"10.0.0.0/0", "10.0.0.1/8", "::/0", "::ffff:10.0.0.0/104", "fe80::1%eth0", "10.0.0.0/33", "0", "65536", "65535", "-1", "080",
		strings.Repeat("a", 2000), "spiffe://a", "a/b/c", "/", "a/", "/b", "[v]", "[]", "[", "*.*",
	}
	names := []string{
		"source.ip", "source.namespace", "source.principal", "source.serviceAccount", "source.trustDomain", "connection.sni",
		"destination.ip", "destination.port",
		"request.headers[x]", "request.headers[]", "request.headers[", "request.headers[:path]", "request.headers[é]", "request.headers[a\n]",
		"request.headers[" + strings.Repeat("x", 20000) + "]",
		"experimental.envoy.filters.", "experimental.envoy.filters.a", "experimental.envoy.filters.a[", "experimental.envoy.filters.a[]",
		"experimental.envoy.filters.a[b]", "experimental.envoy.filters.[b]", "x",
	}
	var all []policy
	for _, action := range []security.AuthorizationPolicy_Action{allow, deny} {
		spec := &security.AuthorizationPolicy{Action: action}
		for _, text := range odd {
			v := []string{text}
			for _, s := range []*security.Source{
				{Principals: v},
				{Namespaces: v},
				{ServiceAccounts: v},
				{TrustDomains: v},
				{IpBlocks: v},
				{RemoteIpBlocks: v},
				{RequestPrincipals: v},
				{NotNamespaces: v},
				nil,
			} {
				spec.Rules = append(spec.Rules, &security.Rule{From: []*security.Rule_From{{Source: s}}})
			}
			for _, o := range []*security.Operation{{Hosts: v}, {Methods: v}, {Ports: v}, {Paths: v}, {NotPaths: v}, nil} {
				spec.Rules = append(spec.Rules, &security.Rule{To: []*security.Rule_To{{Operation: o}}})
			}
			for _, name := range names {
				spec.Rules = append(spec.Rules, &security.Rule{When: []*security.Condition{{Key: name, Values: v}, {Key: name, NotValues: v}}})
			}
		}
		all = append(all, policy{&federation.Object{Key: federation.ObjectKey{Namespace: "web", Name: action.String()}}, spec})
	}
	p := (&Policies{all: all, domains: []string{"td.example"}}).build()
	l := answering(10000, p)
	tcp := &listenerv3.FilterChain{Filters: []*listenerv3.Filter{resource.TCPProxy("none")}}
	p.Connections(tcp)
	l.DefaultFilterChain = tcp
	if err := check.Resource(l); err != nil {
		t.Errorf("the hub refuses them: %v", err)
	}
	if err := testbed.ValidateEnvoy(t, bootstrapOf(t, []*listenerv3.Listener{l})); err != nil {
		t.Error(err)
	}
}
