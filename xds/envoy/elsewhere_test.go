package envoy_test

import (
	"fmt"
	"strings"
	"testing"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	dnsfilterv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/udp/dns_filter/v3"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy"
)

// answered are the hosts for which a sidecar of the cluster answers.
func answered(t *testing.T, w *fixture, cluster federation.ClusterID) string {
	t.Helper()
	n := parse(t, "sidecar~10.7.0.9~a.shop~shop.svc.cluster.local", map[string]any{"CLUSTER_ID": string(cluster), "DNS_CAPTURE": true})
	l, _ := find[*listenerv3.Listener](t, build(t, envoy.ListenerType, n, w.snapshot), "dns")
	var config dnsfilterv3.DnsFilterConfig
	if err := l.GetListenerFilters()[0].GetTypedConfig().UnmarshalTo(&config); err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, d := range config.GetServerConfig().GetInlineDnsTable().GetVirtualDomains() {
		all = append(all, fmt.Sprint(d.GetName(), " ", d.GetEndpoint().GetAddressList().GetAddress()[0]))
	}
	return strings.Join(all, ", ")
}

// TestClusterLocalNamesAreThoseOfTheOwnCluster: a host that only another cluster has
// resolves there, unless it is cluster-local.
func TestClusterLocalNamesAreThoseOfTheOwnCluster(t *testing.T) {
	w := newFixture().attach("c1", "n1").attach("c2", "n1").
		say("c1", key("near.shop.svc.cluster.local"), tcp(90, federation.TCP, "10.96.0.1/32")).
		say("c2", key("near.shop.svc.cluster.local"), tcp(90, federation.TCP, "10.97.0.1/32")).
		config(t, "kind: MeshSettings\nmetadata: {name: default}\nspec: {clusterLocalHosts: ['*.shop.svc.cluster.local']}")
	if got := answered(t, w, "c1"); got != "near.shop.svc.cluster.local 10.96.0.1" {
		t.Errorf("in c1 it answers %s", got)
	}
	if got := answered(t, w, "c2"); got != "near.shop.svc.cluster.local 10.97.0.1" {
		t.Errorf("in c2 it answers %s", got)
	}
	w.attach("c3", "n1")
	if got := answered(t, w, "c3"); got != "" {
		t.Errorf("in c3, which does not have it, it answers %s", got)
	}
	w.config(t, "kind: MeshSettings\nmetadata: {name: default}\nspec: {}")
	if got := answered(t, w, "c3"); !strings.HasPrefix(got, "near.shop.svc.cluster.local 240.") {
		t.Errorf("where it is not cluster-local, c3 answers %s", got)
	}
}

// TestGRPCClientsAreToldWhatTheyCannotReach: they have no identity, so that nothing
// behind a gateway is for them, and explain says so.
func TestGRPCClientsAreToldWhatTheyCannotReach(t *testing.T) {
	w := newFixture().attach("c1", "n1").attach("c2", "n2").network("n2", gatewaysAt("192.0.2.1")).
		say("c1", webKey, web(meshed("10.0.1.1", "n1", 0))).say("c2", webKey, web(meshed("10.0.2.1", "n2", 0)))
	n := grpcClient(t)
	n.Network = "n1"
	if got := fmt.Sprint(explained(w, n, 80)); got != "[10.0.1.1@c1 DIRECT DIRECT 10.0.2.1@c2 NONE NO_IDENTITY]" {
		t.Errorf("it is explained as %s", got)
	}
	for _, e := range explain(w, n, 80) {
		if !e.Included && !strings.Contains(e.Message, "gRPC clients without a proxy") {
			t.Errorf("the reason is %q", e.Message)
		}
	}
	if got := fmt.Sprint(weights(t, w, n)); got != "map[10.0.1.1:8080:1]" {
		t.Errorf("it is sent to %s", got)
	}
}
