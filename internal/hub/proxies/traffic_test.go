package proxies

import (
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/internal/hub/identities"
	"isthmus.dev/isthmus/internal/metrics"
	"isthmus.dev/isthmus/xds/envoy"
)

// TestR46EveryTypeIsCountedFromTheStart: of each type that the hub serves, and of configuration, the series are there before
// the first response.
func TestR46EveryTypeIsCountedFromTheStart(t *testing.T) {
	counts := metrics.New()
	New(Options{
		Metrics: counts.XDS, Snapshots: federation.NewAggregate(nil), Fleet: fleet.New(), Identities: &identities.Identities{},
		Logger: slog.New(slog.DiscardHandler),
	})
	answer := httptest.NewRecorder()
	counts.Handler().ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	names := []string{"MCP"}
	for _, row := range envoy.Types() {
		names = append(names, row.Service)
	}
	for _, name := range names {
		for _, metric := range []string{"isthmus_xds_nacks_total", "isthmus_xds_response_bytes_count"} {
			if series := metric + `{type="` + name + `"} 0`; !strings.Contains(answer.Body.String(), series) {
				t.Errorf("there is no series %s", series)
			}
		}
	}
}
