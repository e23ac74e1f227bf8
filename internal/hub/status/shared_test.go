package status_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/apply"
)

// TestR05ARejectionIsAFindingOfAllThatShareTheHost: a proxy rejects a virtual host that several objects
// make. Each of them has the finding, which names the others.
func TestR05ARejectionIsAFindingOfAllThatShareTheHost(t *testing.T) {
	api, virtualService := federation.GatewayAPI, federation.VirtualServiceKind
	gateway := subject{federation.GatewayKind.Key("shop", "first"), []string{gatewayOf("edge", 8081)}}
	const refused = `"headers":{"request":{"set":{"x-refused":"1"}}},`
	ofGateway := func(namespace, path, headers string) subject {
		return subject{virtualService.Key(namespace, "shared"), []string{`{"hosts":["web.example"],"gateways":["shop/first"],"http":[{` +
			`"match":[{"uri":{"prefix":"` + path + `"}}],` + headers + `"route":[{"destination":{"host":"web.shop.svc.cluster.local"}}]}]}`}}
	}
	route := func(name, filters string) subject {
		return subject{api.HTTPRoute.Key("shop", name), []string{`{"parentRefs":[{"name":"edge"}],"rules":[{"matches":[{"path":{"value":"/` +
			name + `"}}],` + filters + `"backendRefs":[{"name":"web","port":80}]}]}`}}
	}
	const filters = `"filters":[{"type":"RequestHeaderModifier","requestHeaderModifier":{"set":[{"name":"x-refused","value":"1"}]}}],`
	cases := []struct {
		name    string
		objects []subject
		field   string // of the last object
	}{
		{"HTTPRoutes of a listener", []subject{
			route("a", ""), route("b", filters),
			{api.Gateway.Key("shop", "edge"), []string{`{"gatewayClassName":"mesh","listeners":[{"name":"http","port":8080,"protocol":"HTTP"}]}`}},
		}, "spec.listeners[0]"},
		{"VirtualServices of a Gateway", []subject{ofGateway("shop", "/a", ""), ofGateway("team", "/b", refused)}, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := startHub(t)
				for _, e := range usual() {
					e.do(h)
				}
				h.connect(nodeIDs[2], nodes[nodeIDs[2]], true)
				h.apply(gateway.key, gateway.specs[0])
				for _, o := range c.objects {
					h.apply(o.key, o.specs[0])
				}
				settle()
				for i, of := range c.objects {
					found := h.Objects.Findings(h.snapshots.Latest(), h.Fleet.Latest(), of.key)
					at := slices.IndexFunc(found, func(f apply.Finding) bool { return f.Code == "REJECTED_BY_PROXY" })
					if at < 0 {
						t.Fatalf("%s has the findings %+v", of.key, found)
					}
					for _, other := range c.objects {
						if named := slices.Contains(found[at].Related, other.key); named != (other.key != of.key) {
							t.Errorf("%s of %s names %s: %t", found[at].Message, of.key, other.key, named)
						}
					}
					if !strings.Contains(found[at].Message, "this object and others") {
						t.Errorf("the finding of %s says %s", of.key, found[at].Message)
					}
					if i == len(c.objects)-1 && found[at].Field != c.field {
						t.Errorf("the finding of %s has the field %q", of.key, found[at].Field)
					}
				}
			})
		})
	}
}
