package graph_test

import (
	"fmt"
	"strings"
	"testing"
)

// TestR106ListsInArgumentsAreBounded: a filter, or an argument, with a longer list than the limit is refused by its
// name, wherever the list is written.
func TestR106ListsInArgumentsAreBounded(t *testing.T) {
	h := newHub(t)
	names := func(n int) []any {
		all := make([]any, n)
		for i := range all {
			all[i] = fmt.Sprintf("S%d.example.", i)
		}
		return all
	}
	labels := func(n int) []any {
		all := make([]any, n)
		for i := range all {
			all[i] = map[string]any{"key": "v", "value": "1"}
		}
		return all
	}
	for query, list := range map[string]func(int) any{
		`query($v:[String!]){services(filter:{hostnames:$v},first:1){totalCount}}`:                                                            func(n int) any { return names(n) },
		`query($v:ServiceFilter){services(filter:$v,first:1){totalCount}}`:                                                                    func(n int) any { return map[string]any{"hostnames": names(n)} },
		`query($v:[LabelInput!]){endpoints(filter:{labels:$v},first:1){totalCount}}`:                                                          func(n int) any { return labels(n) },
		`query($v:EndpointFilter){service(hostname:"web.shop.svc.cluster.local",namespace:"shop"){endpoints(filter:$v,first:1){totalCount}}}`: func(n int) any { return map[string]any{"labels": labels(n)} },
		`query($v:[String!]){proxies(first:1){nodes{config(types:$v){typeUrl}}}}`:                                                             func(n int) any { return names(n) },
	} {
		if _, errs := h.ask(query, map[string]any{"v": list(1000)}); errs != "" && errs != "null" {
			t.Errorf("%s with 1000: %s", query, errs)
		}
		_, errs := h.ask(query, map[string]any{"v": list(1001)})
		argument := "filter: "
		if strings.Contains(query, "types") {
			argument = "types: "
		}
		if !strings.Contains(errs, "BAD_USER_INPUT") || !strings.Contains(errs, argument) || !strings.Contains(errs, "1001 items, at most 1000") {
			t.Errorf("%s with 1001: %s", query, errs)
		}
	}
}
