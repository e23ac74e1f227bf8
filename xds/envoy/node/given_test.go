package node

import (
	"net/netip"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/structpb"
)

// TestU22ProxiesWhoseClusterIsGiven may have any name as their ID. What they say themselves counts, so that what they
// prove is compared with it.
func TestU22ProxiesWhoseClusterIsGiven(t *testing.T) {
	given := Given{Cluster: "dc1", Namespace: "shop", ServiceAccount: "web", Address: netip.MustParseAddr("10.0.0.7")}
	n, err := ParseNode(&corev3.Node{Id: "web-sidecar-proxy"}, given)
	if err != nil || n.Type != Sidecar || n.Cluster != "dc1" || n.Namespace != "shop" || n.ServiceAccount != "web" ||
		n.Name != "web-sidecar-proxy.shop" || len(n.Addresses) != 1 || n.Addresses[0] != given.Address {
		t.Errorf("it is %+v, %v", n, err)
	}
	said, err := structpb.NewStruct(map[string]any{
		"CLUSTER_ID": "c2", "NAMESPACE": "bank", "SERVICE_ACCOUNT": "ledger",
		"INSTANCE_IPS": "10.0.0.8",
	})
	if err != nil {
		t.Fatal(err)
	}
	n, err = ParseNode(&corev3.Node{Id: "sidecar~10.0.0.9~a.bank~x", Metadata: said}, given)
	if err != nil || n.Cluster != "c2" || n.Namespace != "bank" || n.ServiceAccount != "ledger" || n.Addresses[0].String() != "10.0.0.8" {
		t.Errorf("it says that it is %+v, %v", n, err)
	}
	for id, c := range map[string]struct {
		given Given
		want  string
	}{
		"web":       {Given{}, "needs four"},
		"":          {given, "needs four"},
		"a~b":       {given, "needs four"},
		"web\x01":   {given, "control characters"},
		"no-source": {Given{Cluster: "dc1", Namespace: "shop"}, "INSTANCE_IPS"},
	} {
		if _, err := ParseNode(&corev3.Node{Id: id}, c.given); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", id, err, c.want)
		}
	}
}
