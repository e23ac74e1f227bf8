package xds

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"testing"

	adminv3 "github.com/envoyproxy/go-control-plane/envoy/admin/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	statusv3 "github.com/envoyproxy/go-control-plane/envoy/service/status/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/xds/istiodebug"
	"isthmus.dev/isthmus/xds/xdstest"
)

// inspects admits everybody as a proxy, and as one who may ask about the hub if it is true.
type inspects bool

func (i inspects) Identify(context.Context) (Caller, error) {
	return Caller{Inspects: func() (string, error) {
		if !i {
			return "", errors.New("not named")
		}
		return "spiffe://td/ns/istio-system/sa/default", nil
	}}, nil
}

// debugHub answers Istio's tools.
func debugHub(t *testing.T, access Access, change ...func(*Options)) *hub {
	t.Helper()
	var h *hub
	h = newHub(t, append(change, func(o *Options) {
		o.Access = access
		o.Debug = istiodebug.New(istiodebug.Options{
			Snapshots: o.Snapshots, Fleet: o.Fleet, Hub: "hub-1", Build: istiodebug.Build{Version: "1.2.3"},
			Dump: func(stream fleet.Key) (*adminv3.ConfigDump, error) { return ConfigDump(h.server, stream) },
		})
	})...)
	return h
}

// asked is one answer to istioctl.
func (h *hub) asked(kind string, names ...string) (*discoveryv3.DiscoveryResponse, error) {
	h.t.Helper()
	stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(h.conn).StreamAggregatedResources(h.t.Context())
	if err != nil {
		return nil, err
	}
	node := &corev3.Node{Id: "sidecar~0.0.0.0~istioctl.istio-system~istio-system.svc.cluster.local"}
	if err := stream.Send(&discoveryv3.DiscoveryRequest{
		Node: node, TypeUrl: kind, ResourceNames: names,
		ResponseNonce: "a time",
	}); err != nil {
		return nil, err
	}
	return stream.Recv()
}

// TestU13EachTypeOfAProxyHasItsState: what was accepted is SYNCED, what waits for an answer
// STALE, what was refused ERROR; what was never sent NOT_SENT, and what was not asked for is
// not there.
func TestU13EachTypeOfAProxyHasItsState(t *testing.T) {
	h := debugHub(t, inspects(true))
	s := h.fleet.Connect(fleet.Proxy{NodeID: "sidecar~10.1.0.9~web-1.shop~x", Cluster: "c1", Namespace: "shop", MeshVersion: "1.32.0"})
	want := map[string]statusv3.ConfigStatus{
		string(xdstest.CDS): statusv3.ConfigStatus_SYNCED, string(xdstest.EDS): statusv3.ConfigStatus_STALE,
		string(xdstest.LDS): statusv3.ConfigStatus_ERROR, string(xdstest.RDS): statusv3.ConfigStatus_NOT_SENT,
	}
	s.Report(string(xdstest.CDS), fleet.Sync{State: fleet.Synced, VersionSent: "2", VersionAcked: "2"})
	s.Report(string(xdstest.EDS), fleet.Sync{State: fleet.Pending, VersionSent: "2", VersionAcked: "1"})
	s.Report(string(xdstest.LDS), fleet.Sync{State: fleet.Nacked, VersionSent: "2", LastError: "no such filter"})
	s.Report(string(xdstest.RDS), fleet.Sync{State: fleet.Pending})
	s.Report("never", fleet.Sync{State: fleet.NotRequested})
	r, err := h.asked("istio.io/debug/syncz")
	if err != nil {
		t.Fatal(err)
	}
	if len(r.GetResources()) != 1 || !strings.Contains(r.GetControlPlane().GetIdentifier(), `"ID":"hub-1"`) {
		t.Fatalf("the answer is %v", r)
	}
	var one statusv3.ClientConfig
	if err := r.GetResources()[0].UnmarshalTo(&one); err != nil {
		t.Fatal(err)
	}
	if name := one.GetNode().GetId(); name != "web-1.shop" {
		t.Errorf("the proxy is called %q", name)
	}
	got := map[string]statusv3.ConfigStatus{}
	for _, c := range one.GetGenericXdsConfigs() {
		got[c.GetTypeUrl()] = c.GetConfigStatus()
		if c.GetTypeUrl() == string(xdstest.LDS) && c.GetErrorState().GetDetails() != "no such filter" {
			t.Errorf("the error is %v", c.GetErrorState())
		}
	}
	said := one.GetNode().GetMetadata().AsMap()
	if !maps.Equal(got, want) || said["CLUSTER_ID"] != "c1" || said["NAMESPACE"] != "shop" || said["ISTIO_VERSION"] != "1.32.0" {
		t.Errorf("the states are %v of the proxy %v", got, said)
	}
}

// TestU13PagesAreJSON: each page of the list is JSON, and an unknown one says so.
func TestU13PagesAreJSON(t *testing.T) {
	h := debugHub(t, inspects(true))
	h.set(service("web", 9))
	page := func(name string, into any) {
		t.Helper()
		r, err := h.asked("istio.io/debug", name)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(r.GetResources()[0].GetValue(), into); err != nil {
			t.Errorf("the page %s is %s: %v", name, r.GetResources()[0].GetValue(), err)
		}
	}
	var names []string
	page("list", &names)
	if len(names) != 5 {
		t.Fatalf("the list is %v", names)
	}
	h.fleet.Connect(fleet.Proxy{NodeID: "sidecar~10.1.0.9~web-1.shop~x", Cluster: "c1"})
	for _, name := range names {
		page(name+"?proxyID=web-1.shop", new(any))
	}
	var clusters []struct{ ID, SyncStatus string }
	page("clusterz", &clusters)
	if len(clusters) != 0 && (clusters[0].ID != "c1" || clusters[0].SyncStatus != "synced") {
		t.Errorf("the clusters are %+v", clusters)
	}
	var hosts map[string]map[string]struct{ Shards map[string][]any }
	page("endpointz?x=y", &hosts)
	if len(hosts["web.shop.svc.cluster.local"]["shop"].Shards["Mock/c1"]) != 1 {
		t.Errorf("the endpoints are %v", hosts)
	}
	r, err := h.asked("istio.io/debug", "sidecarz")
	if err != nil || string(r.GetResources()[0].GetValue()) != "404 page not found" {
		t.Errorf("an unknown page is %v, %v", r, err)
	}
}

// TestU13WhoIsNotNamedGetsNothing, and neither does a stream that mixes.
func TestU13WhoIsNotNamedGetsNothing(t *testing.T) {
	for name, c := range map[string]struct {
		access Access
		kind   string
		names  []string
		want   codes.Code
	}{
		"not named":     {inspects(false), "istio.io/debug/syncz", nil, codes.PermissionDenied},
		"a page":        {inspects(false), "istio.io/debug", []string{"registryz"}, codes.PermissionDenied},
		"unknown type":  {inspects(true), "istio.io/debug/adsz", nil, codes.Unimplemented},
		"no proxy":      {inspects(true), "istio.io/debug/config_dump", []string{"web-1.shop"}, codes.NotFound},
		"proxy unnamed": {inspects(true), "istio.io/debug/config_dump", nil, codes.InvalidArgument},
		"not for all":   {inspects(false), "istio.io/debug/config_dump", []string{"web-1.shop"}, codes.PermissionDenied},
		"no page":       {inspects(true), "istio.io/debug", nil, codes.InvalidArgument},
		"several pages": {inspects(true), "istio.io/debug", []string{"syncz", "list"}, codes.InvalidArgument},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := debugHub(t, c.access).asked(c.kind, c.names...); status.Code(err) != c.want {
				t.Errorf("the error is %v, want %s", err, c.want)
			}
		})
	}
}

// TestU14ClientStatusIsServedFromTheFleet: to those who may ask, for all proxies or those
// that are named.
func TestU14ClientStatusIsServedFromTheFleet(t *testing.T) {
	h := debugHub(t, inspects(true))
	for _, id := range []string{"a", "b"} {
		h.fleet.Connect(fleet.Proxy{NodeID: id, Cluster: "c1"})
	}
	exact := func(id string) *matcherv3.NodeMatcher {
		return &matcherv3.NodeMatcher{NodeId: &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Exact{Exact: id}}}
	}
	client := statusv3.NewClientStatusDiscoveryServiceClient(h.conn)
	for name, c := range map[string]struct {
		matchers []*matcherv3.NodeMatcher
		want     string
		code     codes.Code
	}{
		"all": {nil, "a b", codes.OK},
		"one": {[]*matcherv3.NodeMatcher{exact("b"), exact("c")}, "b", codes.OK},
		"prefix": {
			[]*matcherv3.NodeMatcher{{NodeId: &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Prefix{Prefix: "a"}}}},
			"", codes.InvalidArgument,
		},
		"too many": {make([]*matcherv3.NodeMatcher, maxNodeMatchers+1), "", codes.ResourceExhausted},
	} {
		r, err := client.FetchClientStatus(t.Context(), &statusv3.ClientStatusRequest{NodeMatchers: c.matchers})
		var ids []string
		for _, one := range r.GetConfig() {
			ids = append(ids, one.GetNode().GetId())
		}
		if got := strings.Join(ids, " "); got != c.want || status.Code(err) != c.code {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	stream, err := client.StreamClientStatus(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := stream.Send(&statusv3.ClientStatusRequest{}); err != nil {
			t.Fatal(err)
		}
		if r, err := stream.Recv(); err != nil || len(r.GetConfig()) != 2 {
			t.Errorf("the stream answers %v, %v", r, err)
		}
	}
	refused := statusv3.NewClientStatusDiscoveryServiceClient(debugHub(t, inspects(false)).conn)
	if _, err := refused.FetchClientStatus(t.Context(), &statusv3.ClientStatusRequest{}); status.Code(err) != codes.PermissionDenied {
		t.Errorf("who is not named gets %v", err)
	}
}
