package destination_test

import (
	"fmt"
	"strings"
	"testing"

	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/destination"
	"isthmus.dev/isthmus/xds/envoy/facettest"
	"isthmus.dev/isthmus/xds/envoy/node"
)

const web = "outbound|80||web.shop.svc.cluster.local"

// shop has a service with two ports in the cluster c1.
func shop(rules ...string) facettest.Mesh {
	return facettest.Mesh{Rules: rules, Services: []facettest.Service{{
		Name: "shop/web.shop.svc.cluster.local", Cluster: "c1",
		Shard: federation.Shard{Ports: []federation.Port{facettest.Port(80, federation.HTTP), facettest.Port(443, federation.TLS)}},
	}}}
}

// inShop are sidecars of the namespace, which see its rules.
var inShop = node.Facet{Scope: node.ScopePublic}

// settings are those of a policy that differ from row to row.
func settings(p *networking.TrafficPolicy) string {
	var words []string
	if lb := p.GetLoadBalancer(); lb != nil {
		words = append(words, lb.GetSimple().String())
	}
	if n := p.GetConnectionPool().GetTcp().GetMaxConnections(); n > 0 {
		words = append(words, fmt.Sprint(n, " connections"))
	}
	if o := p.GetOutlierDetection(); o != nil {
		words = append(words, fmt.Sprint(o.GetConsecutive_5XxErrors().GetValue(), " errors"))
	}
	if tls := p.GetTls(); tls != nil {
		words = append(words, tls.GetMode().String())
	}
	if tunnel := p.GetTunnel(); tunnel != nil {
		words = append(words, "tunnel to "+tunnel.GetTargetHost())
	}
	return strings.Join(words, ", ")
}

// TestPolicies: a subset's field replaces the rule's, and settings of a port replace all that a port can have.
func TestPolicies(t *testing.T) {
	const host = " web.shop.svc.cluster.local "
	const port80, port443 = "outbound|80||web.shop.svc.cluster.local", "outbound|443||web.shop.svc.cluster.local"
	const v1 = "outbound|80|v1|web.shop.svc.cluster.local"
	whole := `shop/a` + host + `{"trafficPolicy": {"loadBalancer": {"simple": "RANDOM"}, "connectionPool": {"tcp": {"maxConnections": 7}}}`
	for name, test := range map[string]struct {
		rules []string
		name  string
		want  string
	}{
		"no rule":                   {nil, port80, ""},
		"a rule":                    {[]string{whole + `}`}, port80, "RANDOM, 7 connections"},
		"a subset without a policy": {[]string{whole + `, "subsets": [{"name": "v1"}]}`}, v1, "RANDOM, 7 connections"},
		"a field of a subset": {
			[]string{whole + `, "subsets": [{"name": "v1", "trafficPolicy": {"loadBalancer": {"simple": "ROUND_ROBIN"}}}]}`}, v1, "ROUND_ROBIN, 7 connections",
		},
		"the whole beside a subset": {
			[]string{whole + `, "subsets": [{"name": "v1", "trafficPolicy": {"loadBalancer": {"simple": "ROUND_ROBIN"}}}]}`}, port80, "RANDOM, 7 connections",
		},
		"settings of a port": {
			[]string{`shop/a` + host + `{"trafficPolicy": {"loadBalancer": {"simple": "RANDOM"}, "connectionPool": {"tcp": {"maxConnections": 7}},
				"portLevelSettings": [{"port": {"number": 443}, "tls": {"mode": "SIMPLE"}}]}}`}, port443, "SIMPLE",
		},
		"another port": {
			[]string{`shop/a` + host + `{"trafficPolicy": {"loadBalancer": {"simple": "RANDOM"},
				"portLevelSettings": [{"port": {"number": 443}, "tls": {"mode": "SIMPLE"}}]}}`}, port80, "RANDOM",
		},
		"what a port cannot have stays": {
			[]string{`shop/a` + host + `{"trafficPolicy": {"tunnel": {"targetHost": "x.com", "targetPort": 1},
				"portLevelSettings": [{"port": {"number": 80}, "tls": {"mode": "SIMPLE"}}]}}`}, port80, "SIMPLE, tunnel to x.com",
		},
		"a subset over settings of a port": {
			[]string{`shop/a` + host + `{"trafficPolicy": {"portLevelSettings": [{"port": {"number": 80}, "loadBalancer": {"simple": "RANDOM"}}]},
				"subsets": [{"name": "v1", "trafficPolicy": {"outlierDetection": {"consecutive5xxErrors": 3}}}]}`}, v1, "RANDOM, 3 errors",
		},
		"a port of a subset": {
			[]string{whole + `, "subsets": [{"name": "v1", "trafficPolicy": {"portLevelSettings": [{"port": {"number": 80}, "tls": {"mode": "DISABLE"}}]}}]}`}, v1, "DISABLE",
		},
		"the older of two":  {[]string{whole + `}`, `shop/b` + host + `{"trafficPolicy": {"loadBalancer": {"simple": "ROUND_ROBIN"}}}`}, port80, "RANDOM, 7 connections"},
		"subsets of two":    {[]string{`shop/a` + host + `{"subsets": [{"name": "v2"}]}`, `shop/b` + host + `{"subsets": [{"name": "v1"}], "trafficPolicy": {"loadBalancer": {"simple": "RANDOM"}}}`}, v1, "RANDOM"},
		"the exact host":    {[]string{`shop/a *.shop.svc.cluster.local {"trafficPolicy": {"loadBalancer": {"simple": "RANDOM"}}}`, `shop/b` + host + `{}`}, port80, ""},
		"a wildcard":        {[]string{`shop/a *.shop.svc.cluster.local {"trafficPolicy": {"loadBalancer": {"simple": "RANDOM"}}}`}, port80, "RANDOM"},
		"the root's":        {[]string{`istio-system/a` + host + `{"trafficPolicy": {"loadBalancer": {"simple": "RANDOM"}}}`}, port80, "RANDOM"},
		"another namespace": {[]string{`bank/a` + host + `{"trafficPolicy": {"loadBalancer": {"simple": "RANDOM"}}}`}, port80, ""},
	} {
		t.Run(name, func(t *testing.T) {
			d, ok := destination.Of(shop(test.rules...).View(t, inShop), test.name)
			if got := settings(d.Policy); !ok || got != test.want {
				t.Errorf("found %t, with %q, want %q", ok, got, test.want)
			}
		})
	}
}

func TestNamesThatMeanNothing(t *testing.T) {
	mesh := shop(`shop/a web.shop.svc.cluster.local {"subsets": [{"name": "v1"}]}`)
	mesh.Services = append(mesh.Services,
		facettest.Service{Name: "shop/hidden.shop.svc.cluster.local", Cluster: "c1", Shard: federation.Shard{
			Ports: []federation.Port{facettest.Port(80, federation.HTTP)}, ExportTo: []string{"."},
		}},
		facettest.Service{Name: "shop/alias.shop.svc.cluster.local", Cluster: "c1", Shard: federation.Shard{
			Ports: []federation.Port{facettest.Port(80, federation.HTTP)}, ExternalName: "web.shop.svc.cluster.local",
		}},
		facettest.Service{Name: "shop/datagrams.shop.svc.cluster.local", Cluster: "c1", Shard: federation.Shard{
			Ports: []federation.Port{facettest.Port(80, federation.UDP)},
		}},
	)
	for name, want := range map[string]bool{
		web: true,
		"outbound|80|v1|web.shop.svc.cluster.local":     true,
		"outbound|80|v2|web.shop.svc.cluster.local":     false,
		"outbound|81||web.shop.svc.cluster.local":       false,
		"outbound|80||nobody.shop.svc.cluster.local":    false,
		"outbound|80||hidden.shop.svc.cluster.local":    false,
		"outbound|80||alias.shop.svc.cluster.local":     false,
		"outbound|80||datagrams.shop.svc.cluster.local": false,
		"outbound|80|web.shop.svc.cluster.local":        false,
		"inbound|80||":                                  false,
		"BlackHoleCluster":                              false,
		"":                                              false,
	} {
		if _, ok := destination.Of(mesh.View(t, inShop), name); ok != want {
			t.Errorf("%q is a destination: %t, want %t", name, ok, want)
		}
	}
}

func TestServers(t *testing.T) {
	external := func(protocol federation.Protocol, rules ...string) facettest.Mesh {
		return facettest.Mesh{Rules: rules, Services: []facettest.Service{{
			Name: "shop/api.example.com", Provider: federation.External,
			Shard: federation.Shard{MeshExternal: true, Ports: []federation.Port{facettest.Port(443, protocol)}, ServiceAccounts: []string{"declared.example.com"}},
		}}}
	}
	rule := `shop/a api.example.com {"trafficPolicy": {"tls": {"mode": "SIMPLE"`
	for name, test := range map[string]struct {
		mesh    facettest.Mesh
		http    bool
		nothing bool // the service declares no names
		want    string
	}{
		"names that the service declares": {mesh: external(federation.HTTP, rule+`}}}`), http: true, want: "asks for , verifies [declared.example.com]"},
		"names of the rule": {
			mesh: external(federation.HTTP, rule+`, "sni": "b.com", "subjectAltNames": ["a.com"]}}}`), http: true, want: "asks for b.com, verifies [a.com]",
		},
		"requests without any name":        {mesh: external(federation.HTTP, rule+`}}}`), http: true, nothing: true, want: "asks for , verifies []"},
		"connections without any name":     {mesh: external(federation.TCP, rule+`}}}`), nothing: true, want: "asks for api.example.com, verifies [api.example.com]"},
		"connections that ask for another": {mesh: external(federation.TCP, rule+`, "sni": "b.com"}}}`), nothing: true, want: "asks for b.com, verifies [b.com]"},
		"HTTP/2":                           {mesh: external(federation.HTTP2, rule+`}}}`), http: true, want: "asks for , verifies [declared.example.com], HTTP/2"},
		"an upgrade to HTTP/2": {
			mesh: external(federation.HTTP, `shop/a api.example.com {"trafficPolicy": {"tls": {"mode": "SIMPLE"}, "connectionPool": {"http": {"h2UpgradePolicy": "UPGRADE"}}}}`),
			http: true, want: "asks for , verifies [declared.example.com], HTTP/2",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if test.nothing {
				test.mesh.Services[0].ServiceAccounts = nil
			}
			d, ok := destination.Of(test.mesh.View(t, inShop), "outbound|443||api.example.com")
			if !ok {
				t.Fatal("there is no destination")
			}
			server := d.Server(test.http)
			got := fmt.Sprintf("asks for %s, verifies %v", server.SNI, server.Names)
			if server.Http2 {
				got += ", HTTP/2"
			}
			if got != test.want {
				t.Errorf("%s\nwant %s", got, test.want)
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	tls := func(settings string) string {
		return `shop/a web.shop.svc.cluster.local {"trafficPolicy": {"tls": {` + settings + `}}}`
	}
	identity, gateway := inShop, node.Facet{Scope: node.ScopePublic, Balanced: true}
	identity.Identity = true
	for name, test := range map[string]struct {
		rule  string
		facet node.Facet
		want  string
	}{
		"plain text":                      {tls(`"mode": "DISABLE"`), inShop, ""},
		"SIMPLE":                          {tls(`"mode": "SIMPLE"`), inShop, ""},
		"the mesh, with an identity":      {tls(`"mode": "ISTIO_MUTUAL"`), identity, ""},
		"the mesh, without one":           {tls(`"mode": "ISTIO_MUTUAL"`), inShop, "tls.mode ISTIO_MUTUAL needs an identity of the mesh at both ends"},
		"MUTUAL without a key":            {tls(`"mode": "MUTUAL", "clientCertificate": "/c"`), inShop, "tls.mode MUTUAL needs credentialName, or"},
		"a Secret, of sidecars":           {tls(`"mode": "SIMPLE", "credentialName": "web"`), inShop, "tls.credentialName is for gateways, and for the sidecars that a workloadSelector"},
		"a Secret, of gateways":           {tls(`"mode": "SIMPLE", "credentialName": "web"`), gateway, ""},
		"a Secret's name":                 {tls(`"mode": "SIMPLE", "credentialName": "Web/"`), gateway, `tls.credentialName: "Web/" is not the name of a secret`},
		"a Secret that has no effect":     {tls(`"mode": "DISABLE", "credentialName": "web"`), inShop, ""},
		"authorities that cannot be read": {tls(`"mode": "SIMPLE", "caCertificates": "-----BEGIN X"`), inShop, "tls.caCertificates: there is no certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			v := shop(test.rule).View(t, test.facet)
			d, ok := destination.Of(v, web)
			if !ok {
				t.Fatal("there is no destination")
			}
			why := d.Refusal()
			if (why == "") != (test.want == "") || !strings.Contains(why, test.want) {
				t.Errorf("refused with %q, want %q", why, test.want)
			}
			if why == "" {
				return
			}
			destination.Refuse(v, d, why)
			want := "shop/a: trafficPolicy." + why + "; until then nothing is sent to " + web
			if got := v.Reasons[len(v.Reasons)-1]; !strings.HasSuffix(got.Message, want) || got.Cause != d.Rule() || d.EDS() {
				t.Errorf("the reason is %q of %s, and endpoints come by EDS: %t", got.Message, got.Cause, d.EDS())
			}
		})
	}
}

// TestWaysOfChoosing: who chooses the endpoint, and how endpoints come.
func TestWaysOfChoosing(t *testing.T) {
	passthrough := `shop/a web.shop.svc.cluster.local {"trafficPolicy": {"loadBalancer": {"simple": "PASSTHROUGH"}}}`
	gateway := node.Facet{Scope: node.ScopePublic, Balanced: true}
	for name, test := range map[string]struct {
		resolution federation.Resolution
		rules      []string
		facet      node.Facet
		want       string
	}{
		"known endpoints":                 {federation.ClientSideLB, nil, inShop, "EDS"},
		"pods by their address":           {federation.Passthrough, nil, inShop, "the caller"},
		"a rule lets choose":              {federation.ClientSideLB, []string{passthrough}, inShop, "the caller"},
		"DNS":                             {federation.DNSLB, nil, inShop, "Envoy"},
		"gateways choose among pods":      {federation.Passthrough, nil, gateway, "EDS"},
		"gateways choose despite a rule":  {federation.ClientSideLB, []string{passthrough}, gateway, "EDS"},
		"gateways have sidecars' cluster": {federation.ClientSideLB, nil, gateway, "nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			mesh := shop(test.rules...)
			mesh.Services[0].Resolution = test.resolution
			d, ok := destination.Of(mesh.View(t, test.facet), web)
			got := "Envoy"
			switch {
			case !ok:
				got = "nothing"
			case d.Passthrough():
				got = "the caller"
			case d.EDS():
				got = "EDS"
			}
			if got != test.want {
				t.Errorf("%s chooses, want %s", got, test.want)
			}
		})
	}
}

// TestNamesOfMutualTLS: two destinations never ask for one name.
func TestNamesOfMutualTLS(t *testing.T) {
	identity := inShop
	identity.Identity = true
	mesh := shop(`shop/a web.shop.svc.cluster.local {"subsets": [{"name": "v1"}, {"name": "V1"}, {"name": "v2"}]}`)
	for name, want := range map[string]string{
		"":   "outbound_.80_._.web.shop.svc.cluster.local",
		"v1": "outbound_.80_.v1_.web.shop.svc.cluster.local",
		"V1": `the subset "v1"`,
		"v2": "outbound_.80_.v2_.web.shop.svc.cluster.local",
	} {
		d, ok := destination.Of(mesh.View(t, identity), "outbound|80|"+name+"|web.shop.svc.cluster.local")
		got := d.SNI
		if d.Taken != "" {
			got = d.Taken
		}
		if !ok || got != want || d.EDS() != (d.Taken == "") {
			t.Errorf("the subset %q asks for %q, want %q; it has endpoints: %t", name, got, want, d.EDS())
		}
	}
	d, _ := destination.Of(mesh.View(t, identity), "outbound|80|V1|web.shop.svc.cluster.local")
	reason := d.SNIConflict(d.SNI, d.Taken, federation.ObjectKey{})
	if !strings.Contains(reason.Message, `the subset "V1" of`) || !strings.Contains(reason.Message, "give one of them another name") {
		t.Errorf("the reason is %q", reason.Message)
	}
}

func TestProtocols(t *testing.T) {
	never, silent := false, &federation.MeshSettings{}
	silent.ProtocolDetection.Outbound = &never
	for name, test := range map[string]struct {
		port     federation.Port
		facet    node.Facet
		settings *federation.MeshSettings
		want     string
	}{
		"declared":   {port: facettest.Port(80, federation.HTTP2), facet: inShop, want: "HTTP2 false"},
		"undeclared": {port: federation.Port{Name: "p", Number: 80, Protocol: federation.TCP, Undeclared: true}, facet: inShop, want: "HTTP true"},
		"undeclared, to gateways": {
			port: federation.Port{Name: "p", Number: 80, Protocol: federation.TCP, Undeclared: true}, facet: node.Facet{Scope: node.ScopePublic, Balanced: true}, want: "HTTP false",
		},
		"undeclared, to gRPC": {port: federation.Port{Name: "p", Number: 80, Protocol: federation.TCP, Undeclared: true}, facet: node.Facet{Scope: node.ScopePublic, GRPC: true}, want: "TCP false"},
		"nothing is detected": {
			port: federation.Port{Name: "p", Number: 80, Protocol: federation.TCP, Undeclared: true}, facet: inShop,
			settings: silent, want: "TCP false",
		},
	} {
		t.Run(name, func(t *testing.T) {
			mesh := shop()
			mesh.Services[0].Ports, mesh.Settings = []federation.Port{test.port}, test.settings
			d, ok := destination.Of(mesh.View(t, test.facet), web)
			speaks, asCaller := d.Requests()
			if got := fmt.Sprintf("%s %t", speaks, asCaller); !ok || got != test.want {
				t.Errorf("requests are in %s, want %s", got, test.want)
			}
		})
	}
}

// TestG118UpgradesOfUndeclaredPorts: a rule that upgrades requests says what a detected port speaks.
// Sidecars and gateways send HTTP/2 there, and the handshake of TLS offers it.
func TestG118UpgradesOfUndeclaredPorts(t *testing.T) {
	gateway := node.Facet{Scope: node.ScopePublic, Balanced: true}
	for name, test := range map[string]struct {
		pool  string
		facet node.Facet
		want  string
	}{
		"no rule of HTTP":       {`{}`, inShop, "HTTP as the caller true, HTTP/2 false"},
		"upgraded":              {`{"h2UpgradePolicy": "UPGRADE"}`, inShop, "HTTP as the caller false, HTTP/2 true"},
		"not upgraded":          {`{"h2UpgradePolicy": "DO_NOT_UPGRADE"}`, inShop, "HTTP as the caller true, HTTP/2 false"},
		"as the client":         {`{"h2UpgradePolicy": "UPGRADE", "useClientProtocol": true}`, inShop, "HTTP as the caller true, HTTP/2 false"},
		"upgraded, of gateways": {`{"h2UpgradePolicy": "UPGRADE"}`, gateway, "HTTP as the caller false, HTTP/2 true"},
	} {
		t.Run(name, func(t *testing.T) {
			mesh := shop(`shop/a web.shop.svc.cluster.local {"trafficPolicy": {"connectionPool": {"http": ` + test.pool + `}}}`)
			mesh.Services[0].Ports = []federation.Port{{Name: "p", Number: 80, Protocol: federation.TCP, Undeclared: true}}
			d, ok := destination.Of(mesh.View(t, test.facet), web)
			speaks, asCaller := d.Requests()
			got := fmt.Sprintf("%s as the caller %t, HTTP/2 %t", speaks, asCaller, d.Client().Http2)
			if !ok || got != test.want || d.Server(false).Http2 != d.Client().Http2 {
				t.Errorf("%s, TLS offers HTTP/2: %t, want %s", got, d.Server(false).Http2, test.want)
			}
		})
	}
}
