package route

import (
	"strings"
	"testing"
	"time"

	security "istio.io/api/security/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/node"
)

// TestWhichRequestsARouteTakes: the first route that matches has them, and each case names the field of a match.
func TestWhichRequestsARouteTakes(t *testing.T) {
	labelled := inShop
	labelled.Labels = "app=till"
	front := []string{"shop/front"}
	for name, test := range map[string]struct {
		facet    node.Facet // of no scope: sidecars of shop
		gateways []string
		match    string // what is in the braces of http.match
		want     bool
	}{
		"no field":                          {match: ``, want: true},
		"match.port":                        {match: `"port": 80`, want: true},
		"match.port, another":               {match: `"port": 81`},
		"match.sourceNamespace":             {match: `"sourceNamespace": "shop"`, want: true},
		"match.sourceNamespace, another":    {match: `"sourceNamespace": "bank"`},
		"match.sourceLabels":                {facet: labelled, match: `"sourceLabels": {"app": "till"}`, want: true},
		"match.sourceLabels, another":       {match: `"sourceLabels": {"app": "till"}`},
		"match.gateways, mesh":              {match: `"gateways": ["mesh"]`, want: true},
		"match.gateways, not mesh":          {match: `"gateways": ["front"]`},
		"match.gateways before the source":  {match: `"gateways": ["mesh"], "sourceNamespace": "bank"`, want: true},
		"at a gateway":                      {gateways: front, match: ``, want: true},
		"match.gateways, short":             {gateways: front, match: `"gateways": ["front"]`, want: true},
		"match.gateways, full":              {gateways: front, match: `"gateways": ["shop/front"]`, want: true},
		"match.gateways, a dot":             {gateways: front, match: `"gateways": ["./front"]`, want: true},
		"match.gateways of another":         {gateways: front, match: `"gateways": ["bank/front"]`},
		"match.gateways, mesh at a gateway": {gateways: front, match: `"gateways": ["mesh"]`},
		"match.gateways, one of two":        {gateways: front, match: `"gateways": ["mesh", "front"]`, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			f := test.facet
			if f.Scope == 0 {
				f = inShop
			}
			r := ruleOf(t, shop(t), f, `{"http": [{"match": [{`+test.match+`}], "route": [{"destination": {"host": "web"}}]}]}`)
			r.Gateways = test.gateways
			routes, err := r.Routes()
			if err != nil || (len(routes) == 1) != test.want {
				t.Errorf("%d routes take them, want %t (%v)", len(routes), test.want, err)
			}
		})
	}
}

// TestRoutesStandInOrder: as in the VirtualService, one for each match, up to the first that takes what is left.
func TestRoutesStandInOrder(t *testing.T) {
	const web, api = `"route": [{"destination": {"host": "web"}}]`, `"route": [{"destination": {"host": "api"}}]`
	inner := func(match string) string { return `shop/inner {"http": [{"match": [` + match + `], ` + api + `}]}` }
	for name, test := range map[string]struct {
		http   string
		others []string
		want   string
		noted  string
	}{
		"two matches":               {`{"match": [{"uri": {"exact": "/a"}}, {"headers": {"x": {"exact": "1"}}}], ` + web + `}`, nil, "/a: 80||web; / x=1: 80||web", ""},
		"behind one that takes all": {`{` + web + `}, {` + api + `}`, nil, "/: 80||web", ""},
		"behind a match of all":     {`{"match": [{"uri": {"prefix": "/"}}], ` + web + `}, {` + api + `}`, nil, "/: 80||web; /: 80||api", ""},
		"delegate": {
			`{"match": [{"uri": {"prefix": "/a"}}], "delegate": {"name": "inner"}}, {` + web + `}`,
			[]string{inner(`{"headers": {"x": {"exact": "1"}}}`)},
			"/a x=1: 80||api; /: 80||web", "",
		},
		"delegate.namespace": {
			`{"delegate": {"name": "inner", "namespace": "bank"}}, {` + web + `}`,
			[]string{`bank/inner {"http": [{"route": [{"destination": {"host": "web.shop.svc.cluster.local", "port": {"number": 80}}}]}]}`},
			"/: 80||web", "",
		},
		"delegate, whose short hosts are its namespace's": {
			`{"delegate": {"name": "inner", "namespace": "bank"}}`,
			[]string{`bank/inner {"http": [{` + web + `}]}`},
			"/: 503", "web.bank.svc.cluster.local is not a service",
		},
		"delegate, unknown":   {`{"delegate": {"name": "none"}}, {` + web + `}`, nil, "/: 80||web", "none, which does not exist"},
		"delegate with hosts": {`{"delegate": {"name": "inner"}}`, []string{`shop/inner {"hosts": ["a.com"], "http": [{` + api + `}]}`}, "", "which has hosts of its own"},
		"delegate.exportTo":   {`{"delegate": {"name": "inner", "namespace": "bank"}}`, []string{`bank/inner {"exportTo": ["."], "http": [{` + api + `}]}`}, "", "which is not exported to namespace shop"},
		"delegate outside": {
			`{"match": [{"uri": {"prefix": "/a"}}], "delegate": {"name": "inner"}}`, []string{inner(`{"uri": {"prefix": "/b"}}`)}, "", "its matches are not within those of http[0]",
		},
		"delegate of a delegate": {`{"delegate": {"name": "inner"}}`, []string{`shop/inner {"http": [{"delegate": {"name": "more"}}]}`}, "", "delegates cannot delegate"},
		"match.headers, claims, at sidecars": {
			`{"match": [{"headers": {"@request.auth.claims.a": {"exact": "1"}}}], ` + web + `}`, nil, "/ :method: 80||web", "only gateways match claims",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := ruleOf(t, shop(t, test.others...), inShop, `{"http": [`+test.http+`]}`)
			routes, err := r.Routes()
			if got := told(Messages(routes)); err != nil || got != test.want {
				t.Errorf("the routes are %q, want %q (%v)", got, test.want, err)
			}
			if noted := r.noted(); (noted == "") != (test.noted == "") || !strings.Contains(noted, test.noted) {
				t.Errorf("it says %q, want %q", noted, test.noted)
			}
		})
	}
}

// TestDelegatesAtGateways: short names of match.gateways are those of the namespace of the object that has the match.
func TestDelegatesAtGateways(t *testing.T) {
	for _, test := range []struct{ root, inner, want string }{
		{``, ``, "/: 418"},
		{`"gateways": ["front"]`, ``, "/: 418"},
		{`"gateways": ["mesh"]`, ``, ""},
		{``, `"gateways": ["front"]`, ""},
		{``, `"gateways": ["shop/front"]`, "/: 418"},
		{``, `"gateways": ["mesh"]`, ""},
	} {
		inner := `bank/inner {"http": [{"match": [{` + test.inner + `}], "directResponse": {"status": 418}}]}`
		r := ruleOf(t, shop(t, inner), inShop, `{"http": [{"match": [{`+test.root+`}], "delegate": {"name": "inner", "namespace": "bank"}}]}`)
		r.Gateways = []string{"shop/front"}
		routes, err := r.Routes()
		if got := told(Messages(routes)); err != nil || got != test.want {
			t.Errorf("with {%s} and {%s} the routes are %q, want %q (%v)", test.root, test.inner, got, test.want, err)
		}
	}
}

// TestClaimsAtGateways: match.headers of @request.auth.claims need a RequestAuthentication for the proxies.
func TestClaimsAtGateways(t *testing.T) {
	tokens := func(issuers ...*security.JWTRule) *federation.Object {
		key := federation.ObjectKey{Group: "security.istio.io", Kind: "RequestAuthentication", Namespace: "shop", Name: "tokens"}
		return &federation.Object{Key: key, Spec: &security.RequestAuthentication{JwtRules: issuers}, Names: []string{federation.WorkloadsName + "shop"}}
	}
	for name, test := range map[string]struct {
		object *federation.Object
		want   string
		noted  bool
	}{
		"verified":                 {tokens(&security.JWTRule{Issuer: "i"}), "/ claim: 80||web", false},
		"jwtRules, none":           {tokens(), "/ :method: 80||web", true},
		"no RequestAuthentication": {nil, "/ :method: 80||web", true},
	} {
		m := shop(t)
		if test.object != nil {
			m.Objects = append(m.Objects, test.object)
		}
		r := ruleOf(t, m, inShop, `{"http": [{"match": [{"headers": {"@request.auth.claims.a": {"exact": "1"}}}], "route": [{"destination": {"host": "web"}}]}]}`)
		r.Gateways = []string{"shop/front"}
		routes, err := r.Routes()
		if got := told(Messages(routes)); err != nil || got != test.want || len(r.View.Reasons) > 0 != test.noted {
			t.Errorf("%s: the routes are %q, want %q; it says %q (%v)", name, got, test.want, r.noted(), err)
		}
	}
}

// TestWhichVirtualServiceHasAHost: the one of the most specific of hosts, and of these the oldest.
func TestWhichVirtualServiceHasAHost(t *testing.T) {
	const rest = `"http": [{"directResponse": {"status": 200}}]}`
	for name, test := range map[string]struct {
		objects []string
		facet   node.Facet // of no scope: sidecars of shop
		want    string
		noted   string
	}{
		"hosts":                       {[]string{`shop/a {"hosts": ["web.shop.svc.cluster.local"], ` + rest}, node.Facet{}, "a", ""},
		"hosts, another":              {[]string{`shop/a {"hosts": ["api.shop.svc.cluster.local"], ` + rest}, node.Facet{}, "", ""},
		"hosts, a wildcard":           {[]string{`shop/a {"hosts": ["*.svc.cluster.local"], ` + rest}, node.Facet{}, "a", ""},
		"hosts, all":                  {[]string{`shop/a {"hosts": ["*"], ` + rest}, node.Facet{}, "", ""},
		"hosts, the most exact first": {[]string{`shop/a {"hosts": ["*.shop.svc.cluster.local"], ` + rest, `shop/b {"hosts": ["web.shop.svc.cluster.local"], ` + rest}, node.Facet{}, "b", ""},
		"the oldest first":            {[]string{`shop/b {"hosts": ["web.shop.svc.cluster.local"], ` + rest, `shop/a {"hosts": ["web.shop.svc.cluster.local"], ` + rest}, node.Facet{}, "b", "shop/a has no effect"},
		"gateways, mesh":              {[]string{`shop/a {"hosts": ["web.shop.svc.cluster.local"], "gateways": ["mesh", "front"], ` + rest}, node.Facet{}, "a", ""},
		"gateways, not mesh":          {[]string{`shop/a {"hosts": ["web.shop.svc.cluster.local"], "gateways": ["front"], ` + rest}, node.Facet{}, "", ""},
		"exportTo, its own":           {[]string{`bank/a {"hosts": ["web.shop.svc.cluster.local"], "exportTo": ["."], ` + rest}, node.Facet{}, "", ""},
		"exportTo, by name":           {[]string{`bank/a {"hosts": ["web.shop.svc.cluster.local"], "exportTo": ["shop"], ` + rest}, node.Facet{}, "a", ""},
		"a Sidecar's egress, without": {[]string{`bank/a {"hosts": ["web.shop.svc.cluster.local"], ` + rest}, node.Facet{Scope: node.ScopeRoutes, Namespace: "shop", Egress: "shop/*"}, "", ""},
		"a Sidecar's egress, with it": {[]string{`bank/a {"hosts": ["web.shop.svc.cluster.local"], ` + rest}, node.Facet{Scope: node.ScopeRoutes, Namespace: "shop", Egress: "bank/*"}, "a", ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := test.facet
			if f.Scope == 0 {
				f = inShop
			}
			m := shop(t, test.objects...)
			for i, o := range m.Objects {
				o.Created = time.Unix(int64(i), 0)
			}
			v := m.View(t, f)
			r := RuleFor(v, "web.shop.svc.cluster.local", 80)
			got := ""
			if r != nil {
				got = r.Object.Key.Name
			}
			if got != test.want {
				t.Errorf("it is %q, want %q", got, test.want)
			}
			if noted := (&Rule{View: v}).noted(); (noted == "") != (test.noted == "") || !strings.Contains(noted, test.noted) {
				t.Errorf("it says %q, want %q", noted, test.noted)
			}
		})
	}
}
