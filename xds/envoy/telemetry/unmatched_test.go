package telemetry

import (
	"slices"
	"testing"

	accesslogv3 "github.com/envoyproxy/go-control-plane/envoy/config/accesslog/v3"
)

// TestK70RefusedConnectionsAreLogged of those that the expression selects; servers that log requests alone do not get them.
func TestK70RefusedConnectionsAreLogged(t *testing.T) {
	all, some := logOf(t, "a", ""), logOf(t, "b", "connection.mtls")
	got := unmatched([]logger{all, {http: all.http}, some})
	if len(got) != 2 {
		t.Fatalf("%d logs have refused connections, want 2", len(got))
	}
	if flags := got[0].GetFilter().GetResponseFlagFilter().GetFlags(); !slices.Equal(flags, []string{"NR"}) {
		t.Errorf("without an expression, connections with %v are logged", flags)
	}
	and := got[1].GetFilter().GetAndFilter().GetFilters()
	isExpression := func(f *accesslogv3.AccessLogFilter) bool { return f.GetExtensionFilter() != nil }
	if len(and) != 2 || !slices.ContainsFunc(and, isExpression) || and[0].GetResponseFlagFilter() == nil {
		t.Errorf("with an expression, the filter is %v", got[1].GetFilter())
	}
	if some.tcp.GetFilter().GetExtensionFilter() == nil || all.tcp.GetFilter() != nil {
		t.Error("the logs of other connections changed")
	}
}
