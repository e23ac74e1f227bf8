package graph_test

import (
	"fmt"
	"strings"
	"testing"
)

// TestManifestsAreBoundedInBytes: pages of large objects are short and lead to the rest,
// and an operation gets no more than the hub can hold.
func TestManifestsAreBoundedInBytes(t *testing.T) {
	c := newConfigured(t, nil)
	var want []string
	for n := range 14 {
		want = append(want, fmt.Sprintf("b%02d", n))
		c.apply(route("big", want[n], strings.Repeat("a", 400<<10))) // which it has twice
	}
	const page = `query($a:String){configObjects(first:500,after:$a,filter:{namespace:"big"}){totalCount pageInfo{hasNextPage endCursor} nodes{name %s}}}`
	var seen []string
	for after, more := any(nil), true; more; {
		of := at(c.answer(fmt.Sprintf(page, "json"), map[string]any{"a": after}), "configObjects")
		c.want(of, 14.0, "totalCount")
		nodes := at(of, "nodes").([]any)
		if len(nodes) == 0 || len(nodes) > 10 {
			t.Fatalf("a page has %d objects of 800 KiB", len(nodes))
		}
		for _, n := range nodes {
			seen = append(seen, at(n, "name").(string))
		}
		after, more = at(of, "pageInfo", "endCursor"), at(of, "pageInfo", "hasNextPage") == true
	}
	if fmt.Sprint(seen) != fmt.Sprint(want) {
		t.Errorf("the pages have %v", seen)
	}
	last := at(c.answer(`{configObjects(last:500,filter:{namespace:"big"}){pageInfo{hasPreviousPage} nodes{name}}}`, nil), "configObjects")
	c.want(last, true, "pageInfo", "hasPreviousPage")
	c.want(last, "b13", "nodes", len(at(last, "nodes").([]any))-1, "name")
	if _, errs := c.ask(fmt.Sprintf(page, "a:json b:json c:json d:json e:json f:json"), nil); !strings.Contains(errs, "TOO_COMPLEX") ||
		!strings.Contains(errs, "32 MiB") {
		t.Errorf("an answer that is too large has %.300s", errs)
	}
}
