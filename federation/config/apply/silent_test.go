package apply_test

import (
	"strings"
	"testing"

	"isthmus.dev/isthmus/federation/config/apply"
)

const policies = `
apiVersion: security.istio.io/v1
kind: PeerAuthentication
metadata: {name: strict, namespace: shop}
spec: {mtls: {mode: STRICT}}
---
apiVersion: security.istio.io/v1
kind: PeerAuthentication
metadata: {name: open, namespace: shop}
spec: {mtls: {mode: PERMISSIVE}}
---
apiVersion: security.istio.io/v1
kind: PeerAuthentication
metadata: {name: port, namespace: shop}
spec: {selector: {matchLabels: {app: web}}, portLevelMtls: {"80": {mode: STRICT}}}
---
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: deny, namespace: shop}
spec: {}
---
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: attached, namespace: shop}
spec: {targetRefs: [{kind: Service, name: edge}]}
---
apiVersion: security.istio.io/v1
kind: RequestAuthentication
metadata: {name: jwt, namespace: shop}
spec: {targetRefs: [{kind: Service, name: edge}], jwtRules: [{issuer: "https://issuer.example.com"}]}
`

func TestR35PoliciesThatAreNotEnforcedAreFound(t *testing.T) {
	w := newFixture(t)
	r := w.must(policies)
	want := `NOT_ENFORCED AuthorizationPolicy shop/attached spec
RULE_IGNORED PeerAuthentication shop/strict spec
NOT_ENFORCED RequestAuthentication shop/jwt spec`
	if got := findings(r); got != want {
		t.Errorf("found\n%s\nwant\n%s", got, want)
	}
	for _, f := range r.Findings {
		if f.Severity != apply.Warning {
			t.Errorf("%s has severity %s", f.Key.Title(), f.Severity)
		}
	}
}

// tcpEntry is a service with a port whose name and protocol are given.
func tcpEntry(host string, ports string) string {
	return strings.Replace(external(host), "[{number: 80, name: http, protocol: HTTP}]", ports, 1)
}

func TestR30HTTPRoutesForAPortThatIsNotHTTPAreFound(t *testing.T) {
	routes := strings.Replace(rules[strings.Index(rules, "---\n"):], "gateways: [mesh, edge]", "", 1)
	for ports, want := range map[string]apply.Severity{
		"[{number: 80, name: web, protocol: TCP}]":                                                               apply.Warning,
		"[{number: 80, name: tcp-web, protocol: TCP}]":                                                           apply.Warning,
		"[{number: 80, name: http, protocol: HTTP}]":                                                             "",
		"[{number: 80, name: http, protocol: HTTP}, {number: 81, name: web, protocol: TCP}]":                     apply.Info,
		"[{number: 80, name: http, protocol: HTTP}, {number: 3306, name: mysql-store, protocol: MySQL}]":         "",
		"[{number: 80, name: http, protocol: HTTP}, {number: 9000, name: tcp-metrics, protocol: TCP}]":           "",
		"[{number: 80, name: http, protocol: HTTP}, {number: 443, name: https, protocol: HTTPS, targetPort: 1}]": "",
	} {
		w := newFixture(t)
		w.must(routes + "\n---\n" + tcpEntry("api.example.com", ports))
		var got apply.Severity
		for _, f := range apply.References(w.snapshots.Latest().Read(), routeKey("api")) {
			if f.Code == apply.PortNotHTTP && f.Field == "spec.hosts[0]" && f.Key == routeKey("api") {
				got = f.Severity
			}
		}
		if got != want {
			t.Errorf("%s: found %q, want %q", ports, got, want)
		}
	}
}

// TestR30RoutesForConnectionsThatNoPortTakesAreFound: tls routes are for ports that speak
// TLS, tcp routes for those that speak neither TLS nor HTTP.
func TestR30RoutesForConnectionsThatNoPortTakesAreFound(t *testing.T) {
	const routes = `
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: api, namespace: shop}
spec:
  hosts: [api.example.com]
  tls: [{match: [{sniHosts: [api.example.com]}], route: [{destination: {host: api.example.com}}]}]
  tcp: [{route: [{destination: {host: api.example.com}}]}]
---
`
	for ports, want := range map[string]string{
		"[{number: 443, name: tls, protocol: TLS}]":                                           "PORT_NOT_TCP VirtualService shop/api spec.tcp",
		"[{number: 443, name: https, protocol: HTTPS}, {number: 80, name: web}]":              "",
		"[{number: 3306, name: mysql, protocol: MySQL}]":                                      "PORT_NOT_TLS VirtualService shop/api spec.tls",
		"[{number: 80, name: http, protocol: HTTP}]":                                          "PORT_NOT_TCP VirtualService shop/api spec.tcp\nPORT_NOT_TLS VirtualService shop/api spec.tls",
		"[{number: 80, name: http, protocol: HTTP}, {number: 443, name: tls, protocol: TLS}]": "PORT_NOT_TCP VirtualService shop/api spec.tcp",
	} {
		w := newFixture(t)
		if got := findings(w.must(routes + tcpEntry("api.example.com", ports))); got != want {
			t.Errorf("%s: found\n%s\nwant\n%s", ports, got, want)
		}
	}
}

// TestK40RoutesForPortsWithoutAProtocol apply where proxies detect HTTP, and nowhere else.
func TestK40RoutesForPortsWithoutAProtocol(t *testing.T) {
	const routes = `
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: api, namespace: shop}
spec: {hosts: [api.example.com], http: [{route: [{destination: {host: api.example.com}}]}]}
---
`
	const off = `
---
apiVersion: isthmus.dev/v1
kind: MeshSettings
metadata: {name: default}
spec: {protocolDetection: {outbound: false}}
`
	const finding = "PORT_NOT_HTTP VirtualService shop/api spec.hosts[0]"
	undeclared, mail := "[{number: 8000, name: web}]", "[{number: 25, name: web}]"
	for _, c := range []struct{ ports, settings, want string }{{undeclared, "", ""}, {undeclared, off, finding}, {mail, "", finding}} {
		if got := findings(newFixture(t).must(routes + tcpEntry("api.example.com", c.ports) + c.settings)); got != c.want {
			t.Errorf("%s%s: found %q, want %q", c.ports, c.settings, got, c.want)
		}
	}
}

// TestR30AWildcardIsForTheServicesThatItCovers: where one of them speaks HTTP, the routes are
// for that one.
func TestR30AWildcardIsForTheServicesThatItCovers(t *testing.T) {
	const routes = `
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: all, namespace: shop}
spec: {hosts: ["*.example.com"], http: [{route: [{destination: {host: api.example.com}}]}]}
---
`
	plain := tcpEntry("api.example.com", "[{number: 80, name: web, protocol: TCP}]")
	if got := findings(newFixture(t).must(routes + plain)); got != "PORT_NOT_HTTP VirtualService shop/all spec.hosts[0]" {
		t.Errorf("found %q", got)
	}
	if got := findings(newFixture(t).must(routes + plain + "\n---\n" + external("web.example.com"))); got != "" {
		t.Errorf("beside a service that speaks HTTP, found %q", got)
	}
}
