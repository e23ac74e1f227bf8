package envoy_test

import (
	"fmt"
	"testing"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"google.golang.org/protobuf/proto"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy"
)

const tenantObjects = `
kind: ServiceEntry
metadata: {name: db, namespace: shop}
spec: {hosts: [db.example.com], addresses: [240.0.1.0/24], ports: [{number: 9000, name: tcp, protocol: TCP}]}
---
kind: ServiceEntry
metadata: {name: other, namespace: shop}
spec: {hosts: [other.example.com], addresses: [240.0.2.0/24], ports: [{number: 9000, name: tcp, protocol: TCP}]}
---
kind: ServiceEntry
metadata: {name: api, namespace: shop}
spec: {hosts: [api.example.com], ports: [{number: 80, name: http, protocol: HTTP}]}
---
kind: DestinationRule
metadata: {name: db, namespace: shop}
spec: {host: db.example.com, trafficPolicy: {connectionPool: {tcp: {idleTimeout: 7s}}}}
---
kind: DestinationRule
metadata: {name: subsets, namespace: shop}
spec: {host: other.example.com, subsets: [{name: v1, labels: {version: v1}}]}
---
kind: DestinationRule
metadata: {name: web, namespace: shop}
spec: {host: web.shop.svc.cluster.local, trafficPolicy: {loadBalancer: {consistentHash: {httpHeaderName: x-user}}}}
---
kind: VirtualService
metadata: {name: web, namespace: shop}
spec: {hosts: [web.shop.svc.cluster.local], http: [{route: [{destination: {host: web.shop.svc.cluster.local}}]}]}
---
kind: Gateway
metadata: {name: a, namespace: shop}
spec:
  selector: {istio: ingress}
  servers: [{port: {number: 8443, name: https, protocol: HTTPS}, hosts: [a.example.com], tls: {mode: SIMPLE, credentialName: a}}]
---
kind: Gateway
metadata: {name: b, namespace: shop}
spec:
  selector: {istio: ingress}
  servers: [{port: {number: 8443, name: https, protocol: HTTPS}, hosts: [b.example.com], tls: {mode: SIMPLE, credentialName: b}}]
`

// partsOf are the titles of the resource's parts, each with the objects that it is made of.
func partsOf(t *testing.T, kind envoy.Type, n envoy.Node, w *fixture, name string) map[string]string {
	t.Helper()
	m, _ := find[proto.Message](t, build(t, kind, n, w.snapshot), name)
	body, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	forms, err := envoy.Forms(kind, body)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	var names []string
	for _, form := range forms {
		names = append(names, form.Part)
	}
	for _, f := range envoy.Facets(kind, n, w.snapshot) {
		for part, objects := range envoy.Causes(kind, name, f, w.snapshot.Read(), names) {
			text := ""
			for _, o := range objects {
				text += o.Kind + "/" + o.Name + " "
			}
			found[envoy.PartTitle(kind, name, part)] = text
		}
	}
	return found
}

// TestR05PartsAreMadeOfTheirOwnObjects: what a proxy refuses is traced to the objects of the part and to no other object of
// the port.
func TestR05PartsAreMadeOfTheirOwnObjects(t *testing.T) {
	w := newFixture().attach("c1", "").say("c1", webKey, httpOn(80)).config(t, tenantObjects)
	for host, cidr := range map[federation.Hostname]string{"db.example.com": "240.0.1.0/24", "other.example.com": "240.0.2.0/24"} {
		w.say("c1", federation.ServiceKey{Hostname: host, Namespace: "shop"}, tcp(9000, federation.TCP, cidr))
	}
	w.say("c1", federation.ServiceKey{Hostname: "api.example.com", Namespace: "shop"}, httpOn(80))
	for _, c := range []struct {
		kind envoy.Type
		node envoy.Node
		name string
		want map[string]string
	}{
		{envoy.ListenerType, client(t), "0.0.0.0_9000", map[string]string{
			`filter chain to 240.0.1.0/24 of listener "0.0.0.0_9000"`: "DestinationRule/db ",
			`filter chain to 240.0.2.0/24 of listener "0.0.0.0_9000"`: "ServiceEntry/other ",
			`the default filter chain of listener "0.0.0.0_9000"`:     "",
		}},
		{envoy.RouteType, client(t), "80", map[string]string{
			`virtual host "web.shop.svc.cluster.local:80" of route configuration "80"`: "DestinationRule/web VirtualService/web ",
			`virtual host "api.example.com:80" of route configuration "80"`:            "ServiceEntry/api ",
			`virtual host "allow_any" of route configuration "80"`:                     "",
		}},
		{envoy.ListenerType, ingress(t, "10.0.0.9"), "0.0.0.0_8443", map[string]string{
			`filter chain for a.example.com of listener "0.0.0.0_8443"`: "Gateway/a ",
			`filter chain for b.example.com of listener "0.0.0.0_8443"`: "Gateway/b ",
		}},
	} {
		found := partsOf(t, c.kind, c.node, w, c.name)
		delete(found, envoy.PartTitle(c.kind, c.name, ""))
		for title, want := range c.want {
			if got, there := found[title]; !there || got != want {
				t.Errorf("%s is made of %q, want %q", title, got, want)
			}
		}
		if len(found) != len(c.want) {
			t.Errorf("%s has the parts %q", c.name, found)
		}
	}
}

// TestR05TitlesOfFilterChains: they are short, and say what the chain is for.
func TestR05TitlesOfFilterChains(t *testing.T) {
	var hosts []string
	for i := range 9 {
		hosts = append(hosts, fmt.Sprintf("h%d.example.com", i))
	}
	for want, match := range map[string]*listenerv3.FilterChainMatch{
		`filter chain for h0.example.com, h1.example.com, h2.example.com and 6 more of listener "l"`: {
			ServerNames:       hosts,
			TransportProtocol: "tls",
		},
		`filter chain for TLS of listener "l"`: {TransportProtocol: "tls"},
		`filter chain for http/1.1, h2c of listener "l"`: {
			TransportProtocol:    "raw_buffer",
			ApplicationProtocols: []string{"http/1.1", "h2c"},
		},
		`filter chain of listener "l"`: {},
	} {
		if got := envoy.PartTitle(envoy.ListenerType, "l", partOf(t, match)); got != want {
			t.Errorf("the title is %s, want %s", got, want)
		}
	}
	if got, want := envoy.PartTitle(envoy.ListenerType, "l", partOf(t, nil)), `filter chain of listener "l"`; got != want {
		t.Errorf("the title of a chain without a match is %s, want %s", got, want)
	}
	if got := envoy.PartTitle(envoy.ClusterType, "outbound|80||web", ""); got != `cluster "outbound|80||web"` {
		t.Errorf("a cluster is %s", got)
	}
}

// partOf is the name of the filter chain of a listener that matches so.
func partOf(t *testing.T, match *listenerv3.FilterChainMatch) string {
	t.Helper()
	body, err := proto.Marshal(&listenerv3.Listener{Name: "l", FilterChains: []*listenerv3.FilterChain{{FilterChainMatch: match}}})
	if err != nil {
		t.Fatal(err)
	}
	forms, err := envoy.Forms(envoy.ListenerType, body)
	if err != nil || len(forms) != 2 {
		t.Fatalf("%v, %v", forms, err)
	}
	return forms[1].Part
}
