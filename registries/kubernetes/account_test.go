package kubernetes

import (
	"slices"
	"strings"
	"testing"
)

// TestG126AServiceSaysAsWhomItRuns by Istio's annotations; a word that is not an account is named and ignored.
func TestG126AServiceSaysAsWhomItRuns(t *testing.T) {
	const names, identities = "alpha.istio.io/kubernetes-serviceaccounts", "alpha.istio.io/canonical-serviceaccounts"
	for name, test := range map[string]struct {
		annotations string
		want        []string
		problems    map[string]string
	}{
		"None":       {"", nil, nil},
		"Names":      {names + `: "web, api,,web"`, []string{"shop/api", "shop/web"}, nil},
		"Identities": {identities + ": spiffe://old.example/ns/legacy/sa/web", []string{"spiffe://old.example/ns/legacy/sa/web"}, nil},
		"Both": {
			names + ": web, " + identities + `: "spiffe://old.example/vm"`, []string{"shop/web", "spiffe://old.example/vm"}, nil,
		},
		"NoName":     {names + `: "other/web, ok"`, []string{"shop/ok"}, map[string]string{names: `"other/web" is not the name of a service account`}},
		"NoIdentity": {identities + `: "web, spiffe:///ns/a/sa/b"`, nil, map[string]string{identities: `is not an identity`}},
		"TooLong":    {names + `: "` + strings.Repeat("a,", 10_000) + `"`, nil, map[string]string{names: "longer than 16384 bytes"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel("")
			fixture(t, m, strings.Replace(plainService, "namespace: shop}", "namespace: shop, annotations: {"+test.annotations+"}}", 1))
			e, want := full(m), map[string]string{}
			if got := shardOf(t, e, "web.shop.svc.cluster.local").ServiceAccounts; !slices.Equal(got, test.want) {
				t.Errorf("the accounts are %q, want %q", got, test.want)
			}
			for annotation, says := range test.problems {
				want["Service shop/web metadata.annotations["+annotation+"]"] = says
			}
			wantProblems(t, e, want)
		})
	}
}
