package envoy_test

import (
	"net/netip"
	"testing"
	"time"

	"isthmus.dev/isthmus/deploy/testbed"
)

// TestG124RealProxyTakesTransparentConnections by HTTP and by TCP; the workload sees the address of the caller.
func TestG124RealProxyTakesTransparentConnections(t *testing.T) {
	network := testbed.NewNetwork(t, "pods", "10.7.0.0/24")
	ns := testbed.NewNamespace(t, "tproxy")
	ns.Join(network, "10.7.0.2")
	n := parse(t, "sidecar~10.7.0.2~pod.shop~shop.svc.cluster.local", map[string]any{"CLUSTER_ID": "c1", "INTERCEPTION_MODE": "TPROXY"})
	proxy := testbed.StartEnvoy(t, testbed.EnvoyOptions{
		Name: "sidecar", Config: sidecarConfig(t, n, sidecarFixture()), Namespace: ns, NetAdmin: true,
	})
	proxy.WaitReady(time.Minute)
	ns.CaptureTransparent()
	testbed.StartEcho(t, testbed.EchoOptions{
		Name: "server", Namespace: ns, Address: netip.MustParseAddr("10.7.0.2"), HTTP: []int{8080}, TCP: []int{9000},
	})
	caller, _ := pod(t, network, "10.7.0.9", nil)
	answer := caller.Get("http://10.7.0.2:8080/")
	if remote := netip.MustParseAddrPort(answer.Echo(t).Remote).Addr().Unmap(); remote.String() != "10.7.0.9" {
		t.Errorf("the workload is spoken to by %s, not by the address of the caller", remote)
	}
	if answer.Header.Get("x-envoy-upstream-service-time") == "" {
		t.Error("the request did not go through the proxy")
	}
	if got := sayLine(t, caller, "10.7.0.2:9000"); got != "server hello\n" {
		t.Errorf("TCP is answered by %q", got)
	}
}
