package xds

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/xdstest"
)

// webRules are a DestinationRule and a VirtualService for the service web.
func webRules() []*federation.Object {
	host := string(key("web").Hostname)
	return []*federation.Object{
		{Key: tenantKey("DestinationRule", "limits"), Names: []string{host}, Spec: &networking.DestinationRule{
			Host: host,
			TrafficPolicy: &networking.TrafficPolicy{
				ConnectionPool: &networking.ConnectionPoolSettings{Tcp: &networking.ConnectionPoolSettings_TCPSettings{MaxConnections: 7}},
			},
		}},
		{Key: tenantKey("VirtualService", "routes"), Names: []string{host}, Spec: &networking.VirtualService{
			Hosts: []string{host},
			Http: []*networking.HTTPRoute{
				{Route: []*networking.HTTPRouteDestination{{Destination: &networking.Destination{Host: host}}}},
			},
		}},
	}
}

// TestU16IstioctlShowsWhichObjectsDecide: of the dump of an Envoy beside Istio's agent,
// istioctl shows the DestinationRule of a cluster and the VirtualService of a route.
func TestU16IstioctlShowsWhichObjectsDecide(t *testing.T) {
	r := startAgentProxy(t)
	r.objects(webRules()...)
	file := filepath.Join(t.TempDir(), "dump.json")
	for _, c := range []struct{ what, subject, want string }{
		{"cluster", "web.shop.svc.cluster.local", "limits.shop"},
		{"route", "web", "routes.shop"},
	} {
		r.await("the "+c.what+" in istioctl", func() error {
			dump, err := r.envoy.Admin("/config_dump")
			if err != nil {
				return err
			}
			if err := os.WriteFile(file, dump, 0o600); err != nil {
				return err
			}
			output, err := testbed.Istioctl(t, "proxy-config", c.what, "--file", file)
			shows := func(line string) bool { return strings.Contains(line, c.subject) && strings.Contains(line, c.want) }
			if err == nil && !slices.ContainsFunc(strings.Split(output, "\n"), shows) {
				err = fmt.Errorf("it shows\n%s", output)
			}
			return err
		})
	}
	for _, kind := range envoyOrder {
		if r.first(Nacked, kind) >= 0 {
			t.Errorf("the Envoy refused %s", kind)
		}
	}
}

// TestU16OtherProxiesGetNoIstioMetadata: a cluster has it for proxies of Istio's agent only.
func TestU16OtherProxiesGetNoIstioMetadata(t *testing.T) {
	h := newHub(t)
	h.set(service("web", 1))
	set := map[federation.ObjectKey]*federation.Object{}
	for _, o := range webRules() {
		o.Digest = o.Key.Kind
		set[o.Key] = o
	}
	h.writer.Update(federation.Edit{Objects: federation.Delta[federation.ObjectKey, *federation.Object]{Set: set}})
	size := map[string]int{}
	for _, socket := range []string{"", "socket"} {
		of := proto.CloneOf(node("web-1"))
		of.Metadata.Fields["WORKLOAD_IDENTITY_SOCKET_FILE"] = structpb.NewStringValue(socket)
		web := h.clusterOf(of, cluster("web"))
		size[socket] = proto.Size(web.GetMetadata())
		said := web.GetMetadata().GetFilterMetadata()["istio"].GetFields()
		config := said["config"].GetStringValue()
		want := ""
		if socket != "" {
			want = "/apis/networking.istio.io/v1/namespaces/shop/destination-rule/limits"
		}
		if config != want || (len(said["services"].GetListValue().GetValues()) == 1) != (socket != "") {
			t.Errorf("with the socket %q, the cluster has %v", socket, said)
		}
	}
	if size[""] != 0 || size["socket"] > 300 {
		t.Errorf("the metadata has %d bytes", size["socket"])
	}
}

// clusterOf is the cluster of that name that the node gets.
func (h *hub) clusterOf(of *corev3.Node, name string) *clusterv3.Cluster {
	h.t.Helper()
	client := h.client(xdstest.Options{Delta: true, Node: of})
	if err := client.Send(xdstest.Request{Type: xdstest.CDS}); err != nil {
		h.t.Fatal(err)
	}
	answer, err := client.Receive(h.t.Context())
	if err != nil {
		h.t.Fatal(err)
	}
	packed, has := answer.Resources[name]
	if !has {
		h.t.Fatalf("there is no cluster %s", name)
	}
	var c clusterv3.Cluster
	if err := packed.UnmarshalTo(&c); err != nil {
		h.t.Fatal(err)
	}
	return &c
}
