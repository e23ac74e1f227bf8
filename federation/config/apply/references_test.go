package apply_test

import (
	"fmt"
	"strings"
	"testing"

	"isthmus.dev/isthmus/federation/config/apply"
)

const rules = `
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: api, namespace: shop}
spec:
  host: api.example.com
  subsets: [{name: v1, labels: {version: v1}}]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: api, namespace: shop}
spec:
  hosts: [api.example.com]
  gateways: [mesh, edge]
  http:
  - match: [{uri: {prefix: /beta}}]
    route: [{destination: {host: api.example.com, subset: v2}}]
    mirror: {host: absent}
  - route: [{destination: {host: api.example.com, subset: v1}}]
---
`

func findings(r apply.Result) string {
	var all []string
	for _, f := range r.Findings {
		all = append(all, fmt.Sprintf("%s %s %s", f.Code, f.Key.Title(), f.Field))
	}
	return strings.Join(all, "\n")
}

// TestU39WhatMeetsNothingIsFound: a Drain of a cluster that is not attached, and a subset that no endpoint belongs to.
func TestU39WhatMeetsNothingIsFound(t *testing.T) {
	const drain = "apiVersion: isthmus.dev/v1\nkind: Drain\nmetadata: {name: c9}\nspec: {cluster: c9}\n---\n"
	w := newFixture(t)
	want := "IST0101 Drain c9 spec.cluster\nSUBSET_EMPTY DestinationRule shop/api spec.subsets[0].labels\n"
	if got := findings(w.must(drain+rules+external("api.example.com"), dryRun)); !strings.HasPrefix(got, want) {
		t.Errorf("found\n%s\nwant\n%s", got, want)
	}
}

func TestReferencesThatLeadNowhereAreFound(t *testing.T) {
	w := newFixture(t)
	dry := w.must(rules+external("api.example.com"), dryRun)
	want := `SUBSET_EMPTY DestinationRule shop/api spec.subsets[0].labels
IST0101 VirtualService shop/api spec.gateways[1]
IST0101 VirtualService shop/api spec.http[0].mirror.host
IST0101 VirtualService shop/api spec.http[0].route[0].destination.subset`
	if got := findings(dry); got != want {
		t.Errorf("found\n%s\nwant\n%s", got, want)
	}
	if got := findings(w.must(rules, dryRun)); !strings.Contains(got, "IST0101 DestinationRule shop/api spec.host") {
		t.Errorf("without the service: %s", got)
	}
}

// TestHostsWithADotAtTheEndAreFound: no service has such a name, and the finding says what to do.
func TestHostsWithADotAtTheEndAreFound(t *testing.T) {
	w := newFixture(t)
	w.must(external("api.example.com"))
	dotted := strings.NewReplacer("- api.example.com\n", "- api.example.com.\n", "[api.example.com]", "[api.example.com.]", "host: api.example.com", "host: api.example.com.")
	dry := w.must(dotted.Replace(rules), dryRun)
	for _, field := range []string{"VirtualService shop/api spec.hosts[0]", "DestinationRule shop/api spec.host"} {
		if got := findings(dry); !strings.Contains(got, "IST0101 "+field) {
			t.Errorf("%s is not among\n%s", field, got)
		}
	}
	for _, f := range dry.Findings {
		if f.Code == "IST0101" && f.Field == "spec.host" && !strings.HasSuffix(f.Message, "no service has a name with a dot at the end; remove it") {
			t.Errorf("the finding says %q", f.Message)
		}
	}
}

func TestSecondVirtualServiceOfAHostIsFound(t *testing.T) {
	w := newFixture(t)
	w.must(external("api.example.com") + rules)
	rival := strings.NewReplacer("name: api,", "name: rival,").Replace(rules[strings.Index(rules, "---\n"):])
	if got := findings(w.must(rival, dryRun)); !strings.Contains(got, "IST0109 VirtualService shop/rival spec.hosts[0]") {
		t.Errorf("found %s", got)
	}
}
