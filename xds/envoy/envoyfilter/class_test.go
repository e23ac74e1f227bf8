package envoyfilter

import (
	"fmt"
	"strings"
	"testing"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	jwtv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/jwt_authn/v3"
	luav3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/lua/v3"
	httprbacv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tcprbacv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/rbac/v3"
	"google.golang.org/protobuf/proto"
	api "istio.io/api/networking/v1alpha3"

	"isthmus.dev/isthmus/xds/envoy/resource"
)

// securedListener has the filters that the hub adds to a chain, as far as they are named. One that
// asks a provider comes before the tokens are verified.
func securedListener(named string) *listenerv3.Listener {
	known := map[string]*hcmv3.HttpFilter{
		"exchange": resource.InHTTP(resource.ExchangeFilter, &luav3.Lua{}),
		"asked":    resource.InHTTP(resource.ProviderFilter, &httprbacv3.RBAC{}),
		"jwt":      resource.InHTTP(resource.JWTFilter, &jwtv3.JwtAuthentication{}),
		"rbac":     resource.InHTTP(resource.RBACFilter, &httprbacv3.RBAC{}),
		"fault":    resource.InHTTP(resource.FaultFilter, &luav3.Lua{}),
		"stats":    resource.InHTTP(resource.StatsFilter, &luav3.Lua{}),
		"router":   resource.InHTTP(resource.RouterFilter, &routerv3.Router{}),
	}
	l, manager := inboundListener(), &hcmv3.HttpConnectionManager{}
	if err := l.GetFilterChains()[0].GetFilters()[0].GetTypedConfig().UnmarshalTo(manager); err != nil {
		panic(err)
	}
	manager.HttpFilters = nil
	for name := range strings.FieldsSeq(named) {
		manager.HttpFilters = append(manager.HttpFilters, known[name])
	}
	l.FilterChains[0].Filters[0] = resource.Filter(resource.HTTPFilter, manager)
	return l
}

// httpFilters are the names of the filters for requests.
func httpFilters(t *testing.T, m proto.Message) string {
	t.Helper()
	manager := &hcmv3.HttpConnectionManager{}
	if err := m.(*listenerv3.Listener).GetFilterChains()[0].GetFilters()[0].GetTypedConfig().UnmarshalTo(manager); err != nil {
		t.Fatal(err)
	}
	return strings.Join(names(manager.GetHttpFilters()), " ")
}

// TestK75FiltersAreAddedByClass: each patch adds a filter of the class in the words before it.
func TestK75FiltersAreAddedByClass(t *testing.T) {
	for _, c := range []struct{ has, patches, want string }{
		{"jwt rbac fault stats router", "AUTHN=a", "jwt_authn a rbac fault stats router"},
		{"jwt rbac fault stats router", "AUTHZ=a", "jwt_authn rbac a fault stats router"},
		{"jwt rbac fault stats router", "STATS=a", "jwt_authn rbac fault a stats router"},
		{"jwt rbac fault stats router", "UNSPECIFIED=a", "jwt_authn rbac fault stats a router"},
		{"exchange rbac asked jwt router", "AUTHN=a AUTHZ=b", "metadata_exchange rbac ext_authz jwt_authn a b router"},
		{"exchange fault router", "AUTHZ=a AUTHN=b", "metadata_exchange b a fault router"},
		{"fault router", "AUTHN=a STATS=b STATS=c AUTHN=d", "a d fault b c router"},
		{"jwt stats router", "STATS=a STATS=b AUTHN=c AUTHN=d", "jwt_authn c d a b stats router"},
		{"rbac router", "AUTHZ=a AUTHZ=b AUTHN=c", "c rbac a b router"},
	} {
		var text strings.Builder
		for patch := range strings.FieldsSeq(c.patches) {
			class, name, _ := strings.Cut(patch, "=")
			fmt.Fprintf(&text, `- {applyTo: HTTP_FILTER, match: {listener: {portNumber: 8080}}, patch: {operation: ADD, filterClass: %s, value: {name: %s, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua}}}}`+"\n", class, name)
		}
		now, outcomes := Patched(securedListener(c.has), patchesIn(t, text.String()))
		if got := httpFilters(t, now); got != c.want {
			t.Errorf("%s with %s: the filters are %q, want %q (%+v)", c.has, c.patches, got, c.want, outcomes)
		}
	}
}

// TestK75ConnectionsHaveClassesToo: filters of connections are added behind those that decide.
func TestK75ConnectionsHaveClassesToo(t *testing.T) {
	l := inboundListener()
	last := l.GetDefaultFilterChain()
	last.Filters = append([]*listenerv3.Filter{resource.Filter(resource.TCPRBACFilter, &tcprbacv3.RBAC{StatPrefix: "tcp."})}, last.Filters...)
	now, _ := Patched(l, patchesIn(t, `
- {applyTo: NETWORK_FILTER, match: {listener: {filterChain: {filter: {name: envoy.tcp_proxy}}}}, patch: {operation: ADD, filterClass: AUTHZ, value: {name: mine, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.network.rbac.v3.RBAC, stat_prefix: mine}}}}
`))
	chains := chainsOf(now.(*listenerv3.Listener))
	if got := strings.Join(names(chains[1].GetFilters()), " "); got != "rbac mine tcp_proxy" {
		t.Errorf("the filters are %q", got)
	}
}

// TestK75ClassesElsewhereAreReported: with another operation or for something else, a class is a
// problem and the patch has no effect.
func TestK75ClassesElsewhereAreReported(t *testing.T) {
	for _, c := range []struct{ applyTo, operation, want string }{
		{"HTTP_FILTER", "INSERT_FIRST", "filterClass is for ADD, not for INSERT_FIRST"},
		{"LISTENER_FILTER", "ADD", "filterClass is for HTTP_FILTER and NETWORK_FILTER"},
		{"CLUSTER", "ADD", "filterClass is for HTTP_FILTER and NETWORK_FILTER"},
	} {
		patches := patchesIn(t, fmt.Sprintf("- {applyTo: %s, patch: {operation: %s, filterClass: AUTHN, value: {name: a}}}", c.applyTo, c.operation))
		problems := Problems(&api.EnvoyFilter{ConfigPatches: []*configPatch{patches[0].Spec}})
		if len(problems) != 1 || !strings.Contains(problems[0].Message, c.want) {
			t.Errorf("%s of %s: %v", c.operation, c.applyTo, problems)
		}
	}
}
