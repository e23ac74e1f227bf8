package metrics

import (
	"strings"
	"testing"
	"time"
)

// TestGatewaysOfNetworksAreShown, and nothing of them after their network is gone.
func TestGatewaysOfNetworksAreShown(t *testing.T) {
	m, since := New(), time.Unix(1_800_000_000, 0)
	m.Snapshots.Gateways("n2", &Network{
		Refused: 1, CutOff: map[string]bool{"n1": true, "n3": false},
		Verdicts: []Gateway{{"n2", "192.0.2.1:15443", "n1", false, since}, {"n2", "192.0.2.1:15443", "n3", true, since}},
	})
	wants(t, scrape(t, m),
		`isthmus_gateway_reachable{gateway="192.0.2.1:15443",network="n2",observer="n1"} 0`,
		`isthmus_gateway_reachable{gateway="192.0.2.1:15443",network="n2",observer="n3"} 1`,
		`isthmus_gateway_verdict_since_timestamp_seconds{gateway="192.0.2.1:15443",network="n2",observer="n1"} 1.8e+09`,
		`isthmus_network_gateways_refused{network="n2"} 1`,
		`isthmus_network_cut_off{network="n2",observer="n1"} 1`, `isthmus_network_cut_off{network="n2",observer="n3"} 0`,
	)
	m.Snapshots.Gateways("n2", &Network{})
	if page := scrape(t, m); strings.Contains(page, "192.0.2.1") || strings.Contains(page, `observer="n1"`) {
		t.Error("what nobody says any more is shown")
	}
	m.Snapshots.Gateways("n2", nil)
	if strings.Contains(scrape(t, m), `network="n2"`) {
		t.Error("a network that is gone is shown")
	}
}
