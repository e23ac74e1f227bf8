package envoy_test

import (
	"fmt"
	"testing"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/federationtest"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

// Everything that builders find is about an endpoint, of which explain tells, or about
// an object or a service, whose status shows it: no reason is lost.
func TestR24EveryReasonIsAboutSomething(t *testing.T) {
	codes := map[string]int{}
	check := func(name string, built map[resource.Type][]builtResource) {
		for _, all := range built {
			for _, r := range all {
				for _, reason := range r.reasons {
					codes[reason.Code]++
					if reason.Endpoint == nil && reason.Cause == (federation.ObjectKey{}) && reason.Service == (federation.ServiceKey{}) {
						t.Errorf("%s: %s: no object shows %s %s", name, r.name, reason.Code, reason.Message)
					}
				}
			}
		}
	}
	federationtest.Each(t, func(t *testing.T, s *federationtest.Scenario) {
		for _, proxy := range s.Proxies {
			check(t.Name()+" "+proxy.Name, buildAll(t, nodeOf(t, proxy), s.Snapshot()))
		}
	})
	check("names that are taken", buildAll(t, client(t), taken().snapshot))
	for _, code := range []string{
		resource.ReasonProxyless, resource.ReasonTLS, resource.ReasonRuleIgnored, resource.ReasonInvalidRule, resource.ReasonGatewayConflict,
		resource.ReasonNoDestination, resource.ReasonHostnameTaken, resource.ReasonDomainTaken, resource.ReasonVIPTaken,
	} {
		if codes[code] == 0 {
			t.Errorf("no scenario has a %s", code)
		}
	}
}

// taken has services that want the same hostname, short name and VIP.
func taken() *fixture {
	w := newFixture().attach("c1", "")
	for i, service := range []federation.ServiceKey{
		{Hostname: "same.example.com", Namespace: "a"},
		{Hostname: "same.example.com", Namespace: "b"},
		webKey,
		{Hostname: "web.shop", Namespace: "shop"},
	} {
		w.say("c1", service, web(at(fmt.Sprintf("10.0.0.%d", i+1), 8080)))
	}
	for i, host := range []federation.Hostname{"a.example.org", "b.example.org"} {
		db := tcp(5432, federation.TCP)
		db.VIPs, db.Endpoints = vips("192.0.2.1/32"), external(5432, federation.TCP, fmt.Sprintf("10.0.1.%d", i+1)).Endpoints
		w.say("c1", key(host), db)
	}
	return w
}
