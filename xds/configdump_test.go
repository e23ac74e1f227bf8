package xds

import (
	"slices"
	"strings"
	"testing"

	adminv3 "github.com/envoyproxy/go-control-plane/envoy/admin/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/xds/xdstest"
)

// dumpedClusters are the names of the clusters of a config dump, and how many parts it has.
func (h *hub) dumpedClusters(proxy string) (names []string, parts int) {
	h.t.Helper()
	r, err := h.asked("istio.io/debug/config_dump", proxy)
	if err != nil {
		h.t.Fatal(err)
	}
	var dump adminv3.ClustersConfigDump
	if err := r.GetResources()[0].UnmarshalTo(&dump); err != nil {
		h.t.Fatal(err)
	}
	for _, one := range dump.GetDynamicActiveClusters() {
		var c clusterv3.Cluster
		if err := one.GetCluster().UnmarshalTo(&c); err != nil {
			h.t.Fatal(err)
		}
		names = append(names, c.GetName())
	}
	return names, len(r.GetResources())
}

// TestU27TheConfigDumpIsWhatTheProxyWasSent: clusters, listeners and routes, of the newest
// stream of the proxy, which is given by its name or by its whole ID.
func TestU27TheConfigDumpIsWhatTheProxyWasSent(t *testing.T) {
	for _, delta := range []bool{false, true} {
		h := debugHub(t, inspects(true))
		h.set(service("web", 9))
		h.fleet.Connect(fleet.Proxy{NodeID: node("web-1").GetId(), Cluster: "c1"}) // an older stream
		c := h.client(xdstest.Options{Delta: delta})
		c.ask(xdstest.Request{Type: xdstest.CDS})
		sent := c.next(xdstest.CDS).Names()
		slices.Sort(sent)
		for _, name := range []string{"web-1.shop", node("web-1").GetId()} {
			if got, parts := h.dumpedClusters(name); !slices.Equal(got, sent) || parts != 3 || len(sent) < 2 {
				t.Errorf("delta %t: the dump of %s has %d parts and the clusters %q, want %q", delta, name, parts, got, sent)
			}
		}
	}
}

// TestU27AProxyOfEachCluster: a name that proxies of two clusters have means none of them,
// and the message says by which name each is found.
func TestU27AProxyOfEachCluster(t *testing.T) {
	h := debugHub(t, inspects(true))
	for id, cluster := range map[string]string{"sidecar~10.1.0.9~web-1.shop~x": "c1", "sidecar~10.2.0.9~web-1.shop~x": "c2"} {
		h.fleet.Connect(fleet.Proxy{NodeID: id, Cluster: federation.ClusterID(cluster)})
	}
	_, err := h.asked("istio.io/debug/config_dump", "web-1.shop")
	if status.Code(err) != codes.NotFound || !strings.Contains(err.Error(), "c1 and c2") ||
		!strings.Contains(err.Error(), "sidecar~10.2.0.9~web-1.shop~x") {
		t.Errorf("the error is %v", err)
	}
	if got, _ := h.dumpedClusters("sidecar~10.1.0.9~web-1.shop~x"); len(got) != 0 {
		t.Errorf("a proxy that was sent nothing has %q", got)
	}
}
