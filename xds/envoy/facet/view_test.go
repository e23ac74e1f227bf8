package facet_test

import (
	"slices"
	"strings"
	"testing"

	selection "istio.io/api/type/v1beta1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/facet"
	"isthmus.dev/isthmus/xds/envoy/facettest"
	"isthmus.dev/isthmus/xds/envoy/node"
)

// service is one of shop with a port, visible where the list says.
func service(host string, exportTo ...string) facettest.Service {
	return facettest.Service{Name: "shop/" + host, Cluster: "c1", Shard: federation.Shard{
		Ports: []federation.Port{facettest.Port(80, federation.HTTP)}, ExportTo: exportTo,
	}}
}

func TestWhatProxiesSee(t *testing.T) {
	routes := func(namespace, egress string) node.Facet {
		return node.Facet{Scope: node.ScopeRoutes, Namespace: namespace, Egress: egress}
	}
	for name, test := range map[string]struct {
		facet     node.Facet
		exportTo  []string
		sees, has bool // and whether what is sent to port 80 may reach it
	}{
		"everyone's":                {routes("bank", ""), nil, true, true},
		"its own namespace's":       {routes("shop", ""), []string{"."}, true, true},
		"another namespace's":       {routes("bank", ""), []string{"."}, false, true},
		"exported by name":          {routes("bank", ""), []string{"bank"}, true, true},
		"exported to others":        {routes("bank", ""), []string{"till"}, false, true},
		"a Sidecar imports it":      {routes("bank", "shop/*"), nil, true, true},
		"a Sidecar imports nothing": {routes("bank", "~/*"), nil, false, false},
		"a Sidecar imports others":  {routes("bank", "till/*"), nil, false, false},
		"a Sidecar at another port": {routes("bank", "81:shop/*;till/*"), nil, true, false},
		"a Sidecar at the port":     {routes("bank", "80:shop/*;till/*"), nil, true, true},
		"imported, not exported":    {routes("bank", "shop/*"), []string{"."}, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			v := facettest.Mesh{Services: []facettest.Service{service("web.shop.svc.cluster.local", test.exportTo...)}}.View(t, test.facet)
			s, ok := v.Reader.Spec(federation.ServiceKey{Hostname: "web.shop.svc.cluster.local", Namespace: "shop"})
			if !ok {
				t.Fatal("there is no service")
			}
			if sees, has := v.Sees(s), v.Exposes(s, 80); sees != test.sees || has != test.has {
				t.Errorf("seen: %t, reached at the port: %t; want %t, %t", sees, has, test.sees, test.has)
			}
		})
	}
}

func TestNetworksOfProxies(t *testing.T) {
	for name, test := range map[string]struct {
		facet node.Facet
		want  federation.NetworkID
	}{
		"its own":       {node.Facet{Cluster: "c1", Network: "n2"}, "n2"},
		"its cluster's": {node.Facet{Cluster: "c1"}, federation.DefaultNetwork},
		"no cluster's":  {node.Facet{Cluster: "c9"}, federation.DefaultNetwork},
		"nobody's":      {node.Facet{}, federation.DefaultNetwork},
	} {
		v := facettest.Mesh{Services: []facettest.Service{service("web.shop.svc.cluster.local")}}.View(t, test.facet)
		if got := v.Network(); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

func TestSelectedProxies(t *testing.T) {
	gateway := func(names ...string) []*selection.PolicyTargetReference {
		var refs []*selection.PolicyTargetReference
		for _, name := range names {
			refs = append(refs, &selection.PolicyTargetReference{Group: "gateway.networking.k8s.io", Kind: "Gateway", Name: name})
		}
		return refs
	}
	web := node.Facet{Namespace: "shop", Labels: "app=web,tier=gold"}
	front := node.Facet{Namespace: "shop", Labels: federation.GatewayLabel + "=front"}
	for name, test := range map[string]struct {
		policy    policy
		namespace string
		facet     node.Facet
		want      bool
	}{
		"all":                        {policy{}, "shop", web, true},
		"by a label":                 {policy{labels: map[string]string{"app": "web"}}, "shop", web, true},
		"by labels of the root":      {policy{labels: map[string]string{"app": "web"}}, "istio-system", web, true},
		"by both labels":             {policy{labels: map[string]string{"app": "web", "tier": "tin"}}, "shop", web, false},
		"a gateway":                  {policy{refs: gateway("front")}, "shop", front, true},
		"one of two gateways":        {policy{refs: gateway("back", "front")}, "shop", front, true},
		"a gateway by the old field": {policy{ref: gateway("front")[0]}, "shop", front, true},
		"another gateway":            {policy{refs: gateway("back")}, "shop", front, false},
		"another namespace's":        {policy{refs: gateway("front")}, "istio-system", front, false},
		"gateways, not sidecars":     {policy{refs: gateway("front")}, "shop", web, false},
		"a target before labels":     {policy{refs: gateway("front"), labels: map[string]string{"app": "web"}}, "shop", web, false},
		"something else":             {policy{refs: []*selection.PolicyTargetReference{{Kind: "Service", Name: "front"}}}, "shop", front, false},
	} {
		if got := facet.Selects(test.policy, test.namespace, test.facet); got != test.want {
			t.Errorf("%s: selected: %t, want %t", name, got, test.want)
		}
	}
}

// policy selects proxies by labels or by name.
type policy struct {
	labels map[string]string
	ref    *selection.PolicyTargetReference
	refs   []*selection.PolicyTargetReference
}

func (p policy) GetSelector() *selection.WorkloadSelector {
	return &selection.WorkloadSelector{MatchLabels: p.labels}
}
func (p policy) GetTargetRef() *selection.PolicyTargetReference    { return p.ref }
func (p policy) GetTargetRefs() []*selection.PolicyTargetReference { return p.refs }

// TestPoliciesOfProxies: those of the namespace and of the root, for all workloads and for one of the labels, each once.
func TestPoliciesOfProxies(t *testing.T) {
	kind := federation.Kind{Group: "security.istio.io", Name: "AuthorizationPolicy"}
	var mesh facettest.Mesh
	for _, text := range []string{
		"shop/all workloads:shop", "shop/web workloads:shop/app=web", "shop/db workloads:shop/app=db",
		"istio-system/root workloads:istio-system", "bank/other workloads:bank",
	} {
		key, name, _ := strings.Cut(text, " ")
		namespace, object, _ := strings.Cut(key, "/")
		mesh.Objects = append(mesh.Objects, &federation.Object{
			Key:   federation.ObjectKey{Group: kind.Group, Kind: kind.Name, Namespace: namespace, Name: object},
			Names: []string{federation.WorkloadsName + strings.TrimPrefix(name, "workloads:")},
		})
	}
	for _, test := range []struct{ namespace, want string }{
		{"shop", "all web root"}, {"istio-system", "root"}, {"bank", "other root"},
	} {
		v := mesh.View(t, node.Facet{Namespace: test.namespace, Labels: "app=web"})
		var got []string
		for o := range v.Policies(kind) {
			got = append(got, o.Key.Name)
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("proxies of %s: %q, want %q", test.namespace, got, test.want)
		}
		for o := range v.Policies(kind) {
			if o.Key.Name != got[0] {
				t.Errorf("the first is %s, then %s", got[0], o.Key.Name)
			}
			break
		}
	}
}

// TestRulesOfProxies: what many namespaces share is built by the rules that everyone sees.
func TestRulesOfProxies(t *testing.T) {
	mesh := facettest.Mesh{Services: []facettest.Service{service("web.shop.svc.cluster.local")}, Rules: []string{
		`shop/theirs web.shop.svc.cluster.local {"subsets": [{"name": "v1"}]}`,
		`bank/ours web.shop.svc.cluster.local {"subsets": [{"name": "v2"}], "exportTo": ["."], "trafficPolicy": {"loadBalancer": {"simple": "RANDOM"}}}`,
		`bank/chosen web.shop.svc.cluster.local {"subsets": [{"name": "v3"}], "workloadSelector": {"matchLabels": {"app": "till"}}}`,
	}}
	for name, test := range map[string]struct {
		facet node.Facet
		want  string
	}{
		"shared":            {node.Facet{Scope: node.ScopePublic, Namespace: "bank"}, "v1"},
		"of the namespace":  {node.Facet{Scope: node.ScopeNamespaced, Namespace: "bank"}, "v2"},
		"of the labels":     {node.Facet{Scope: node.ScopeNamespaced, Namespace: "bank", Labels: "app=till"}, "v3"},
		"of the routes":     {node.Facet{Scope: node.ScopeRoutes, Namespace: "bank"}, "v2"},
		"another namespace": {node.Facet{Scope: node.ScopeNamespaced, Namespace: "till"}, "v1"},
	} {
		v := mesh.View(t, test.facet)
		s, _ := v.Reader.Spec(federation.ServiceKey{Hostname: "web.shop.svc.cluster.local", Namespace: "shop"})
		for _, subset := range []string{"v1", "v2", "v3"} {
			if got := v.HasSubset(s, subset); got != (subset == test.want) {
				t.Errorf("%s: the subset %s exists: %t, want only %s", name, subset, got, test.want)
			}
		}
		if random := v.TrafficPolicyFor(s, 80, test.want).GetLoadBalancer() != nil; random != (test.want == "v2") {
			t.Errorf("%s: endpoints are chosen at random: %t", name, random)
		}
	}
}

func TestNamesThatProxiesResolve(t *testing.T) {
	entry := func(namespace, host string) *federation.Object {
		return &federation.Object{
			Key:   federation.ObjectKey{Group: "networking.istio.io", Kind: "ServiceEntry", Namespace: namespace, Name: "any"},
			Names: []string{federation.DynamicDNSEntries, host},
		}
	}
	dynamic := facettest.Service{Name: "shop/*.example.com", Provider: federation.External, Shard: federation.Shard{
		MeshExternal: true, Resolution: federation.DynamicDNS, Ports: []federation.Port{facettest.Port(80, federation.HTTP), facettest.Port(53, federation.UDP)},
	}}
	closed := dynamic
	closed.ExportTo = []string{"."}
	known := dynamic
	known.Resolution = federation.DNSLB
	in := func(namespace string) node.Facet { return node.Facet{Scope: node.ScopeRoutes, Namespace: namespace} }
	for name, test := range map[string]struct {
		service facettest.Service
		facet   node.Facet
		port    uint16
		want    bool
	}{
		"the port":                {dynamic, in("bank"), 80, true},
		"any port":                {dynamic, in("bank"), 0, true},
		"another port":            {dynamic, in("bank"), 81, false},
		"a port for datagrams":    {dynamic, in("bank"), 53, false},
		"what is not seen":        {closed, in("bank"), 80, false},
		"what its own namespace":  {closed, in("shop"), 80, true},
		"what is resolved before": {known, in("bank"), 80, false},
	} {
		mesh := facettest.Mesh{Services: []facettest.Service{test.service}, Objects: []*federation.Object{entry("shop", "*.example.com")}}
		if got := facet.ResolvesNames(mesh.View(t, test.facet), test.port); got != test.want {
			t.Errorf("%s: names are resolved: %t, want %t", name, got, test.want)
		}
	}
	if facet.ResolvesNames(facettest.Mesh{Services: []facettest.Service{dynamic}}.View(t, in("bank")), 80) {
		t.Error("names are resolved without an entry")
	}
}

// TestCauses: what virtual hosts are made of, and the ServiceEntries of what nothing else says anything of.
func TestCauses(t *testing.T) {
	mesh := facettest.Mesh{
		Services: []facettest.Service{service("web.shop.svc.cluster.local"), service("api.example.com")},
		Rules:    []string{`shop/rule web.shop.svc.cluster.local {}`},
		Objects: []*federation.Object{{
			Key:   federation.ObjectKey{Group: "networking.istio.io", Kind: "ServiceEntry", Namespace: "shop", Name: "entry"},
			Names: []string{"api.example.com", "web.shop.svc.cluster.local"},
		}},
	}
	v := mesh.View(t, node.Facet{Scope: node.ScopePublic})
	of := func(host federation.Hostname) *federation.Service {
		s, ok := v.Reader.Spec(federation.ServiceKey{Hostname: host, Namespace: "shop"})
		if !ok {
			t.Fatalf("there is no service %s", host)
		}
		return s
	}
	web, api := of("web.shop.svc.cluster.local"), of("api.example.com")
	v.CausedByPolicy(web)
	v.Made("web", web) // nobody asks for causes
	v.Causes = &facet.Causes{Of: map[any][]federation.ObjectKey{}}
	v.CausedByPolicy(web)
	v.Made("web", web)
	v.CausedByPolicy(api)
	v.Made("api", api)
	v.Made("nothing", nil)
	for host, want := range map[string][]string{"web": {"rule"}, "api": {"entry"}, "nothing": nil} {
		var got []string
		for _, key := range v.Causes.Of[host] {
			got = append(got, key.Name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s is made of %q, want %q", host, got, want)
		}
	}
}
