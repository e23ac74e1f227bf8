package mcp_test

import (
	"encoding/json"
	"log/slog"
	"maps"
	"net/netip"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	mcpapi "istio.io/api/mcp/v1alpha1"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/kind"
	"isthmus.dev/isthmus/federation/config/mcp"
	"isthmus.dev/isthmus/federation/config/schema"
	"isthmus.dev/isthmus/federation/federationtest"
	served "isthmus.dev/isthmus/xds/mcp"
)

const entries = "networking.istio.io/v1/ServiceEntry"

// nothing is a configuration without objects.
type nothing struct{}

func (nothing) LatestPublished() *config.View {
	return &config.View{State: config.NewState(config.Options{})}
}

// TestM07ServicesAreValidServiceEntries: whatever registries say, a consumer that validates
// ServiceEntries takes those of the services, and a change makes the resources of a hub that
// has just started.
func TestM07ServicesAreValidServiceEntries(t *testing.T) {
	set, err := schema.Load(kind.Expressions)
	if err != nil {
		t.Fatal(err)
	}
	admits := kind.Schema{Set: set}
	of := func(from *federation.Aggregate) *served.Table {
		return served.New(served.Options{
			Snapshots: from, Views: nothing{}, Kinds: set.Kinds(), Origin: "ORIGIN123",
			Logger: slog.New(slog.DiscardHandler),
		})
	}
	any := 0
	federationtest.EachFile(t, func(t *testing.T, s *federationtest.Scenario) {
		table := of(s.Aggregate)
		for more := true; more; more = s.Next(t) {
			now := versions(table)
			if fresh := versions(of(s.Aggregate)); !maps.Equal(now, fresh) {
				t.Errorf("after the change there are %v, and from nothing %v", now, fresh)
			}
			all, _ := table.Of(entries)
			all.Walk(func(_ string, r *served.Resource) bool {
				any++
				m := unpack(t, r)
				if m.GetMetadata().GetAnnotations()[mcp.OriginAnnotation] != "ORIGIN123" {
					t.Errorf("%s does not say where it comes from", r.Name)
				}
				if _, problems := admits.Admit(manifest(t, m)); len(problems) > 0 {
					t.Errorf("%s is not valid: %+v", r.Name, problems)
				}
				return false
			})
		}
	})
	if any < 100 {
		t.Errorf("there were %d ServiceEntries", any)
	}
}

// TestM07WhatAServiceEntrySays: addresses, ports, networks and localities are those of the
// registries; external services are none.
func TestM07WhatAServiceEntrySays(t *testing.T) {
	set, err := schema.Load(kind.Expressions)
	if err != nil {
		t.Fatal(err)
	}
	from := federation.NewAggregate(nil)
	edit := func(provider federation.Provider, id federation.ClusterID, address string) {
		key := federation.ServiceKey{Hostname: "web.shop.svc.cluster.local", Namespace: "shop"}
		from.Open(federation.ShardKey{Cluster: id, Provider: provider}).Update(federation.Edit{
			Clusters: federation.Delta[federation.ClusterID,
				federation.ClusterSpec]{Set: map[federation.ClusterID]federation.ClusterSpec{id: {Provider: provider}}},
			Services: federation.Delta[federation.ServiceKey, *federation.Shard]{Set: map[federation.ServiceKey]*federation.Shard{key: {
				Ports: []federation.Port{{Name: "http", Number: 80, Protocol: federation.HTTP}},
				Endpoints: []federation.Endpoint{{
					Address: federation.IPAddress(netip.MustParseAddr(address)), Ports: []federation.EndpointPort{{Name: "http", Number: 8080}},
					Network: "n1", Health: federation.Healthy,
					Locality: federation.Locality{Region: "eu", Zone: "a"}, ServiceAccount: "shop/web", TLSMode: "istio",
					Labels: map[string]string{"app": "web"},
				}},
			}}},
		})
	}
	edit(federation.External, "hub", "10.9.9.9")
	table := served.New(served.Options{
		Snapshots: from, Views: nothing{}, Kinds: set.Kinds(), Origin: "ORIGIN123",
		Logger: slog.New(slog.DiscardHandler),
	})
	if all, _ := table.Of(entries); all.Len() != 0 {
		t.Errorf("an external service is %d entries", all.Len())
	}
	edit(federation.Kubernetes, "c1", "10.0.0.1")
	all, _ := table.Of(entries)
	r, exists := all.Get("shop/isthmus-origin12.web.shop.svc.cluster.local")
	if !exists || all.Len() != 1 {
		t.Fatalf("there are %d entries", all.Len())
	}
	text, err := json.Marshal(manifest(t, unpack(t, r))["spec"])
	if err != nil {
		t.Fatal(err)
	}
	want := `{"endpoints":[{"address":"10.0.0.1","labels":{"app":"web","security.istio.io/tlsMode":"istio"},"locality":"eu/a","network":"n1","ports":{"http":8080},"serviceAccount":"web"}],` +
		`"hosts":["web.shop.svc.cluster.local"],"location":"MESH_INTERNAL","ports":[{"name":"http","number":80,"protocol":"HTTP"}],"resolution":"STATIC"}`
	if string(text) != want {
		t.Errorf("the entry is %s, want %s", text, want)
	}
	if _, known := table.Of("no.such/v1/Thing"); known {
		t.Error("a type is known that does not exist")
	}
}

func versions(t *served.Table) map[string]string {
	all, _ := t.Of(entries)
	found := map[string]string{}
	all.Walk(func(name string, r *served.Resource) bool { found[name] = r.Version; return false })
	return found
}

func unpack(t *testing.T, r *served.Resource) *mcpapi.Resource {
	t.Helper()
	var outer anypb.Any
	var m mcpapi.Resource
	if err := proto.Unmarshal(r.Any, &outer); err != nil {
		t.Fatal(err)
	}
	if err := outer.UnmarshalTo(&m); err != nil {
		t.Fatal(err)
	}
	return &m
}

func manifest(t *testing.T, m *mcpapi.Resource) map[string]any {
	t.Helper()
	body, err := m.GetBody().UnmarshalNew()
	if err != nil {
		t.Fatal(err)
	}
	text, err := protojson.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	spec := map[string]any{}
	if err := utiljson.Unmarshal(text, &spec); err != nil {
		t.Fatal(err)
	}
	namespace, name, _ := strings.Cut(m.GetMetadata().GetName(), "/")
	return map[string]any{
		"apiVersion": "networking.istio.io/v1", "kind": "ServiceEntry", "spec": spec,
		"metadata": map[string]any{"namespace": namespace, "name": name},
	}
}
