package route

import (
	"strings"
	"testing"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/node"
)

// hostOf is what the configuration does with requests for a host; empty: it has no such host.
func hostOf(c *routev3.RouteConfiguration, host string) string {
	for _, h := range c.GetVirtualHosts() {
		for _, d := range h.GetDomains() {
			if d == host {
				return told(h.GetRoutes())
			}
		}
	}
	return ""
}

// TestHostsOfPorts: requests are told apart by their host, and each case names what decides.
func TestHostsOfPorts(t *testing.T) {
	const elsewhere = `shop/vs {"hosts": ["a.com"], "http": [{"route": [{"destination": {"host": "web"}}]}]}`
	const rewritten = `shop/vs {"hosts": ["a.com"], "http": [{"rewrite": {"authority": "HOST"}, "route": [{"destination": {"host": "*.example.com"}}]}]}`
	only := inShop
	only.Outbound = federation.RegistryOnly
	imports := inShop
	imports.Egress = "bank/*"
	for name, test := range map[string]struct {
		objects []string
		facet   node.Facet // of no scope: sidecars of shop
		plan    Planner    // nil: of ports
		name    string
		host    string
		want    string
	}{
		"a service":                          {name: "80", host: "web.shop.svc.cluster.local", want: "/: 80||web"},
		"its short name":                     {name: "80", host: "web", want: "/: 80||web"},
		"its other name":                     {name: "80", host: "old", want: "/: 80||web"},
		"its own port":                       {name: "9000", host: "one", want: "/: 9000||one, hashed"},
		"another port":                       {name: "8080", host: "web", want: ""},
		"a hidden one":                       {name: "80", host: "hidden.bank.svc.cluster.local", want: ""},
		"Sidecar.egress, without it":         {facet: imports, name: "80", host: "web", want: ""},
		"no host, ALLOW_ANY":                 {name: "80", host: "*", want: "/: PassthroughCluster, 0 retries"},
		"no host, REGISTRY_ONLY":             {facet: only, name: "80", host: "*", want: "/: 502"},
		"VirtualService.hosts, no service":   {objects: []string{elsewhere}, name: "80", host: "a.com", want: "/: 80||web"},
		"the same, at another port":          {objects: []string{elsewhere}, name: "8080", host: "a.com", want: ""},
		"VirtualService, excluded":           {objects: []string{`shop/vs {"hosts": ["web.shop.svc.cluster.local"], "http": [{"redirect": {"redirectCode": 200}}]}`}, name: "80", host: "web", want: "/: 80||web"},
		"VirtualService of other gateways":   {objects: []string{`shop/vs {"hosts": ["web.shop.svc.cluster.local"], "http": [{"match": [{"port": 1}], "directResponse": {"status": 200}}]}`}, name: "80", host: "web", want: "/: 80||web"},
		"a wildcard that is resolved":        {name: "80", host: "*.example.com", want: `/ :authority=(?i)[a-z0-9_-]+(\.[a-z0-9_-]+)*\.example\.com(:80)?: 80||*.example.com; /: 421`},
		"rewrite.authority, of the wildcard": {objects: []string{strings.ReplaceAll(rewritten, "HOST", "b.example.com")}, name: "80", host: "a.com", want: "/: 80||*.example.com, as b.example.com, envoy.filters.http.dynamic_forward_proxy"},
		"rewrite.authority beyond it":        {objects: []string{strings.ReplaceAll(rewritten, "HOST", "b.com")}, name: "80", host: "a.com", want: "/: 421"},
		"a port of bytes":                    {name: "3306", host: "*", want: ""},
		"not a port":                         {name: "x", host: "*", want: ""},
		"a port with detection":              {name: "any.shop.svc.cluster.local:7000", host: "*", want: "/: 7000||any"},
		"a port without, by its name":        {name: "web.shop.svc.cluster.local:80", host: "*", want: ""},
		"the proxy's port":                   {plan: PlanProxy, name: "http_proxy", host: "api:8080", want: "/: 8080||api"},
		"the proxy's port, 80":               {plan: PlanProxy, name: "http_proxy", host: "api", want: "/: 80||api"},
		"the proxy's port, others":           {plan: PlanProxy, name: "http_proxy", host: "one", want: ""},
		"the proxy's port, no host":          {plan: PlanProxy, name: "http_proxy", host: "*", want: "/: 502"},
		"the proxy's port, of chosen pods":   {plan: PlanProxy, name: "http_proxy", host: "pods", want: ""},
		"chosen pods":                        {name: "80", host: "pods", want: "/: 80||pods"},
	} {
		t.Run(name, func(t *testing.T) {
			f, plan := test.facet, test.plan
			if f.Scope == 0 {
				f = inShop
			}
			if plan == nil {
				plan = PlanPorts
			}
			c, _ := plan.Build(shop(t, test.objects...).View(t, f), test.name).(*routev3.RouteConfiguration)
			if got := hostOf(c, test.host); got != test.want {
				t.Errorf("requests: %q, want %q", got, test.want)
			}
		})
	}
}
