package envoy_test

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/types/known/structpb"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy"
)

var equalAddresses = cmpopts.EquateComparable(netip.Addr{})

func TestSeed09IDHasFourParts(t *testing.T) {
	got := parse(t, "sidecar~10.60.1.6~pod.ns~ns.svc.cluster.local", nil)
	want := envoy.Node{
		ID: "sidecar~10.60.1.6~pod.ns~ns.svc.cluster.local", Type: envoy.Sidecar, RouterMode: envoy.Standard,
		Addresses: []netip.Addr{netip.MustParseAddr("10.60.1.6")}, Name: "pod.ns", Domain: "ns.svc.cluster.local",
		Namespace: "ns", Capture: true,
	}
	if diff := cmp.Diff(want, got, equalAddresses); diff != "" {
		t.Errorf("the node differs (-want +got):\n%s", diff)
	}
}

func TestSeed10OtherIDsAreRefused(t *testing.T) {
	for id, want := range map[string]string{
		"sidecar~10.60.1.6~pod.ns":             "3 parts",
		"":                                     "1 parts",
		"sidecar~10.60.1.6~pod.ns~a~b":         "5 parts",
		"waypoint~10.60.1.6~pod.ns~local":      "waypoint",
		"sidecar~~pod.ns~local":                "INSTANCE_IPS",
		"sidecar~10.60.1.06~pod.ns~local":      "valid IP",
		"sidecar~fe80::1%eth0~pod.ns~local":    "valid IP",
		"sidecar~10.60.1.6~pod\x00~local":      "control characters",
		"sidecar~10.60.1.6~pod\u0085~local":    "control characters",
		strings.Repeat("x", 2000):              "2000 bytes",
		"sidecar~10.60.1.6~pod~\xff\xfe.local": "control characters",
	} {
		if _, err := envoy.ParseNode(&corev3.Node{Id: id}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the ID %.50q is answered by %v, not by an error with %q", id, err, want)
		}
	}
	if _, err := envoy.ParseNode(nil); err == nil {
		t.Error("no node at all is taken")
	}
}

func TestSeed12RouterMode(t *testing.T) {
	for id, mode := range map[string]map[string]envoy.RouterMode{
		"router":  {"": envoy.Standard, "sni-dnat": envoy.SNIDNAT, "other": envoy.Standard},
		"ingress": {"": envoy.Standard, "sni-dnat": envoy.SNIDNAT},
		"sidecar": {"": envoy.Standard, "sni-dnat": envoy.Standard}, // of gateways only
	} {
		for said, want := range mode {
			metadata := map[string]any{"ROUTER_MODE": said}
			if said == "" {
				metadata = nil
			}
			if got := parse(t, id+"~10.0.0.1~gw.ns~ns.svc.cluster.local", metadata).RouterMode; got != want {
				t.Errorf("a %s that says %q is %s, not %s", id, said, got, want)
			}
		}
	}
}

func TestMetadataAsIstiosProxiesSendIt(t *testing.T) {
	metadata, err := structpb.NewStruct(map[string]any{
		"CLUSTER_ID": "c1", "NETWORK": "n1", "NAMESPACE": "shop", "LABELS": map[string]any{"app": "web"},
		"INSTANCE_IPS": "10.1.1.1, fd00::1,fe80::1%eth0,nonsense,10.1.1.1", "HTTP_PROXY_PORT": "15080", "DNS_CAPTURE": "true",
		"ISTIO_VERSION": "1.31.1", "PROXY_CONFIG": map[string]any{"what": "ever"},
	})
	if err != nil {
		t.Fatal(err)
	}
	node := &corev3.Node{
		Id: "sidecar~10.9.9.9~web-1.other~Shop.svc.cluster.local", Metadata: metadata,
		Locality: &corev3.Locality{Region: "r1", Zone: "z1", SubZone: "s1"}, UserAgentName: "envoy",
		UserAgentVersionType: &corev3.Node_UserAgentBuildVersion{UserAgentBuildVersion: &corev3.BuildVersion{
			Version: &typev3.SemanticVersion{MajorNumber: 1, MinorNumber: 40},
		}},
	}
	got, err := envoy.ParseNode(node)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(got.Metadata, "ISTIO_VERSION=1.31.1") {
		t.Errorf("the texts for EnvoyFilters are %q", got.Metadata)
	}
	got.Metadata = ""
	want := envoy.Node{
		ID: node.GetId(), Type: envoy.Sidecar, RouterMode: envoy.Standard,
		Addresses: []netip.Addr{netip.MustParseAddr("10.1.1.1"), netip.MustParseAddr("fd00::1")},
		Name:      "web-1.other", Domain: "shop.svc.cluster.local", Cluster: "c1", Network: "n1", Namespace: "shop",
		Locality: federation.Locality{Region: "r1", Zone: "z1", SubZone: "s1"}, Labels: map[string]string{"app": "web"},
		HTTPProxyPort: 15080, DNSCapture: true, Capture: true, UserAgent: "envoy", Version: "1.40.0", MeshVersion: "1.31.1",
	}
	if diff := cmp.Diff(want, got, equalAddresses); diff != "" {
		t.Errorf("the node differs (-want +got):\n%s", diff)
	}
}

func TestMetadataInOtherForms(t *testing.T) {
	for name, c := range map[string]struct {
		metadata map[string]any
		check    func(envoy.Node) bool
	}{
		"a number as port":    {map[string]any{"HTTP_PROXY_PORT": 15080}, func(n envoy.Node) bool { return n.HTTPProxyPort == 15080 }},
		"a boolean":           {map[string]any{"DNS_CAPTURE": true}, func(n envoy.Node) bool { return n.DNSCapture }},
		"a number as cluster": {map[string]any{"CLUSTER_ID": 7}, func(n envoy.Node) bool { return n.Cluster == "7" }},
		"a list of addresses": {
			map[string]any{"INSTANCE_IPS": []any{"10.1.1.1", "10.1.1.2"}},
			func(n envoy.Node) bool { return len(n.Addresses) == 2 },
		},
		"only bad addresses": {
			map[string]any{"INSTANCE_IPS": "x,y"},
			func(n envoy.Node) bool { return n.Addresses[0] == netip.MustParseAddr("10.0.0.1") },
		},
		"null": {
			map[string]any{"CLUSTER_ID": nil, "LABELS": nil},
			func(n envoy.Node) bool { return n.Cluster == "" && n.Labels == nil },
		},
		"no interception":         {map[string]any{"INTERCEPTION_MODE": "NONE"}, func(n envoy.Node) bool { return !n.Capture }},
		"TPROXY":                  {map[string]any{"INTERCEPTION_MODE": "TPROXY"}, func(n envoy.Node) bool { return n.Capture && n.Transparent }},
		"REDIRECT":                {map[string]any{"INTERCEPTION_MODE": "REDIRECT"}, func(n envoy.Node) bool { return n.Capture && !n.Transparent }},
		"namespace by the domain": {nil, func(n envoy.Node) bool { return n.Namespace == "ns" }},
	} {
		if n := parse(t, "sidecar~10.0.0.1~app~ns.svc.cluster.local", c.metadata); !c.check(n) {
			t.Errorf("%s is read as %+v", name, n)
		}
	}
}

func TestBadMetadataIsRefusedByName(t *testing.T) {
	many := strings.Repeat("10.0.0.1,", 3)
	for i := range 70 {
		many += netip.AddrFrom4([4]byte{10, 0, 1, byte(i)}).String() + ","
	}
	for field, value := range map[string]any{
		"HTTP_PROXY_PORT": "70000", "DNS_CAPTURE": "perhaps", "CLUSTER_ID": []any{"c1"}, "LABELS": "app=web",
		"NAMESPACE": "a\nb", "NETWORK": strings.Repeat("n", 5000), "INSTANCE_IPS": many,
	} {
		metadata, err := structpb.NewStruct(map[string]any{field: value})
		if err != nil {
			t.Fatal(err)
		}
		_, err = envoy.ParseNode(&corev3.Node{Id: "sidecar~10.0.0.1~app~local", Metadata: metadata})
		if err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("a bad %s is answered by: %v", field, err)
		}
	}
	labels := map[string]any{}
	for i := range 100 {
		labels[strings.Repeat("k", 700)+strconv.Itoa(i)] = "v"
	}
	big, err := structpb.NewStruct(map[string]any{"LABELS": labels})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := envoy.ParseNode(&corev3.Node{Id: "sidecar~10.0.0.1~app~local", Metadata: big}); err == nil ||
		!strings.Contains(err.Error(), "LABELS") {
		t.Errorf("70 KiB of labels are answered by: %v", err)
	}
}

// TestR33WhatIsNotUsedCountsForNothing: Envoy's list of extensions and a pod's
// annotations may have any size.
func TestR33WhatIsNotUsedCountsForNothing(t *testing.T) {
	metadata, err := structpb.NewStruct(map[string]any{
		"ANNOTATIONS": map[string]any{"text": strings.Repeat("x", 250<<10)}, "LABELS": map[string]any{"app": "web"},
	})
	if err != nil {
		t.Fatal(err)
	}
	said := &corev3.Node{Id: "sidecar~10.0.0.1~app~local", Metadata: metadata}
	for i := range 700 {
		said.Extensions = append(said.Extensions, &corev3.Extension{Name: fmt.Sprint("envoy.filters.http.", strings.Repeat("x", 100), i)})
	}
	n, err := envoy.ParseNode(said)
	if err != nil || n.Labels["app"] != "web" {
		t.Errorf("it is read as %+v, %v", n, err)
	}
}

// TestR34TheAgentsIdentityIsUsed: what Istio's agent reports about itself gives its proxy
// an identity, that of the agent; IDENTITY_SOURCE comes first.
func TestR34TheAgentsIdentityIsUsed(t *testing.T) {
	for name, c := range map[string]struct {
		metadata        map[string]any
		identity, agent bool
	}{
		"agent":             {map[string]any{"WORKLOAD_IDENTITY_SOCKET_FILE": "socket"}, true, true},
		"agent and the hub": {map[string]any{"WORKLOAD_IDENTITY_SOCKET_FILE": "socket", "IDENTITY_SOURCE": "ads"}, true, false},
		"a gRPC library":    {map[string]any{"WORKLOAD_IDENTITY_SOCKET_FILE": "socket", "GENERATOR": "grpc"}, false, false},
		"neither":           {nil, false, false},
	} {
		if n := parse(t, "sidecar~10.0.0.1~app~ns.svc.cluster.local", c.metadata); n.Identity != c.identity || n.Agent != c.agent {
			t.Errorf("%s: identity %t, of the agent %t", name, n.Identity, n.Agent)
		}
	}
}

// TestU42OlderAgentsAreKnown: such an agent of Istio does not name its socket. The control plane
// that it uses tells of it; other settings of a proxy do not.
func TestU42OlderAgentsAreKnown(t *testing.T) {
	of := func(proxyConfig map[string]any) map[string]any {
		return map[string]any{
			"CLUSTER_ID": "c1", "NAMESPACE": "ns", "ISTIO_VERSION": "1.13.3", "ENVOY_PROMETHEUS_PORT": 15090, "ENVOY_STATUS_PORT": 15021,
			"PILOT_SAN": []any{"hub.isthmus.svc"}, "PROV_CERT": "var/run/secrets/istio/root-cert.pem", "DNS_CAPTURE": "true",
			"INSTANCE_IPS": "10.0.0.1,fe80::1", "PROXY_CONFIG": proxyConfig,
		}
	}
	const id = "sidecar~10.0.0.1~app.ns~ns.svc.cluster.local"
	old := of(map[string]any{"discoveryAddress": "hub.isthmus.svc:15012", "concurrency": 2})
	if n := parse(t, id, old); !n.Agent || !n.Identity || !n.AgentNames {
		t.Errorf("an older agent is not known: %+v", n)
	}
	for name, metadata := range map[string]map[string]any{
		"without settings":                 of(nil),
		"with settings of a workload":      of(map[string]any{"readinessProbe": map[string]any{"httpGet": map[string]any{"port": 80}}}),
		"with an address that is not text": of(map[string]any{"discoveryAddress": 15012}),
		"with an address that is not said": of(map[string]any{"discoveryAddress": ""}),
	} {
		if n := parse(t, id, metadata); n.Agent || n.Identity || n.AgentNames {
			t.Errorf("a proxy %s is one of an agent", name)
		}
	}
	old["IDENTITY_SOURCE"] = "ads"
	if n := parse(t, id, old); n.Agent || !n.Identity {
		t.Errorf("IDENTITY_SOURCE does not count: %+v", n)
	}
}

func FuzzParseNode(f *testing.F) {
	f.Add("sidecar~10.60.1.6~pod.ns~ns.svc.cluster.local", "INSTANCE_IPS", "10.0.0.1,::")
	f.Fuzz(func(t *testing.T, id, key, value string) {
		n, err := envoy.ParseNode(&corev3.Node{
			Id:       id,
			Metadata: &structpb.Struct{Fields: map[string]*structpb.Value{key: structpb.NewStringValue(value)}},
		})
		if err == nil && (len(n.Addresses) == 0 || n.Type == "") {
			t.Errorf("an incomplete node is taken: %+v", n)
		}
	})
}
