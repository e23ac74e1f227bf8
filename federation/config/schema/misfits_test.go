package schema

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"

	"isthmus.dev/isthmus/deploy/testbed"
)

// misfitting is a spec with that many values of the right type that the schema refuses.
func misfitting(n int) string {
	route := `{"corsPolicy":{"unmatchedPreflights":"MAYBE"},"route":[{"destination":{"host":"a.example"}}]},`
	return `{"hosts":["a.example"],"http":[` + strings.TrimSuffix(strings.Repeat(route, n), ",") + `]}`
}

// TestR109RefusedValuesAreListedUpToALimit: the library compares each problem with all others, and took minutes for
// 40,000 of them.
func TestR109RefusedValuesAreListedUpToALimit(t *testing.T) {
	set := load(t)
	o := ApplyOptions{Manager: "m", Now: noon}
	live := apply(t, set, nil, virtualService(t, "", `{"hosts":["a.example"]}`), o)
	const most = 20_000
	object := virtualService(t, "", misfitting(most))
	for name, stored := range map[string]map[string]any{"new": nil, "stored": live} {
		before := testbed.UsedCPU(t)
		r, err := set.Apply(stored, object, o)
		if used := testbed.UsedCPU(t) - before; used.Seconds() > 20 {
			t.Errorf("%s: refusing takes %s", name, used)
		}
		if err != nil || len(r.Problems) != maxListed {
			t.Fatalf("%s: %d problems, %v", name, len(r.Problems), err)
		}
		first, last := r.Problems[1], r.Problems[maxListed-1]
		if first.Field != "spec.http[1].corsPolicy.unmatchedPreflights" || first.Code != NotSupported ||
			last.Code != TooManyProblems || last.Message != fmt.Sprintf("%d more problems are not listed: correct these first", most-maxListed+1) {
			t.Errorf("%s: the second problem is %v, the last %v", name, first, last)
		}
	}
	r, err := set.Apply(nil, virtualService(t, "", misfitting(maxListed)), o)
	if err != nil || slices.ContainsFunc(r.Problems, func(p Problem) bool { return p.Code == TooManyProblems }) || len(r.Problems) < maxListed {
		t.Errorf("as many problems as are listed: %d, %v", len(r.Problems), err)
	}
}

// TestR109WhatIsListedIsWhatTheLibrarySays about the whole object.
func TestR109WhatIsListedIsWhatTheLibrarySays(t *testing.T) {
	set := load(t)
	for _, object := range []map[string]any{
		virtualService(t, "", misfitting(3)),
		virtualService(t, "", `{"http":[{"match":[{"uri":{"exact":"/","prefix":"/"}}],"retries":{"attempts":-1},"timeout":"soon"},{}]}`),
		virtualService(t, "", `{"tls":[{"match":[{"port":-1}]}],"tcp":[{"route":[{"destination":{}}]}]}`),
		fromJSON(t, `{"apiVersion":"networking.istio.io/v1","kind":"ServiceEntry","metadata":{"name":"e","namespace":"shop"},"spec":{
			"resolution":"SOMEHOW","endpoints":[{"ports":{"a":-1,"b":70000},"weight":-1}],"ports":[{"number":0},{"name":"x"}]}}`),
	} {
		v, problem := set.versionOf(object)
		if problem != nil {
			t.Fatal(problem)
		}
		c, err := v.schema()
		if err != nil {
			t.Fatal(err)
		}
		byPlace := func(a, b Problem) int { return cmp.Compare(a.String(), b.String()) }
		want := problemsOf(validation.ValidateCustomResource(nil, object, c.validator))
		found := misfitsOf(c.whole(), object, nil).problems()
		found = found[:len(found)-1] // the one for those that are not listed
		slices.SortFunc(want, byPlace)
		slices.SortFunc(found, byPlace)
		if len(want) == 0 || !slices.Equal(found, want) {
			t.Errorf("listed are\n%v\nthe library says\n%v", found, want)
		}
	}
}

// TestR109WhatIsStoredIsForgiven: as in Kubernetes, an object may keep what its schema refuses now.
func TestR109WhatIsStoredIsForgiven(t *testing.T) {
	set := load(t)
	object := virtualService(t, "", misfitting(3000))
	v, _ := set.versionOf(object)
	c, err := v.schema()
	if err != nil {
		t.Fatal(err)
	}
	if found := misfitsOf(c.whole(), object, virtualService(t, "", misfitting(2999))); found.total != 1 {
		t.Errorf("%d values are not forgiven, want 1", found.total)
	}
}
