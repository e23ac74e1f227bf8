package docs

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tcpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"

	"isthmus.dev/isthmus/xds/xdstest"
)

// unknown is what Istio's filter writes where it does not know.
const unknown = "unknown"

// countingProxy is a proxy with Istio's filters, and what a hub sends to it.
type countingProxy struct {
	node      *corev3.Node
	clusters  map[string]*clusterv3.Cluster
	endpoints map[string]*endpointv3.ClusterLoadAssignment
	listeners map[string]*listenerv3.Listener
}

// proxyOf connects a proxy that lists Istio's filters. Its metadata is what Istio's agent says about a pod of
// the workload.
func proxyOf(t *testing.T, h *hub, kind, address, namespace, workload string, labels map[string]any) *countingProxy {
	t.Helper()
	metadata, err := structpb.NewStruct(map[string]any{
		"CLUSTER_ID": "c1", "NAMESPACE": namespace, "WORKLOAD_NAME": workload, "LABELS": labels, "ISTIO_VERSION": "1.32.0",
		"WORKLOAD_IDENTITY_SOCKET_FILE": "socket", "INTERCEPTION_MODE": "REDIRECT",
	})
	if err != nil {
		t.Fatal(err)
	}
	p := &countingProxy{
		clusters: map[string]*clusterv3.Cluster{}, endpoints: map[string]*endpointv3.ClusterLoadAssignment{},
		listeners: map[string]*listenerv3.Listener{},
		node: &corev3.Node{
			Id:         kind + "~" + address + "~" + workload + "." + namespace + "~" + namespace + ".svc.cluster.local",
			Metadata:   metadata,
			Extensions: []*corev3.Extension{{Name: "istio.stats"}, {Name: "istio.metadata_exchange"}},
		},
	}
	p.fetch(t, h.xds)
	return p
}

func (p *countingProxy) fetch(t *testing.T, socket string) {
	t.Helper()
	conn, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	client, err := xdstest.Open(t.Context(), conn, xdstest.Options{Node: p.node})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	fetchInto(t, client, xdstest.CDS, nil, p.clusters)
	var dynamic []string
	for _, name := range slices.Sorted(maps.Keys(p.clusters)) {
		if p.clusters[name].GetType() == clusterv3.Cluster_EDS {
			dynamic = append(dynamic, name)
		}
	}
	fetchInto(t, client, xdstest.EDS, dynamic, p.endpoints)
	fetchInto(t, client, xdstest.LDS, nil, p.listeners)
}

// fetchInto asks once for resources of a type.
func fetchInto[M proto.Message](t *testing.T, client *xdstest.Client, typ string, names []string, into map[string]M) {
	t.Helper()
	if err := client.Send(xdstest.Request{Type: typ, Names: names}); err != nil {
		t.Fatal(err)
	}
	for {
		r, err := client.Receive(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if r.Type != typ {
			continue
		}
		if err := client.Ack(r); err != nil {
			t.Fatal(err)
		}
		for name, packed := range r.Resources {
			m, err := packed.UnmarshalNew()
			if err != nil {
				t.Fatal(err)
			}
			into[name], _ = m.(M)
		}
		return
	}
}

// counts fails the test unless Istio's filters are in every chain that the proxy has in that direction for requests, or that leads
// connections to the cluster: the one that says who is at the other end before the one that counts. For connections to others, the
// first is part of the cluster.
func (p *countingProxy) counts(t *testing.T, direction corev3.TrafficDirection, cluster string, requests bool) {
	t.Helper()
	chains := 0
	for name, l := range p.listeners {
		if l.GetTrafficDirection() != direction {
			continue
		}
		for _, chain := range append(slices.Clone(l.GetFilterChains()), l.GetDefaultFilterChain()) {
			filters := counted(t, chain, cluster, requests)
			if filters == nil {
				continue
			}
			chains++
			if !requests && direction == corev3.TrafficDirection_OUTBOUND {
				for _, f := range p.clusters[cluster].GetFilters() {
					filters = slices.Insert(filters, 0, f.GetName())
				}
			}
			exchange, stats := slices.Index(filters, "istio.metadata_exchange"), slices.Index(filters, "istio.stats")
			if exchange < 0 || stats < exchange {
				t.Errorf("%s: of listener %s, a chain does not count: %v", p.node.GetId(), name, filters)
			}
		}
	}
	if chains == 0 {
		t.Errorf("%s has no chain %s to %s", p.node.GetId(), direction, cluster)
	}
}

// counted are the names of a chain's filters for requests, or of those for connections to the cluster; nil if it has none.
func counted(t *testing.T, chain *listenerv3.FilterChain, cluster string, requests bool) []string {
	t.Helper()
	var names []string
	for _, f := range chain.GetFilters() {
		manager, tcp := &hcmv3.HttpConnectionManager{}, &tcpv3.TcpProxy{}
		switch config := f.GetTypedConfig(); {
		case config.MessageIs(manager) && requests:
			unpack(t, config, manager)
			names = nil
			for _, f := range manager.GetHttpFilters() {
				names = append(names, f.GetName())
			}
			return names
		case config.MessageIs(tcp) && !requests:
			unpack(t, config, tcp)
			if tcp.GetCluster() == cluster {
				return append(names, f.GetName())
			}
		}
		names = append(names, f.GetName())
	}
	return nil
}

func unpack(t *testing.T, packed *anypb.Any, into proto.Message) {
	t.Helper()
	if err := packed.UnmarshalTo(into); err != nil {
		t.Fatal(err)
	}
}

// party is what Istio's filter knows about one end of a connection.
type party struct{ workload, namespace, service, revision, app, version, cluster, principal string }

// told is what a proxy tells about itself, as metadata of its node.
func (p *countingProxy) told(account string) party {
	said := p.node.GetMetadata().GetFields()
	text := func(name string) string { return said[name].GetStringValue() }
	label := func(name string) string { return said["LABELS"].GetStructValue().GetFields()[name].GetStringValue() }
	return party{
		workload: text("WORKLOAD_NAME"), namespace: text("NAMESPACE"), cluster: text("CLUSTER_ID"),
		service:  cmp.Or(label("service.istio.io/canonical-name"), label("app"), text("WORKLOAD_NAME")),
		revision: label("version"), app: label("app"), version: label("version"),
		principal: "spiffe://cluster.local/ns/" + text("NAMESPACE") + "/sa/" + account,
	}
}

// behind is what the endpoint of an address says about its workload: NAME;NAMESPACE;SERVICE;REVISION;CLUSTER.
func (p *countingProxy) behind(t *testing.T, cluster, address string) party {
	t.Helper()
	for _, group := range p.endpoints[cluster].GetEndpoints() {
		for _, e := range group.GetLbEndpoints() {
			if e.GetEndpoint().GetAddress().GetSocketAddress().GetAddress() != address {
				continue
			}
			said := strings.Split(e.GetMetadata().GetFilterMetadata()["istio"].GetFields()["workload"].GetStringValue(), ";")
			if len(said) != 5 {
				t.Fatalf("%s in %s says %q about its workload", address, cluster, said)
			}
			return party{workload: said[0], namespace: said[1], service: said[2], revision: said[3], cluster: said[4]}
		}
	}
	t.Fatalf("%s has no endpoint %s", cluster, address)
	return party{}
}

// labels are those of a party, as the source or the destination.
func (p party) labels(side string) map[string]string {
	return map[string]string{
		side + "_workload": cmp.Or(p.workload, unknown), side + "_workload_namespace": cmp.Or(p.namespace, unknown),
		side + "_canonical_service": cmp.Or(p.service, unknown), side + "_canonical_revision": cmp.Or(p.revision, "latest"),
		side + "_app": cmp.Or(p.app, unknown), side + "_version": cmp.Or(p.version, unknown),
		side + "_cluster": cmp.Or(p.cluster, unknown), side + "_principal": cmp.Or(p.principal, unknown),
	}
}

// transfer is what passes between two parties, as the proxy of one of them counts it.
type transfer struct {
	reporter, cluster string // the cluster of the reporting proxy
	source, server    party
	requests          bool
	security          string // mutual_tls, none or unknown
}

// series are what Istio's filter of the proxy writes about the transfer, by Istio's documentation of its labels. A service is known by the
// metadata of its cluster.
func (p *countingProxy) series(t *testing.T, x transfer) []series {
	t.Helper()
	labels := map[string]string{
		"reporter": x.reporter, "response_flags": "-", "connection_security_policy": x.security, "request_protocol": "tcp",
		"destination_service_namespace": cmp.Or(x.server.namespace, unknown),
	}
	maps.Copy(labels, x.source.labels("source"))
	maps.Copy(labels, x.server.labels("destination"))
	services := p.clusters[x.cluster].GetMetadata().GetFilterMetadata()["istio"].GetFields()["services"].GetListValue().GetValues()
	if len(services) != 1 {
		t.Fatalf("%s: the metadata of the cluster %s names %d services", p.node.GetId(), x.cluster, len(services))
	}
	service := services[0].GetStructValue().GetFields()
	labels["destination_service"] = service["host"].GetStringValue()
	labels["destination_service_name"] = service["name"].GetStringValue()
	counters := []string{
		"istio_tcp_sent_bytes_total", "istio_tcp_received_bytes_total", "istio_tcp_connections_opened_total", "istio_tcp_connections_closed_total",
	}
	var all []series
	if x.requests {
		labels["request_protocol"], labels["response_code"], labels["grpc_response_status"] = "http", "200", ""
		counters = []string{"istio_requests_total"}
		for _, name := range []string{"istio_request_duration_milliseconds", "istio_request_bytes", "istio_response_bytes"} {
			for _, bucket := range []string{"1", "1000", "+Inf"} {
				all = append(all, growing(name+"_bucket", labels, `le="`+bucket+`"`))
			}
			counters = append(counters, name+"_sum", name+"_count")
		}
	}
	for _, name := range counters {
		all = append(all, growing(name, labels))
	}
	return all
}

func growing(name string, labels map[string]string, more ...string) series {
	for _, label := range slices.Sorted(maps.Keys(labels)) {
		more = append(more, fmt.Sprintf("%s=%q", label, labels[label]))
	}
	return series{Series: name + "{" + strings.Join(more, ",") + "}", Values: "0+60x10"}
}
