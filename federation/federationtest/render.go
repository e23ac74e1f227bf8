package federationtest

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"isthmus.dev/isthmus/federation"
	"sigs.k8s.io/yaml"
)

type snapshotText struct {
	Services []serviceText `json:"services"`
	Networks []networkText `json:"networks,omitempty"` // of those that have an object or a gateway
	Problems []string      `json:"problems,omitempty"`
}

type networkText struct {
	Network  federation.NetworkID   `json:"network"`
	Clusters []federation.ClusterID `json:"clusters,omitempty"`
	CIDRs    []netip.Prefix         `json:"cidrs,omitempty"`
	Gateways []string               `json:"gateways,omitempty"`
	Refused  []string               `json:"refused,omitempty"`
}

type serviceText struct {
	Service   string              `json:"service"`
	Decided   string              `json:"decided"` // what precedence decided
	VIPs      map[string][]string `json:"vips,omitempty"`
	Ports     []string            `json:"ports,omitempty"`
	Endpoints []string            `json:"endpoints,omitempty"`
	Conflicts []string            `json:"conflicts,omitempty"`
}

// Render writes a snapshot as a person would want to compare it.
func Render(t testing.TB, s *federation.Snapshot) []byte {
	t.Helper()
	var out snapshotText
	for svc := range s.Services().All() {
		out.Services = append(out.Services, renderService(svc))
	}
	for c := range s.Clusters() {
		for p := range s.Problems(c.ID) {
			out.Problems = append(out.Problems, fmt.Sprintf("%s %s: %s %s: %s", c.ID, p.Code, p.Object, p.Field, p.Message))
		}
	}
	for n := range s.Networks() {
		if n.Gated || len(n.CIDRs) > 0 {
			out.Networks = append(out.Networks, renderNetwork(n))
		}
	}
	data, err := yaml.Marshal(out)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func renderNetwork(n *federation.Network) networkText {
	out := networkText{Network: n.ID, Clusters: n.Clusters, CIDRs: n.CIDRs}
	for _, g := range n.Gateways {
		text := fmt.Sprintf("%s by %s", g.Address, g.Cause.Object.Title())
		if g.Cause.Shard.Cluster != "" {
			text += " of " + string(g.Cause.Shard.Cluster)
		}
		if g.Locality != (federation.Locality{}) {
			text += " in " + g.Locality.String()
		}
		if len(g.From) > 0 {
			text += fmt.Sprintf(" from %s", g.From)
		}
		out.Gateways = append(out.Gateways, text)
	}
	for _, r := range n.Refused {
		out.Refused = append(out.Refused, r.Gateway+" "+r.Why)
	}
	return out
}

func renderService(svc *federation.Service) serviceText {
	out := serviceText{Service: svc.Key.String(), Decided: svc.Resolution.String(), VIPs: map[string][]string{}}
	if svc.MeshExternal {
		out.Decided += " mesh-external"
	}
	for id, vips := range svc.ClusterVIPs.All() {
		for _, v := range vips {
			out.VIPs[string(id)] = append(out.VIPs[string(id)], vipText(v))
		}
	}
	for _, p := range svc.Ports {
		out.Ports = append(out.Ports, renderPort(p))
	}
	for _, group := range svc.Endpoints {
		for _, e := range group.Endpoints {
			out.Endpoints = append(out.Endpoints, renderEndpoint(group.Shard, e))
		}
	}
	for _, c := range svc.Conflicts {
		out.Conflicts = append(out.Conflicts, fmt.Sprintf("%s: %s", c.Kind, c.Message))
	}
	return out
}

func vipText(p netip.Prefix) string {
	if p.IsSingleIP() {
		return p.Addr().String()
	}
	return p.String()
}

func renderPort(p federation.ServicePort) string {
	var by []string
	for _, d := range p.Declared {
		by = append(by, fmt.Sprintf("%s as %s/%s", d.Shard, d.Name, d.Protocol))
	}
	return fmt.Sprintf("%d %s/%s declared by %s", p.Number, p.Name, p.Protocol, strings.Join(by, ", "))
}

func renderEndpoint(shard federation.ShardKey, e federation.Endpoint) string {
	var ports []string
	for _, p := range e.Ports {
		ports = append(ports, fmt.Sprintf("%s=%d", p.Name, p.Number))
	}
	text := fmt.Sprintf("%s %s on %s %s %s", shard, e.Address, e.Network, strings.Join(ports, ","), e.Health)
	if e.Locality != (federation.Locality{}) {
		text += " in " + e.Locality.String()
	}
	if e.Weight != 0 {
		text += fmt.Sprintf(" weight=%d", e.Weight)
	}
	if e.Cluster != "" {
		text += " of " + string(e.Cluster)
	}
	if e.Workload != "" {
		text += " workload=" + e.Workload
	}
	for _, k := range slices.Sorted(maps.Keys(e.Labels)) {
		text += fmt.Sprintf(" %s=%s", k, e.Labels[k])
	}
	return text
}
