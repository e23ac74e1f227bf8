package route

import (
	"strings"
	"testing"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/facet"
	"isthmus.dev/isthmus/xds/envoy/node"
)

func TestShortNames(t *testing.T) {
	for _, test := range []struct {
		host   federation.Hostname
		domain string
		want   string
	}{
		{"web.shop.svc.cluster.local", "shop.svc.cluster.local", "web web.shop.svc web.shop"},
		{"web.shop.svc.cluster.local", "pay.svc.cluster.local", "web.shop.svc web.shop"},
		{"web.shop.svc.cluster.local", "pay.svc.other.local", ""},
		{"web.shop.svc.cluster.local", "", "web.shop.svc web.shop"},
		{"web.service.consul", "service.consul", "web"},
		{"web.service.consul", "", ""},
		{"*.shop.svc.cluster.local", "shop.svc.cluster.local", ""},
		{"example.com", "shop.svc.cluster.local", ""},
	} {
		n := hostNames{node.Facet{Domain: test.domain}}
		if got := strings.Join(n.shortOf(test.host), " "); got != test.want {
			t.Errorf("with the domain %q, %s is known as %q; want %q", test.domain, test.host, got, test.want)
		}
	}
}

// Of hosts with the same short name, that of the proxy's own namespace has it.
func TestDomainsAreClaimed(t *testing.T) {
	own := &Host{
		Host: "web.shop.svc.cluster.local", Number: 80,
		Service: &federation.Service{Key: federation.ServiceKey{Hostname: "web.shop.svc.cluster.local", Namespace: "shop"}},
	}
	external := &Host{Host: "web", Number: 80, Service: &federation.Service{Key: federation.ServiceKey{Hostname: "web", Namespace: "other"}}}
	v := viewOf(node.Facet{Scope: node.ScopeRoutes, Namespace: "shop", Domain: "shop.svc.cluster.local"})
	claimDomains(v, []*Host{external, own}, func(domain string, _ uint16) []string { return []string{domain} })
	if got := strings.Join(own.Domains, " "); got != "web.shop.svc.cluster.local web web.shop.svc web.shop" {
		t.Errorf("the own host has %q", got)
	}
	if len(external.Domains) != 0 || len(v.Reasons) != 1 {
		t.Errorf("the other host has %q, and the reasons are %v", external.Domains, v.Reasons)
	}
}

func viewOf(f node.Facet) *facet.View { return facet.Open(f, federation.Empty().Read()) }
