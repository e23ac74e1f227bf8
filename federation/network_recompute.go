package federation

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"isthmus.dev/isthmus/internal/noted"
)

// The labels with which a Service of a cluster says that it is the entry of a
// network, as Istio has them.
const (
	labelGatewayNetwork = "topology.istio.io/network"
	labelGatewayPort    = "networking.istio.io/gatewayPort"
)

// claims is the network of which the shard's labels make the service the entry,
// or "": the label is there, and the service has the port.
func (s *Shard) claims() NetworkID {
	if s == nil || s.Labels[labelGatewayNetwork] == "" {
		return ""
	}
	port := s.gatewayPort()
	if !slices.ContainsFunc(s.Ports, func(p Port) bool { return p.Number == port && p.Protocol.Transport() == TransportTCP }) {
		return ""
	}
	return NetworkID(s.Labels[labelGatewayNetwork])
}

// gatewayPort is where the service takes the mesh's traffic.
func (s *Shard) gatewayPort() uint16 {
	if n, err := strconv.ParseUint(s.Labels[labelGatewayPort], 10, 16); err == nil && n > 0 {
		return uint16(n)
	}
	return DefaultGatewayPort
}

// networking makes the networks.
type networking struct {
	networks *networksTxn
	clusters *clustersTxn
	changes  *changes
}

// recompute makes those networks again that were made from something that changed.
// Its cost is that of these, and of what changed.
func (n networking) recompute(from *networkSources, notes noted.Notes) {
	for id := range from.affected(notes) {
		n.replace(makeNetwork(from, id))
	}
}

// replace replaces the network by what was made.
func (n networking) replace(made networkMaker) {
	id, now := made.network.ID, made.network
	n.replaceRefused(id, now.Refused)
	old, had := n.networks.byID.Get(string(id))
	known := made.isDeclared || len(now.Clusters) > 0
	if !known && len(now.Refused) == 0 {
		made.read.Reader = noted.Reader{} // a new member, claim or object marks it again (Kind.About)
	}
	n.networks.notes.Replace(string(id), made.read.Reader)
	switch {
	case !known:
		if !had {
			return
		}
		n.networks.byID.Delete(string(id))
	case had && old.equal(now):
		return
	default:
		now.Version = n.changes.version
		n.networks.byID.Set(string(id), now)
	}
	n.changes.record(networkEntry, string(id))
}

// networkMaker makes one network.
type networkMaker struct {
	read       networkReader
	network    *Network
	isDeclared bool // it has an object
	byAddress  map[netip.AddrPort]bool
}

// makeNetwork makes the network. It depends on nothing but what is read.
func makeNetwork(from *networkSources, id NetworkID) networkMaker {
	m := networkMaker{read: networkReader{from: from}, network: &Network{ID: id}, byAddress: map[netip.AddrPort]bool{}}
	m.network.Clusters = m.read.clusters(id)
	o, declared := m.read.object(ObjectKey{Group: MeshGroup, Kind: NetworkKind.Name, Name: string(id)})
	if declared {
		m.isDeclared = true
		m.declared(o)
	}
	m.labelled()
	slices.SortFunc(m.network.Gateways, func(a, b Gateway) int { return a.Address.Compare(b.Address) })
	return m
}

// declared takes what the network's object says.
func (m *networkMaker) declared(o *Object) {
	spec, ok := o.Spec.(*NetworkObject)
	if !ok {
		return
	}
	m.network.CIDRs = slices.Clone(spec.CIDRs)
	for _, g := range spec.Gateways {
		m.network.Gated = true
		entry := Gateway{
			Locality: ParseLocality(g.Locality), From: slices.Compact(slices.Sorted(slices.Values(g.From))),
			Cause: GatewayCause{Object: o.Key},
		}
		port := cmp.Or(g.Port, DefaultGatewayPort)
		switch {
		case g.Address != "":
			ip, err := netip.ParseAddr(g.Address)
			if err != nil {
				m.refuse(g.Address, "is not an IP address", entry.Cause)
				continue
			}
			m.add(entry, ip, port)
		case g.Hostname != "":
			m.byName(entry, Hostname(strings.ToLower(g.Hostname)), port)
		default:
			m.byService(entry, g)
		}
	}
}

// labelled takes the services whose labels make them gateways.
func (m *networkMaker) labelled() {
	for _, c := range m.read.claims(m.network.ID) {
		svc, ok := m.read.service(c.service)
		if !ok || svc.Shards.Of(c.shard) == nil {
			continue
		}
		if why := m.refuseClaim(c); why != "" {
			m.refuse(c.service.String(), why, c.cause())
			continue
		}
		m.network.Gated = true
		m.external(Gateway{Locality: svc.commonLocality(c.shard), Cause: c.cause()}, svc.Shards.Of(c.shard), svc.Shards.Of(c.shard).gatewayPort())
	}
}

// refuseClaim tells why a label does not make the service a gateway: a user who
// may write Services in some namespace of some cluster must not be able to receive the
// traffic of a network.
func (m *networkMaker) refuseClaim(c claim) string {
	mesh := meshOf(m.read.object(MeshSettingsKey))
	if !mesh.AllowsGateways(c.service.Namespace) {
		return fmt.Sprintf("has the label %s, but gateways may not be in namespace %q; list it in gatewayNamespaces of MeshSettings, or name the service in the Network", labelGatewayNetwork, c.service.Namespace)
	}
	if home := m.read.home(c.shard.Cluster); home != m.network.ID {
		return fmt.Sprintf("has the label %s=%s, but its cluster %s is in network %s", labelGatewayNetwork, m.network.ID,
			c.shard.Cluster, home)
	}
	return ""
}

func (c claim) cause() GatewayCause {
	name, _, _ := strings.Cut(string(c.service.Hostname), ".")
	return GatewayCause{Object: ObjectKey{Kind: "Service", Namespace: c.service.Namespace, Name: name}, Shard: c.shard}
}

// problemOfGateway marks problems of labels.
const problemOfGateway = "g"

// replaceRefused follows which services of clusters are not taken for gateways, or not at
// all of their addresses.
func (n networking) replaceRefused(id NetworkID, now []RefusedGateway) {
	old, _ := n.networks.refused.Get(string(id))
	for _, r := range old {
		if r.Cause.Shard != (ShardKey{}) && !slices.Contains(now, r) {
			n.clusters.setProblem(r.Cause.Shard, problemOfGateway, r.name(id), nil)
		}
	}
	for _, r := range now {
		if r.Cause.Shard != (ShardKey{}) {
			n.clusters.setProblem(r.Cause.Shard, problemOfGateway, r.name(id), &Problem{
				Code: "GATEWAY_REFUSED", Object: r.Cause.Object.Title(), Field: "metadata.labels", Message: r.Gateway + " " + r.Why,
			})
		}
	}
	if len(now) == 0 {
		n.networks.refused.Delete(string(id))
		return
	}
	n.networks.refused.Set(string(id), now)
}

func (r RefusedGateway) name(id NetworkID) string {
	return string(id) + nul + r.Cause.Object.String() + nul + r.Gateway
}
