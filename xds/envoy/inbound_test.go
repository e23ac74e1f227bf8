package envoy_test

import (
	"testing"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy"
)

// TestMachinesHaveThePortsOfTheirEntries: a proxy at an address that a ServiceEntry or WorkloadEntry of its own namespace
// names sees requests on the ports of that service, so that policies decide about them. What another namespace, or another
// cluster, says about the address counts for nothing.
func TestMachinesHaveThePortsOfTheirEntries(t *testing.T) {
	entry := external(8080, federation.HTTP, "10.7.0.9")
	declared := newFixture().attach("c1", "").entries([]federation.Hostname{"ledger.example"}, entry)
	elsewhere := newFixture().attach("c1", "").attach("c2", "").say("c2", key("ledger.example"), entry)
	for name, c := range map[string]struct {
		w         *fixture
		namespace string
		want      bool
	}{
		"its own namespace": {declared, "shop", true}, "another namespace": {declared, "other", false},
		"another cluster": {elsewhere, "shop", false},
	} {
		t.Run(name, func(t *testing.T) {
			n := parse(t, "sidecar~10.7.0.9~a."+c.namespace+"~"+c.namespace+".svc.cluster.local",
				map[string]any{"CLUSTER_ID": "c1", "NAMESPACE": c.namespace, "IDENTITY_SOURCE": "ads"})
			l, _ := find[*listenerv3.Listener](t, build(t, envoy.ListenerType, n, c.w.snapshot), "virtualInbound")
			got := false
			for _, chain := range l.GetFilterChains() {
				got = got || chain.GetFilterChainMatch().GetDestinationPort().GetValue() == 8080
			}
			if got != c.want {
				t.Errorf("the proxy sees requests on the port: %v, want %v", got, c.want)
			}
		})
	}
}
