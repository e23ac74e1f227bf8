package graph_test

import (
	"fmt"
	"strings"
	"testing"
)

// TestOperationsCostWhatTheyTake: what reads the store, counts the whole mesh or looks
// at proxies weighs more than a look at an object in memory.
func TestOperationsCostWhatTheyTake(t *testing.T) {
	h := newConfigured(t, nil)
	times := func(n int, field string) string {
		var out strings.Builder
		for i := range n {
			fmt.Fprintf(&out, "a%d: %s ", i, field)
		}
		return "{" + out.String() + "}"
	}
	const then = `configObject(group: "networking.istio.io", kind: "VirtualService", namespace: "shop", name: "filed", at: "1") { name }`
	const explained = `explain(proxy: "` + sidecarID + `", hostname: "none", port: 80) { endpoints { reason } }`
	resources := func(n int) string {
		return times(n, `proxy(nodeID: "`+sidecarID+`") { config { resources(first: 500) { nodes { sent acked causes { name } } } } }`)
	}
	for name, row := range map[string]struct {
		query   string
		tooMuch bool
	}{
		"histories in pages": {query: times(9, "history(first: 1) { nodes { revision } }")},
		"histories counted":  {query: times(10, "history(first: 1) { totalCount }"), tooMuch: true},
		"counted in a fragment": {query: times(10, "history(first: 1) { ... on ConfigRevisionConnection { ...F } }") +
			" fragment F on ConfigRevisionConnection { totalCount }", tooMuch: true},
		"many pages of histories": {query: times(20, "history(first: 500) { nodes { revision } }"), tooMuch: true},
		"overviews":               {query: times(19, "overview { gateways { total } }")},
		"too many overviews":      {query: times(20, "overview { gateways { total } }"), tooMuch: true},
		"objects as of revisions": {query: times(20, then), tooMuch: true},
		"objects":                 {query: times(20, strings.Replace(then, `, at: "1"`, "", 1))},
		"statuses":                {query: "{configObjects(first: 500) { nodes { status { acked findings { code } } } } }"},
		"manifests as YAML":       {query: times(3, "configObjects(first: 500) { nodes { yaml } }")},
		"too many of them":        {query: times(4, "configObjects(first: 500) { nodes { yaml } }"), tooMuch: true},
		"manifests as JSON":       {query: times(20, "configObjects(first: 500) { nodes { json } }")},
		"orders":                  {query: times(20, "services(first: 500, orderBy: {field: ENDPOINTS}) { nodes { hostname } }"), tooMuch: true},
		"explanations":            {query: times(20, explained)},
		"resources of proxies":    {query: "{proxies(first: 50) { nodes { config { resources(first: 1) { totalCount } } } } }"},
		"resources of a large page of proxies": {
			query: "{proxies(first: 500) { nodes { config { resources(first: 1) { totalCount } } } } }", tooMuch: true,
		},
		"resources with content": {query: resources(1)},
		"too much content":       {query: resources(2), tooMuch: true},
		"histories that fit":     {query: times(9, `history(first: 1, filter: {author: "a"}) { nodes { revision } }`), tooMuch: true},
		"histories of objects":   {query: "{configObjects(first: 500) { nodes { history(first: 1) { nodes { revision } } } } }"},
		"proxies of services":    {query: "{services(first: 500) { nodes { proxies(first: 10) { nodes { nodeID } } } } }"},
		"proxies in two ways": {
			query: times(10, "clusters(first: 50) { nodes { proxies(first: 1) { totalCount } network { proxies(first: 1) { totalCount } } } }"),
		},
		"statuses of many pages": {query: times(4, "configObjects(first: 500) { nodes { status { acked } } }"), tooMuch: true},
	} {
		_, errs := h.ask(row.query, nil)
		if strings.Contains(errs, "TOO_COMPLEX") != row.tooMuch {
			t.Errorf("%s: too much should be %t, and the answer has the errors %s", name, row.tooMuch, errs)
		}
	}
}
