package route

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/encoding/protojson"
	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/facettest"
	"isthmus.dev/isthmus/xds/envoy/node"
)

// inShop are sidecars of the namespace shop.
var inShop = node.Facet{Scope: node.ScopeRoutes, Namespace: "shop", Domain: "shop.svc.cluster.local"}

// shop is a mesh with services of all sorts, and these VirtualServices besides: NAMESPACE/NAME SPEC, the oldest first.
func shop(t *testing.T, virtualServices ...string) facettest.Mesh {
	t.Helper()
	http, tcp := federation.HTTP, federation.TCP
	m := facettest.Mesh{
		Services: []facettest.Service{
			in("shop/web.shop.svc.cluster.local", facettest.Port(80, http)),
			in("shop/api.shop.svc.cluster.local", facettest.Port(80, http), facettest.Port(8080, http)),
			in("shop/one.shop.svc.cluster.local", facettest.Port(9000, http)),
			in("shop/db.shop.svc.cluster.local", facettest.Port(3306, tcp), facettest.Port(53, federation.UDP)),
			in("bank/hidden.bank.svc.cluster.local", facettest.Port(80, http)),
			in("shop/old.shop.svc.cluster.local", facettest.Port(80, http)),
			in("shop/any.shop.svc.cluster.local", facettest.Port(7000, tcp)),
			in("shop/*.example.com", facettest.Port(80, http)),
			in("shop/*.example.net", facettest.Port(443, federation.TLS)),
			in("shop/pods.shop.svc.cluster.local", facettest.Port(80, http)),
		},
		Rules: []string{
			`shop/web web.shop.svc.cluster.local {"subsets": [{"name": "v1"}, {"name": "v2"}]}`,
			`shop/one one.shop.svc.cluster.local {"trafficPolicy": {"loadBalancer": {"consistentHash": {"httpHeaderName": "user"}}}}`,
			`shop/db db.shop.svc.cluster.local {"trafficPolicy": {"connectionPool": {"tcp": {"idleTimeout": "60s"}}}}`,
		},
	}
	m.Services[4].ExportTo = []string{"."}
	m.Services[5].ExternalName = "web.shop.svc.cluster.local"
	m.Services[6].Ports[0].Undeclared = true
	for i := 7; i < 9; i++ {
		s := &m.Services[i]
		s.Provider, s.Cluster = federation.External, ""
		s.MeshExternal, s.Resolution = true, federation.DynamicDNS
	}
	m.Services[9].Resolution = federation.Passthrough
	m.Objects = append(m.Objects, &federation.Object{
		Key:   federation.ServiceEntryKind.Key("shop", "any"),
		Names: []string{federation.DynamicDNSEntries, "*.example.com"},
	})
	for _, text := range virtualServices {
		m.Objects = append(m.Objects, virtualService(t, text))
	}
	return m
}

func in(name string, ports ...federation.Port) facettest.Service {
	return facettest.Service{Name: name, Cluster: "c1", Shard: federation.Shard{Ports: ports}}
}

// virtualService reads NAMESPACE/NAME SPEC.
func virtualService(t *testing.T, text string) *federation.Object {
	t.Helper()
	key, body, _ := strings.Cut(text, " ")
	spec := &networking.VirtualService{}
	if err := protojson.Unmarshal([]byte(body), spec); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	namespace, name, _ := strings.Cut(key, "/")
	return &federation.Object{Key: federation.VirtualServiceKind.Key(namespace, name), Spec: spec, Names: spec.GetHosts()}
}

// ruleOf is the VirtualService shop/vs at port 80 in the mesh, as these proxies see it.
func ruleOf(t *testing.T, m facettest.Mesh, f node.Facet, spec string) *Rule {
	t.Helper()
	o := virtualService(t, "shop/vs "+spec)
	return &Rule{View: m.View(t, f), Object: o, Spec: o.Spec.(*networking.VirtualService), Port: 80}
}

// noted are the messages of all that is excluded.
func (r *Rule) noted() string {
	var all []string
	for _, reason := range r.View.Reasons {
		all = append(all, reason.Message)
	}
	return strings.Join(all, "; ")
}

// brief omits from a cluster's name what is the same for all services of the shop.
func brief(cluster string) string {
	return strings.TrimSuffix(strings.TrimPrefix(cluster, "outbound|"), ".shop.svc.cluster.local")
}

// told is MATCH: ACTION for each route.
func told(routes []*routev3.Route) string {
	all := make([]string, len(routes))
	for i, r := range routes {
		all[i] = requestsOf(r.GetMatch()) + ": " + actionOf(r)
	}
	return strings.Join(all, "; ")
}

func requestsOf(m *routev3.RouteMatch) string {
	words := []string{m.GetPrefix() + m.GetPath() + m.GetSafeRegex().GetRegex()}
	for _, h := range m.GetHeaders() {
		value := h.GetStringMatch().GetExact() + h.GetStringMatch().GetSafeRegex().GetRegex()
		words = append(words, strings.TrimSuffix(h.GetName()+"="+value, "="))
	}
	for range m.GetDynamicMetadata() {
		words = append(words, "claim")
	}
	return strings.Join(words, " ")
}

func actionOf(r *routev3.Route) string {
	if d := r.GetDirectResponse(); d != nil {
		return fmt.Sprint(d.GetStatus())
	}
	if to := r.GetRedirect(); to != nil {
		return fmt.Sprintf("%s to %s:%d", to.GetResponseCode(), to.GetHostRedirect(), to.GetPortRedirect())
	}
	a := r.GetRoute()
	words := []string{brief(a.GetCluster())}
	for _, w := range a.GetWeightedClusters().GetClusters() {
		share := fmt.Sprintf("%d %s", w.GetWeight().GetValue(), brief(w.GetName()))
		words = append(words, strings.Join(slices.Concat([]string{share}, asHost(w.GetHostRewriteLiteral()), added(w.GetRequestHeadersToAdd())), " "))
	}
	words = slices.Concat(words, asHost(a.GetHostRewriteLiteral()), added(r.GetRequestHeadersToAdd()))
	words = append(words, slices.Sorted(maps.Keys(r.GetTypedPerFilterConfig()))...)
	if a.GetPrefixRewrite() != "" {
		words = append(words, "at "+a.GetPrefixRewrite())
	}
	if limit := a.GetTimeout().AsDuration(); limit > 0 {
		words = append(words, "within "+limit.String())
	}
	if n := a.GetRetryPolicy().GetNumRetries().GetValue(); n != 2 {
		words = append(words, fmt.Sprint(n, " retries"))
	}
	for range a.GetHashPolicy() {
		words = append(words, "hashed")
	}
	for _, m := range a.GetRequestMirrorPolicies() {
		millionths := m.GetRuntimeFraction().GetDefaultValue().GetNumerator()
		words = append(words, fmt.Sprintf("%g%% copied to %s", float64(millionths)/1e4, brief(m.GetCluster())))
	}
	return strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), ", ")
}

func asHost(host string) []string {
	if host == "" {
		return nil
	}
	return []string{"as " + host}
}

func added(headers []*corev3.HeaderValueOption) []string {
	var all []string
	for _, h := range headers {
		all = append(all, h.GetHeader().GetKey()+"="+h.GetHeader().GetValue())
	}
	return all
}
