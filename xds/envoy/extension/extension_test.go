package extension_test

import (
	"cmp"
	"encoding/json"
	"strings"
	"testing"

	mesh "istio.io/api/mesh/v1alpha1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/extension"
	"isthmus.dev/isthmus/xds/envoy/facettest"
	"isthmus.dev/isthmus/xds/envoy/node"
)

var everyone = node.Facet{Scope: node.ScopePublic}

// outcome is the text, or the error where there is one.
func outcome(text string, err error) string {
	if err != nil {
		return err.Error()
	}
	return text
}

// TestNamesOfProviders: policies name providers of MeshSettings.
func TestNamesOfProviders(t *testing.T) {
	const zipkin = `{"name": "traces", "zipkin": {"service": "zipkin.obs", "port": 9411}}`
	for name, test := range map[string]struct {
		providers string // of MeshSettings; empty: there are none
		named     string
		want      string // the service of a zipkin, or the error
	}{
		"the provider":                 {zipkin, "traces", "zipkin.obs"},
		"another name":                 {zipkin, "logs", `MeshSettings have no provider "logs" in extensionProviders`},
		"another case":                 {zipkin, "Traces", `MeshSettings have no provider "Traces" in extensionProviders`},
		"no name":                      {zipkin, "", `MeshSettings have no provider "" in extensionProviders`},
		"no settings":                  {"", "traces", `MeshSettings have no provider "traces" in extensionProviders`},
		"one of two":                   {`{"name": "logs", "envoyFileAccessLog": {}}, ` + zipkin, "traces", "zipkin.obs"},
		"the first of one name":        {zipkin + `, {"name": "traces", "zipkin": {"service": "other.obs"}}`, "traces", "zipkin.obs"},
		"of another type":              {`{"name": "logs", "envoyFileAccessLog": {}}`, "logs", ""},
		"with fields of another Istio": {`{"name": "traces", "zipkin": {"service": "zipkin.obs", "later": 1}}`, "traces", "zipkin.obs"},
	} {
		t.Run(name, func(t *testing.T) {
			m := facettest.Mesh{}
			if test.providers != "" {
				m.Settings = settings(t, test.providers)
			}
			p, err := extension.Named(m.View(t, everyone), test.named)
			if got := outcome(p.GetZipkin().GetService(), err); got != test.want {
				t.Errorf("it is %q, want %q", got, test.want)
			}
		})
	}
	bad := facettest.Mesh{Settings: settings(t, `{"name": "traces", "zipkin": {"port": "none"}}`)}
	if p, err := extension.Named(bad.View(t, everyone), "traces"); err == nil {
		t.Errorf("a provider with a port that is not a number is read as %v", p)
	}
}

func settings(t *testing.T, providers string) *federation.MeshSettings {
	t.Helper()
	s := &federation.MeshSettings{}
	if err := json.Unmarshal([]byte(`{"extensionProviders": [`+providers+`]}`), s); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestServersOfProviders: proxies reach a provider by the cluster that they have for requests to its service.
func TestServersOfProviders(t *testing.T) {
	ports := []federation.Port{facettest.Port(9411, federation.HTTP), facettest.Port(53, federation.UDP)}
	has := func(name string, shard federation.Shard) facettest.Service {
		return facettest.Service{Name: name, Cluster: "c1", Shard: shard}
	}
	m := facettest.Mesh{Services: []facettest.Service{
		has("obs/zipkin.obs", federation.Shard{Ports: ports}),
		has("obs/hidden.obs", federation.Shard{Ports: ports, ExportTo: []string{"."}}),
		has("bank/shared.com", federation.Shard{Ports: ports}),
		has("shop/shared.com", federation.Shard{Ports: ports}),
		has("shop/alias.shop", federation.Shard{Ports: ports, ExternalName: "zipkin.obs"}),
		has("shop/bare.shop", federation.Shard{ExternalName: "zipkin.obs"}),
		has("shop/far.shop", federation.Shard{Ports: ports, ExternalName: "zipkin.example.com"}),
		has("bank/mixed.com", federation.Shard{}),
		has("shop/mixed.com", federation.Shard{Ports: ports, ExternalName: "zipkin.obs"}),
		has("shop/loop.shop", federation.Shard{Ports: ports, ExternalName: "mixed.com"}),
	}}
	for name, test := range map[string]struct {
		service string
		port    uint32     // 0: 9411
		facet   node.Facet // of no scope: everyone's
		want    string     // CLUSTER as HOST, or the error
	}{
		"a service":                   {service: "zipkin.obs", want: "outbound|9411||zipkin.obs as zipkin.obs"},
		"of its namespace":            {service: "obs/zipkin.obs", want: "outbound|9411||zipkin.obs as zipkin.obs"},
		"of another namespace":        {service: "shop/zipkin.obs", want: `zipkin.obs is that of namespace "obs" for this proxy, not of "shop"`},
		"in upper case":               {service: "obs/Zipkin.OBS", want: "outbound|9411||zipkin.obs as zipkin.obs"},
		"no service":                  {service: "none.obs", want: "none.obs is not a service that this proxy sees"},
		"no port":                     {service: "zipkin.obs", port: 80, want: "zipkin.obs has no TCP port 80"},
		"a port for datagrams":        {service: "zipkin.obs", port: 53, want: "zipkin.obs has no TCP port 53"},
		"a number that is not a port": {service: "zipkin.obs", port: 1<<16 + 9411, want: "zipkin.obs has no TCP port 65535"},
		"hidden":                      {service: "hidden.obs", want: "hidden.obs is not a service that this proxy sees"},
		"hidden, in its namespace": {
			service: "hidden.obs", facet: node.Facet{Scope: node.ScopePrivate, Namespace: "obs"}, want: "outbound|9411||hidden.obs as hidden.obs",
		},
		"of the first namespace":   {service: "bank/shared.com", want: "outbound|9411||shared.com as shared.com"},
		"of a namespace after it":  {service: "shop/shared.com", want: `shared.com is that of namespace "bank" for this proxy, not of "shop"`},
		"another name":             {service: "alias.shop", want: "outbound|9411||zipkin.obs as alias.shop"},
		"another name's namespace": {service: "shop/alias.shop", want: "outbound|9411||zipkin.obs as alias.shop"},
		"not its service's":        {service: "obs/alias.shop", want: `alias.shop is that of namespace "shop" for this proxy, not of "obs"`},
		"another name at no port":  {service: "alias.shop", port: 80, want: "zipkin.obs has no TCP port 80"},
		"another name, no ports":   {service: "shop/bare.shop", want: "outbound|9411||zipkin.obs as bare.shop"},
		"a name outside the mesh":  {service: "far.shop", want: "outbound|9411||far.shop as far.shop"},
		"a name of other names":    {service: "loop.shop", want: "loop.shop leads over mixed.com to other names only"},
		"another's name, no ports": {service: "obs/bare.shop", want: `bare.shop is that of namespace "shop" for this proxy, not of "obs"`},
	} {
		t.Run(name, func(t *testing.T) {
			f, port := test.facet, cmp.Or(test.port, 9411)
			if f.Scope == 0 {
				f = everyone
			}
			provider := &mesh.MeshConfig_ExtensionProvider_ZipkinTracingProvider{Service: test.service, Port: port}
			at, err := extension.ServerOf(m.View(t, f), provider)
			got := strings.TrimPrefix(outcome(at.Cluster+" as "+at.Host, err), "the provider's service ")
			if got != test.want || err == nil && uint32(at.Port) != port {
				t.Errorf("port %d of it is %s at port %d, want %s", port, got, at.Port, test.want)
			}
		})
	}
}
