package metrics

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"isthmus.dev/isthmus/federation"
)

func scrape(t *testing.T, m *Metrics) string {
	t.Helper()
	recorder := httptest.NewRecorder()
	m.Handler().ServeHTTP(recorder, httptest.NewRequest("GET", "/metrics", nil))
	if recorder.Code != 200 || !strings.HasPrefix(recorder.Header().Get("Content-Type"), "text/plain") {
		t.Fatalf("got %d %v", recorder.Code, recorder.Header())
	}
	return recorder.Body.String()
}

func wants(t *testing.T, text string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !strings.Contains(text, "\n"+line+"\n") {
			t.Errorf("lacks %q", line)
		}
	}
}

// A folder may have a name that is not text.
func TestAFolderIsShownWhateverItsName(t *testing.T) {
	m := New()
	m.Config.Writable("/data/\xff", true)
	wants(t, scrape(t, m), "isthmus_config_store_writable{folder=\"/data/\uFFFD\"} 1")
}

func TestWhatIsCountedIsShown(t *testing.T) {
	m, at := New(), time.Unix(1_800_000_000, 500_000_000)
	m.Registries.Event("c1", at)
	m.Registries.Event("c1", at)
	m.Registries.Synced("c1", at)
	m.Registries.Edit("c1")
	m.Registries.RegistryRestarted("c1")
	m.Registries.RegistryPanicked("c1")
	m.Snapshots.Published(7, time.Millisecond)
	m.Snapshots.Sizes(2, 30, 400)
	m.Config.Count("commits", 2)
	m.Config.Count("a new word", 1)
	m.Config.InForce(12, 340)
	m.Config.Changed("Gateway", "update")
	m.Config.Source("ETCD", 12, at, 1)
	m.Config.Source("FILE", 0, time.Time{}, 1)
	m.XDS.Streams("delta", 1)
	m.XDS.Streams("delta", 1)
	m.XDS.Streams("delta", -1)
	m.XDS.StreamEnded("too_slow")
	m.XDS.Pushed("EDS", 100, time.Millisecond)
	m.XDS.Pushed("EDS", 20, -1)
	m.XDS.Acked("EDS")
	m.XDS.Answered("EDS", time.Millisecond)
	m.XDS.Event("build_failed", "CDS")
	m.XDS.Nacked("CDS")
	m.XDS.Built("CDS")
	m.Registries.Request(federation.Consul, "dc1", "service")
	m.Registries.Request(federation.Consul, "dc1", "service")
	m.GraphQL.Request("query", time.Millisecond, true)
	m.GraphQL.Request("query{a}", time.Millisecond, false)
	m.GraphQL.Connections("websocket", 1)
	m.GraphQL.Subscriptions("sse", 1)
	m.GraphQL.Subscriptions("sse", -1)
	m.GraphQL.Event("sse")
	m.GraphQL.Closed("4400")
	wants(t, scrape(t, m),
		`isthmus_graphql_connections{transport="websocket"} 1`, `isthmus_graphql_subscriptions{transport="sse"} 0`,
		`isthmus_graphql_events_total{transport="sse"} 1`, `isthmus_graphql_websocket_closed_total{code="4400"} 1`,
		`isthmus_registry_events_total{cluster="c1"} 2`,
		`isthmus_registry_last_event_timestamp_seconds{cluster="c1"} 1.8000000005e+09`,
		`isthmus_registry_last_sync_timestamp_seconds{cluster="c1"} 1.8000000005e+09`,
		`isthmus_registry_edits_total{cluster="c1"} 1`,
		`isthmus_registry_panics_total{cluster="c1"} 1`,
		`isthmus_registry_restarts_total{cluster="c1"} 1`,
		`isthmus_config_commits_total 2`, `isthmus_config_orphans_total 0`, `isthmus_config_revision 12`, `isthmus_config_objects 340`,
		`isthmus_config_events_total{event="update",kind="Gateway"} 1`,
		`isthmus_xds_response_bytes_bucket{type="EDS",le="100"} 2`, `isthmus_xds_response_bytes_sum{type="EDS"} 120`,
		`isthmus_config_source_revision{source="ETCD"} 12`, `isthmus_config_source_problems{source="ETCD"} 1`,
		`isthmus_config_source_problems{source="FILE"} 1`,
		`isthmus_config_source_last_update_timestamp_seconds{source="ETCD"} 1.8000000005e+09`,
		`isthmus_snapshot_version 7`, `isthmus_snapshot_clusters 2`, `isthmus_snapshot_services 30`, `isthmus_snapshot_endpoints 400`,
		`isthmus_snapshot_next_seconds_count 1`,
		`isthmus_xds_streams{protocol="delta"} 1`, `isthmus_xds_streams_ended_total{reason="too_slow"} 1`,
		`isthmus_xds_pushes_total{type="EDS"} 2`, `isthmus_xds_sent_bytes_total{type="EDS"} 120`, `isthmus_xds_push_seconds_count{type="EDS"} 1`,
		`isthmus_xds_acks_total{type="EDS"} 1`, `isthmus_xds_nacks_total{type="CDS"} 1`, `isthmus_xds_resources_built_total{type="CDS"} 1`,
		`isthmus_xds_ack_seconds_count{type="EDS"} 1`, `isthmus_xds_events_total{event="build_failed",type="CDS"} 1`,
		`isthmus_consul_requests_total{cluster="dc1",kind="service"} 2`,
		`isthmus_graphql_requests_total{operation="query"} 1`, `isthmus_graphql_requests_total{operation="other"} 1`,
		`isthmus_graphql_errors_total{operation="query"} 1`,
	)
}

func TestAClusterHasOnePhase(t *testing.T) {
	m := New()
	m.Registries.Phase("c1", "SYNCING")
	m.Registries.Phase("c1", "SYNCED")
	m.Registries.Phase("c2", "STALE")
	text := scrape(t, m)
	wants(t, text, `isthmus_cluster_phase{cluster="c1",phase="SYNCED"} 1`, `isthmus_cluster_phase{cluster="c2",phase="STALE"} 1`)
	if strings.Contains(text, "SYNCING") {
		t.Error("the phase before is still shown")
	}
}

func TestADetachedClusterIsForgotten(t *testing.T) {
	m := New()
	m.Registries.Event("c1", time.Now())
	m.Registries.Phase("c1", "SYNCED")
	m.Registries.Request(federation.Consul, "c1", "token")
	m.Clusters.Attached("c1")
	m.Clusters.ImportWrote("c1")
	m.Clusters.ImportFailed("c1", "forbidden")
	wants(t, scrape(t, m), `isthmus_cluster_serviceimport_writes_total{cluster="c1"} 1`,
		`isthmus_cluster_serviceimport_write_failures_total{cluster="c1",reason="forbidden"} 1`,
		`isthmus_cluster_serviceimport_write_failures_total{cluster="c1",reason="refused"} 0`)
	m.Registries.Detached("c1")
	m.Clusters.Detached("c1")
	if text := scrape(t, m); strings.Contains(text, `"c1"`) {
		t.Errorf("still shown:\n%s", text)
	}
}

func TestTwoHubsInOneProcessDoNotMeet(t *testing.T) {
	one, two := New(), New()
	one.Registries.Edit("c1")
	if text := scrape(t, two); strings.Contains(text, `"c1"`) || !strings.Contains(text, "go_goroutines") ||
		!strings.Contains(text, "process_cpu_seconds_total") {
		t.Error("collectors are shared or missing")
	}
}

// TestR46SeriesAreThereBeforeTheirFirstEvent: increase() sees the first event of a
// series only if the series was 0 before; and what does not exist has no time.
func TestR46SeriesAreThereBeforeTheirFirstEvent(t *testing.T) {
	m := New()
	m.Build("v1.2.3", "0a1b2c", "go1.30")
	m.XDS.Types([]string{"EDS", "LDS", "RDS"})
	m.Registries.Attached("c1")
	m.Clusters.Attached("c1")
	m.Identity.Authority(Authority{})
	text := scrape(t, m)
	wants(t, text, `isthmus_build_info{goversion="go1.30",revision="0a1b2c",version="v1.2.3"} 1`,
		`isthmus_xds_nacks_total{type="RDS"} 0`, `isthmus_xds_streams{protocol="sotw"} 0`, `isthmus_xds_streams_ended_total{reason="denied"} 0`,
		`isthmus_xds_events_total{event="build_failed",type="EDS"} 0`, `isthmus_xds_events_total{event="stream_panic",type=""} 0`,
		`isthmus_xds_push_seconds_count{type="LDS"} 0`,
		`isthmus_access_proofs_total{method="token",outcome="refused"} 0`, `isthmus_certificates_total{method="csr",outcome="failed"} 0`,
		`isthmus_authority_rotations_total{outcome="failed"} 0`, `isthmus_cluster_changes_total{action="attach",outcome="refused"} 0`,
		`isthmus_graphql_errors_total{operation="mutation"} 0`, `isthmus_graphql_events_total{transport="sse"} 0`,
		`isthmus_graphql_websocket_closed_total{code="lost"} 0`,
		`isthmus_registry_panics_total{cluster="c1"} 0`, `isthmus_cluster_credentials_unusable_total{cluster="c1"} 0`,
	)
	m.Identity.Authority(Authority{Roots: 1, SignerEnds: time.Unix(1_800_000_000, 0), RootEnds: time.Unix(1_900_000_000, 0)})
	signs := scrape(t, m)
	wants(t, signs, "isthmus_authority_signer_expiry_timestamp_seconds 1.8e+09", "isthmus_authority_root_expiry_timestamp_seconds 1.9e+09")
	m.Identity.Authority(Authority{})
	for when, text := range map[string]string{"yet": text, "any more": scrape(t, m)} {
		if strings.Contains(text, "\nisthmus_authority_signer_expiry_") || strings.Contains(text, "\nisthmus_authority_root_expiry_") {
			t.Errorf("nobody signs %s, and there is a time at which the signer or its root ends", when)
		}
	}
}

// TestU101ASizeCostsNothing: counting a response makes no garbage.
func TestU101ASizeCostsNothing(t *testing.T) {
	m := New()
	m.XDS.Types([]string{"EDS"})
	if n := testing.AllocsPerRun(100, func() { m.XDS.Pushed("EDS", 5000, -1) }); n > 0 {
		t.Errorf("a response costs %v allocations", n)
	}
}
