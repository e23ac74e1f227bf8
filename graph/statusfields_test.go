package graph_test

import (
	"maps"
	"testing"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/apply"
	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/graph"
	"isthmus.dev/isthmus/graph/model"
)

// computedParts counts which parts of statuses are computed.
type computedParts map[string]int

func (c computedParts) Delivery(*federation.Snapshot, *fleet.Value, federation.ObjectKey) (graph.Delivery, bool) {
	c["delivery"]++
	return graph.Delivery{Acked: 3, Pending: 1, Proxies: func() []graph.ProxyState { return nil }}, true
}

func (c computedParts) notHonoured(*federation.Snapshot, *federation.Object) []model.NotHonoured {
	c["notHonoured"]++
	return []model.NotHonoured{}
}

func (c computedParts) findings(*federation.Snapshot, *fleet.Value, federation.ObjectKey) []apply.Finding {
	c["findings"]++
	return nil
}

// TestR42AFieldOfTheStatusCostsThatField: an operation pays for the parts of the status
// that it asks for, once for all numbers of proxies.
func TestR42AFieldOfTheStatusCostsThatField(t *testing.T) {
	computed := computedParts{}
	c := newConfigured(t, func(o *graph.Options) {
		o.Fleet = fleet.New()
		o.Config.Deliveries, o.Config.NotHonoured, o.Config.Findings = computed, computed.notHonoured, computed.findings
	})
	c.apply(route("shop", "cart", "a"))
	for fields, want := range map[string]computedParts{
		"__typename":          {},
		"findings {code}":     {"findings": 1},
		"notHonoured {field}": {"notHonoured": 1},
		"acked":               {"delivery": 1},
		"delivered acked rejected pending proxies {totalCount}": {"delivery": 1},
		"acked findings {code} notHonoured {field}":             {"delivery": 1, "findings": 1, "notHonoured": 1},
	} {
		clear(computed)
		data := c.answer(`{ configObject(group: "networking.istio.io", kind: "VirtualService", namespace: "shop", name: "cart") { status {`+
			fields+`} } }`, nil)
		if at(data, "configObject", "status") == nil || !maps.Equal(computed, want) {
			t.Errorf("status {%s} computes %v, want %v: %v", fields, computed, want, data)
		}
	}
}
