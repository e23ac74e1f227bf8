// Package facettest makes snapshots for tables of tests of what facets see.
package facettest

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/facet"
	"isthmus.dev/isthmus/xds/envoy/node"
)

// Mesh is the mesh of a row of a table.
type Mesh struct {
	Services []Service
	Rules    []string // DestinationRules: NAMESPACE/NAME HOST SPEC, without the host
	Objects  []*federation.Object
	Settings *federation.MeshSettings
}

// Service is what a cluster has at NAMESPACE/HOSTNAME.
type Service struct {
	Name     string
	Cluster  federation.ClusterID
	Provider federation.Provider // empty: Kubernetes
	federation.Shard
}

// Snapshot is the view of the mesh. Rules are as old as their place in the list says.
func (m Mesh) Snapshot(t testing.TB) *federation.Snapshot {
	t.Helper()
	snapshot, byShard := federation.Empty(), map[federation.ShardKey]federation.Edit{}
	for _, s := range m.Services {
		if s.Provider == "" {
			s.Provider = federation.Kubernetes
		}
		namespace, host, _ := strings.Cut(s.Name, "/")
		source := federation.ShardKey{Cluster: s.Cluster, Provider: s.Provider}
		e, known := byShard[source]
		if !known {
			e = federation.Edit{Source: source, Status: &federation.RegistryStatus{Phase: federation.Ready}}
			e.Services.Set = map[federation.ServiceKey]*federation.Shard{}
			byShard[source] = e
		}
		e.Services.Set[federation.ServiceKey{Hostname: federation.Hostname(host), Namespace: namespace}] = &s.Shard
	}
	objects := federation.Edit{}
	objects.Objects.Set = map[federation.ObjectKey]*federation.Object{}
	for _, o := range m.Objects {
		objects.Objects.Set[o.Key] = o
	}
	if m.Settings != nil {
		objects.Objects.Set[federation.MeshSettingsKey] = &federation.Object{Key: federation.MeshSettingsKey, Spec: m.Settings}
	}
	for i, rule := range m.Rules {
		o := parseRule(t, rule)
		o.Created = time.Unix(int64(i), 0)
		objects.Objects.Set[o.Key] = o
	}
	snapshot, _ = federation.Next(snapshot, objects)
	for source, e := range byShard {
		if !source.Provider.OfConfiguration() {
			clusters := federation.Edit{}
			clusters.Clusters.Set = map[federation.ClusterID]federation.ClusterSpec{source.Cluster: {Provider: source.Provider}}
			snapshot, _ = federation.Next(snapshot, clusters)
		}
		snapshot, _ = federation.Next(snapshot, e)
	}
	return snapshot
}

func parseRule(t testing.TB, text string) *federation.Object {
	t.Helper()
	words := strings.SplitN(text, " ", 3)
	namespace, name, _ := strings.Cut(words[0], "/")
	spec := &networking.DestinationRule{Host: words[1]}
	if err := protojson.Unmarshal([]byte(words[2]), spec); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	spec.Host = words[1]
	kind := federation.DestinationRuleKind
	return &federation.Object{
		Key:  federation.ObjectKey{Group: kind.Group, Kind: kind.Name, Namespace: namespace, Name: name},
		Spec: spec, Names: []string{words[1]},
	}
}

// View is what proxies of the facet see of the mesh.
func (m Mesh) View(t testing.TB, f node.Facet) *facet.View {
	t.Helper()
	return facet.Open(f, m.Snapshot(t).Read())
}

// Port is a port called PROTOCOL-NUMBER.
func Port(number uint16, protocol federation.Protocol) federation.Port {
	return federation.Port{Name: fmt.Sprintf("%s-%d", strings.ToLower(string(protocol)), number), Number: number, Protocol: protocol}
}

// Endpoint listens at the address, an IP or a name, on the service's own ports.
func Endpoint(address string, ports ...federation.Port) federation.Endpoint {
	e := federation.Endpoint{Address: federation.HostAddress(address), Network: federation.DefaultNetwork}
	if ip, err := netip.ParseAddr(address); err == nil {
		e.Address = federation.IPAddress(ip)
	}
	for _, p := range ports {
		e.Ports = append(e.Ports, federation.EndpointPort{Name: p.Name, Number: p.Number})
	}
	return e
}
