package federationtest

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"isthmus.dev/isthmus/federation"
)

// clusterFile is what the registry of one cluster says, in a form that is
// pleasant to write by hand.
type clusterFile struct {
	Provider   federation.Provider  `json:"provider"`
	Network    federation.NetworkID `json:"network"`
	Precedence int                  `json:"precedence"`
	Trust      string               `json:"trustDomain"`
	Services   []serviceFile        `json:"services"`
	Workloads  []workloadFile       `json:"workloads"`
}

type serviceFile struct {
	Hostname            federation.Hostname   `json:"hostname"`
	Namespace           string                `json:"namespace"`
	VIPs                []string              `json:"vips"`
	Ports               []federation.Port     `json:"ports"`
	Resolution          string                `json:"resolution"`
	MeshExternal        bool                  `json:"meshExternal"`
	ExportTo            []string              `json:"exportTo"`
	TrafficDistribution string                `json:"trafficDistribution"`
	AffinitySeconds     uint32                `json:"affinitySeconds"`
	Endpoints           []endpointFile        `json:"endpoints"`
	Labels              map[string]string     `json:"labels"`
	External            []federation.Address  `json:"external"`
	Aliases             []federation.Hostname `json:"aliases"`
	ExternalName        federation.Hostname   `json:"externalName"`
	Selector            *selectorFile         `json:"selector"`
	Bound               []boundFile           `json:"bound"`
}

type selectorFile struct {
	Labels      map[string]string     `json:"labels"`
	Providers   []federation.Provider `json:"providers"`
	TargetPorts map[string]uint16     `json:"targetPorts"`
	TargetNames map[string]string     `json:"targetNames"`
}

type boundFile struct {
	Hostname  federation.Hostname    `json:"hostname"`
	Namespace string                 `json:"namespace"` // empty: that of the service
	Clusters  []federation.ClusterID `json:"clusters"`
	Weight    *uint32                `json:"weight"` // absent: 1
}

type endpointFile struct {
	Address        federation.Address   `json:"address"`
	Ports          map[string]uint16    `json:"ports"` // absent: the numbers of the service's ports
	Network        federation.NetworkID `json:"network"`
	Locality       string               `json:"locality"` // REGION/ZONE/SUBZONE
	Weight         uint32               `json:"weight"`
	Health         federation.Health    `json:"health"`
	Labels         map[string]string    `json:"labels"`
	ServiceAccount string               `json:"serviceAccount"`
	TLSMode        string               `json:"tlsMode"`
	Workload       string               `json:"workload"`
	Hostname       string               `json:"hostname"`
}

type workloadFile struct {
	Name            string               `json:"name"`
	Namespace       string               `json:"namespace"`
	Addresses       []netip.Addr         `json:"addresses"`
	Network         federation.NetworkID `json:"network"`
	Locality        string               `json:"locality"`
	Labels          map[string]string    `json:"labels"`
	ManagementPorts []federation.Port    `json:"managementPorts"`
	Host            federation.Address   `json:"host"`
	Ports           map[string]uint16    `json:"ports"`
	Weight          uint32               `json:"weight"`
	TLSMode         string               `json:"tlsMode"`
	Health          federation.Health    `json:"health"`
	ServiceAccount  string               `json:"serviceAccount"`
}

func (s *Scenario) operator(e federation.Edit) {
	w := s.Aggregate.Open(federation.ShardKey{Provider: federation.Operator})
	defer w.Close()
	w.Update(e)
}

// registry is what a cluster was attached with, and the writer of its registry.
type registry struct {
	spec   federation.ClusterSpec
	writer *federation.Writer
}

// applyCluster attaches a cluster, or has its registry say what it has now.
func (s *Scenario) applyCluster(t testing.TB, id string, f txtar.File) {
	t.Helper()
	var c clusterFile
	decode(t, f.Name, f.Data, &c)
	r := registry{spec: federation.ClusterSpec{Provider: c.Provider, Network: c.Network, Precedence: c.Precedence, TrustDomain: c.Trust}}
	if known, ok := s.clients[id]; ok && known.spec == r.spec {
		r = known
	} else {
		s.operator(federation.Edit{Clusters: federation.Delta[federation.ClusterID, federation.ClusterSpec]{
			Set: map[federation.ClusterID]federation.ClusterSpec{federation.ClusterID(id): r.spec},
		}})
		r.writer = s.Aggregate.Open(federation.ShardKey{Cluster: federation.ClusterID(id), Provider: c.Provider})
		s.clients[id] = r
	}
	r.writer.Update(c.edit(t))
}

func (c clusterFile) edit(t testing.TB) federation.Edit {
	e := federation.Edit{Status: &federation.RegistryStatus{Phase: federation.Ready}}
	e.Services.Full, e.Services.Set = true, map[federation.ServiceKey]*federation.Shard{}
	e.Workloads.Full, e.Workloads.Set = true, map[federation.WorkloadKey]*federation.Workload{}
	for _, svc := range c.Services {
		e.Services.Set[federation.ServiceKey{Hostname: svc.Hostname, Namespace: svc.Namespace}] = c.shard(t, svc)
	}
	for _, w := range c.Workloads {
		e.Workloads.Set[federation.WorkloadKey{Namespace: w.Namespace, Name: w.Name}] = c.workload(w)
	}
	return e
}

func (c clusterFile) workload(w workloadFile) *federation.Workload {
	out := &federation.Workload{
		Addresses: w.Addresses, Network: first(w.Network, c.Network), Locality: locality(w.Locality), Labels: w.Labels,
		ManagementPorts: w.ManagementPorts,
		Host:            w.Host, Weight: w.Weight, TLSMode: w.TLSMode, Health: w.Health, ServiceAccount: w.ServiceAccount,
	}
	for _, name := range slices.Sorted(maps.Keys(w.Ports)) {
		out.Ports = append(out.Ports, federation.EndpointPort{Name: name, Number: w.Ports[name]})
	}
	return out
}

func (c clusterFile) shard(t testing.TB, svc serviceFile) *federation.Shard {
	shard := &federation.Shard{
		Ports: svc.Ports, Resolution: resolution(t, svc.Resolution), MeshExternal: svc.MeshExternal,
		ExportTo: svc.ExportTo, TrafficDistribution: svc.TrafficDistribution, Labels: svc.Labels, External: svc.External,
		Affinity: federation.ClientAffinity{Seconds: svc.AffinitySeconds},
		Aliases:  svc.Aliases, ExternalName: svc.ExternalName,
	}
	if sel := svc.Selector; sel != nil {
		shard.Selector = &federation.Selector{
			Labels: sel.Labels, Providers: sel.Providers, TargetPorts: sel.TargetPorts,
			TargetNames: sel.TargetNames,
		}
	}
	for _, b := range svc.Bound {
		shard.Bound = append(shard.Bound, b.bound(svc.Namespace))
	}
	for _, v := range svc.VIPs {
		shard.VIPs = append(shard.VIPs, prefix(t, v))
	}
	for _, e := range svc.Endpoints {
		out := federation.Endpoint{
			Address: e.Address, Network: first(e.Network, c.Network), Locality: locality(e.Locality),
			Weight: e.Weight, Health: e.Health, Labels: e.Labels, ServiceAccount: e.ServiceAccount,
			TLSMode: e.TLSMode, Workload: e.Workload, Hostname: e.Hostname,
		}
		for _, p := range svc.Ports {
			number, ok := e.Ports[p.Name]
			if e.Ports == nil {
				number, ok = p.Number, true
			}
			if ok {
				out.Ports = append(out.Ports, federation.EndpointPort{Name: p.Name, Number: number})
			}
		}
		shard.Endpoints = append(shard.Endpoints, out)
	}
	return shard
}

func (b boundFile) bound(namespace string) federation.BoundService {
	out := federation.BoundService{
		Service: federation.ServiceKey{Hostname: b.Hostname, Namespace: cmp.Or(b.Namespace, namespace)}, Clusters: b.Clusters, Weight: 1,
	}
	if b.Weight != nil {
		out.Weight = *b.Weight
	}
	return out
}

func first(ids ...federation.NetworkID) federation.NetworkID {
	for _, id := range ids {
		if id != "" {
			return id
		}
	}
	return federation.DefaultNetwork
}

func locality(s string) federation.Locality {
	parts := append(strings.Split(s, "/"), "", "")
	return federation.Locality{Region: parts[0], Zone: parts[1], SubZone: parts[2]}
}

func resolution(t testing.TB, name string) federation.Resolution {
	t.Helper()
	for _, r := range []federation.Resolution{
		federation.ClientSideLB, federation.DNSLB, federation.Passthrough, federation.DNSRoundRobinLB, federation.DynamicDNS,
	} {
		if name == r.String() || name == "" {
			return r
		}
	}
	t.Fatalf("unknown resolution %q", name)
	return 0
}

func prefix(t testing.TB, s string) netip.Prefix {
	t.Helper()
	if p, err := netip.ParsePrefix(s); err == nil {
		return p
	}
	ip, err := netip.ParseAddr(s)
	if err != nil {
		t.Fatalf("VIP %q: %v", s, err)
	}
	return netip.PrefixFrom(ip, ip.BitLen())
}
