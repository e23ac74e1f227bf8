package derive_test

import (
	"fmt"
	"net/netip"

	"pgregory.net/rapid"

	"isthmus.dev/isthmus/federation"
)

// The histories of the tests are about few things, so that edits meet.
var (
	hosts     = []federation.Hostname{"a.x", "b.x", "c.y"}
	networks  = []federation.NetworkID{"n1", "n2"}
	clusterID = []federation.ClusterID{"c1", "c2"}
	ruleKind  = federation.Kind{Group: "test", Name: "Rule"}
)

func address(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}) }

func drawKey(t *rapid.T) federation.ServiceKey {
	return federation.ServiceKey{
		Hostname:  rapid.SampledFrom(hosts).Draw(t, "host"),
		Namespace: rapid.SampledFrom([]string{"ns", "other"}).Draw(t, "namespace"),
	}
}

func drawShard(t *rapid.T) *federation.Shard {
	s := &federation.Shard{Resolution: federation.Resolution(rapid.IntRange(0, 2).Draw(t, "resolution"))}
	for i := range rapid.IntRange(0, 2).Draw(t, "ports") {
		s.Ports = append(s.Ports, federation.Port{Name: fmt.Sprint("p", i), Number: uint16(80 + i), Protocol: federation.HTTP})
	}
	for range rapid.IntRange(0, 2).Draw(t, "endpoints") {
		s.Endpoints = append(s.Endpoints, federation.Endpoint{
			Address: federation.IPAddress(address(rapid.IntRange(0, 3).Draw(t, "address"))),
			Network: rapid.SampledFrom(networks).Draw(t, "endpoint network"),
			Ports:   []federation.EndpointPort{{Name: "p0", Number: 8080}}, ServiceAccount: rapid.SampledFrom([]string{"", "sa"}).Draw(t, "account"),
		})
	}
	if rapid.Bool().Draw(t, "vip") {
		s.VIPs = []netip.Prefix{netip.PrefixFrom(address(200+rapid.IntRange(0, 1).Draw(t, "which VIP")), 32)}
	}
	if rapid.IntRange(0, 3).Draw(t, "alias") == 0 {
		s.ExternalName = rapid.SampledFrom(hosts).Draw(t, "target")
	}
	return s
}

func drawEdit(t *rapid.T) federation.Edit {
	source := federation.ShardKey{Cluster: rapid.SampledFrom(clusterID).Draw(t, "cluster"), Provider: federation.Kubernetes}
	e := federation.Edit{Source: source}
	switch rapid.IntRange(0, 9).Draw(t, "what") {
	case 0, 1:
		e.Services.Set = map[federation.ServiceKey]*federation.Shard{drawKey(t): drawShard(t)}
	case 2:
		e.Services.Gone = []federation.ServiceKey{drawKey(t)}
	case 3:
		spec := federation.ClusterSpec{
			Provider: source.Provider,
			Network:  rapid.SampledFrom([]federation.NetworkID{"", "n1", "n2"}).Draw(t, "own network"),
		}
		spec.TrustDomain = rapid.SampledFrom([]string{"", "td.example"}).Draw(t, "trust domain")
		e.Clusters.Set = map[federation.ClusterID]federation.ClusterSpec{source.Cluster: spec}
		if rapid.IntRange(0, 3).Draw(t, "detached") == 0 {
			e.Clusters = federation.Delta[federation.ClusterID, federation.ClusterSpec]{Gone: []federation.ClusterID{source.Cluster}}
		}
	case 4:
		e.Workloads = drawWorkload(t)
	case 5:
		e.Settings = &federation.Settings{Addresses: federation.AddressPolicy{AllowLoopback: rapid.Bool().Draw(t, "loopback")}}
	case 6:
		from := federation.KeySource{
			URI:    rapid.SampledFrom([]string{"https://a.x", "https://b.x"}).Draw(t, "keys at"),
			OpenID: rapid.Bool().Draw(t, "OpenID"),
		}
		e.KeySets.Set = map[federation.KeySource]federation.KeySet{from: {Keys: rapid.SampledFrom([]string{"", "k"}).Draw(t, "keys")}}
		if rapid.IntRange(0, 3).Draw(t, "keys gone") == 0 {
			e.KeySets = federation.Delta[federation.KeySource, federation.KeySet]{Gone: []federation.KeySource{from}}
		}
	case 7:
		e.Problems = drawProblems(t)
	default:
		e.Source, e.Objects = federation.ShardKey{Provider: federation.Operator}, drawObject(t)
	}
	return e
}

// drawProblems has texts of objects that begin with that of another.
func drawProblems(t *rapid.T) (d federation.Delta[string, federation.Problem]) {
	name := rapid.SampledFrom([]string{"one", "two"}).Draw(t, "problem")
	d.Full = rapid.IntRange(0, 3).Draw(t, "complete") == 0
	if d.Full && rapid.Bool().Draw(t, "none") {
		return d
	}
	d.Set = map[string]federation.Problem{name: {
		Object: rapid.SampledFrom([]string{"Rule r1", "Rule r1\x00", "Rule r1\x00c1", "Rule", ""}).Draw(t, "problem of"),
		Code:   rapid.SampledFrom([]string{"A", "B"}).Draw(t, "code"),
	}}
	return d
}

func drawWorkload(t *rapid.T) (d federation.Delta[federation.WorkloadKey, *federation.Workload]) {
	key := federation.WorkloadKey{Namespace: "ns", Name: rapid.SampledFrom([]string{"w1", "w2"}).Draw(t, "workload")}
	if rapid.IntRange(0, 3).Draw(t, "workload gone") == 0 {
		d.Gone = []federation.WorkloadKey{key}
		return d
	}
	d.Set = map[federation.WorkloadKey]*federation.Workload{key: {
		Addresses: []netip.Addr{address(rapid.IntRange(0, 3).Draw(t, "workload address"))},
		Labels:    map[string]string{"v": rapid.SampledFrom([]string{"1", "2"}).Draw(t, "label")},
		Network:   rapid.SampledFrom([]federation.NetworkID{"", "n1", "n2"}).Draw(t, "workload network"),
	}}
	return d
}

func drawObject(t *rapid.T) (d federation.Delta[federation.ObjectKey, *federation.Object]) {
	var o *federation.Object
	switch rapid.IntRange(0, 2).Draw(t, "kind") {
	case 0:
		key := federation.ObjectKey{
			Group: ruleKind.Group, Kind: ruleKind.Name, Namespace: rapid.SampledFrom([]string{"ns", "other"}).Draw(t,
				"rule namespace"), Name: rapid.SampledFrom([]string{"r1", "r2"}).Draw(t, "rule"),
			Cluster: rapid.SampledFrom([]federation.ClusterID{"", "", "c1", "c2"}).Draw(t, "of cluster"),
		}
		name := rapid.SampledFrom([]string{"a.x", "b.x", "*.x", "*.y", "*"}).Draw(t, "about")
		o = &federation.Object{
			Key: key, Names: []string{name}, Spec: name,
			ProxyLabels: rapid.SampledFrom([][]string{nil, {"app"}}).Draw(t, "selects by"),
		}
	case 1:
		spec := &federation.NetworkObject{}
		if rapid.Bool().Draw(t, "ranges") {
			spec.CIDRs = []netip.Prefix{netip.PrefixFrom(address(0), rapid.IntRange(29, 32).Draw(t, "bits"))}
		}
		if rapid.Bool().Draw(t, "lists") {
			spec.Clusters = []federation.ClusterID{rapid.SampledFrom(clusterID).Draw(t, "listed")}
		}
		if rapid.Bool().Draw(t, "has a gateway") {
			spec.Gateways = []federation.NetworkGateway{{Address: address(210).String()}}
		}
		o = &federation.Object{Key: federation.ObjectKey{
			Group: federation.MeshGroup, Kind: federation.NetworkKind.Name,
			Name: string(rapid.SampledFrom(networks).Draw(t, "network")),
		}, Spec: spec}
	default:
		o = &federation.Object{
			Key:  federation.MeshSettingsKey,
			Spec: &federation.MeshSettings{TrustDomain: rapid.SampledFrom([]string{"one", "two"}).Draw(t, "mesh")},
		}
	}
	if rapid.IntRange(0, 3).Draw(t, "object gone") == 0 {
		d.Gone = []federation.ObjectKey{o.Key}
		return d
	}
	o.Digest = fmt.Sprintf("%+v %v", o.Spec, o.ProxyLabels)
	d.Set = map[federation.ObjectKey]*federation.Object{o.Key: o}
	return d
}
