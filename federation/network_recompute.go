package federation

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
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
	objects  *objectsTxn
	networks *networksTxn
	clusters *clustersTxn
	services *servicesTxn
	changes  *changes
	policy   *AddressPolicy
}

// recompute recomputes the networks of which anything changed. Its cost is that of
// these, and of the number of clusters.
func (n networking) recompute() {
	if n.networks.all {
		n.networks.origins.Walk(func(id string, _ origin) bool { n.networks.dirty[NetworkID(id)] = true; return false })
	}
	for id := range n.networks.dirty {
		n.recomputeNetwork(id)
	}
}

func (n networking) recomputeNetwork(id NetworkID) {
	old, had := n.networks.byID.Get(string(id))
	m := networkMaker{
		of: n, network: &Network{ID: id, Clusters: n.clusters.inNetwork(id)}, byAddress: map[netip.AddrPort]bool{},
		uses: map[string]gatewayUse{},
	}
	o, declared := n.objects.byKey.Get(ObjectKey{Group: MeshGroup, Kind: NetworkKind.Name, Name: string(id)}.SortKey())
	if declared {
		m.declared(o)
	}
	m.labelled()
	now := m.finish()
	n.replaceOrigin(id, origin{uses: m.uses, refused: now.Refused}, declared || len(now.Clusters) > 0)
	switch {
	case !declared && len(now.Clusters) == 0:
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
	of        networking
	network   *Network
	byAddress map[netip.AddrPort]bool
	uses      map[string]gatewayUse // by key
}

func (m *networkMaker) use(kind useKind, of string) {
	m.uses[kind.prefix(of)+string(m.network.ID)] = gatewayUse{of: of, network: m.network.ID}
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
			Locality: parseLocality(g.Locality), From: slices.Compact(slices.Sorted(slices.Values(g.From))),
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
	var claims []claim
	m.of.networks.claims.WalkPrefix(string(m.network.ID)+nul, func(_ string, c claim) bool {
		claims = append(claims, c)
		return false
	})
	for _, c := range claims {
		svc, ok := m.of.services.Get(c.service.sortKey())
		if !ok || svc.Shards.Of(c.shard) == nil {
			continue
		}
		if why := m.of.refuseClaim(m.network.ID, c); why != "" {
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
func (n networking) refuseClaim(id NetworkID, c claim) string {
	mesh := meshOf(n.objects.byKey.Get(MeshSettingsKey.SortKey()))
	if !mesh.AllowsGateways(c.service.Namespace) {
		return fmt.Sprintf("has the label %s, but gateways may not be in namespace %q; list it in gatewayNamespaces of MeshSettings, or name the service in the Network", labelGatewayNetwork, c.service.Namespace)
	}
	if cluster, _ := n.clusters.Get(string(c.shard.Cluster)); cluster.Network() != id {
		return fmt.Sprintf("has the label %s=%s, but its cluster %s is in network %s", labelGatewayNetwork, id,
			c.shard.Cluster, cluster.Network())
	}
	return ""
}

func (c claim) cause() GatewayCause {
	name, _, _ := strings.Cut(string(c.service.Hostname), ".")
	return GatewayCause{Object: ObjectKey{Kind: "Service", Namespace: c.service.Namespace, Name: name}, Shard: c.shard}
}

// problemOfGateway marks problems of labels.
const problemOfGateway = "g"

// replaceOrigin follows what the network was made of: what it looked at, and
// which services of clusters are not taken for gateways, or not at all of their
// addresses.
func (n networking) replaceOrigin(id NetworkID, now origin, known bool) {
	old, _ := n.networks.origins.Get(string(id))
	for k := range old.uses {
		if _, stays := now.uses[k]; !stays {
			n.networks.uses.Delete(k)
		}
	}
	for k, use := range now.uses {
		n.networks.uses.Set(k, use)
	}
	for _, r := range old.refused {
		if r.Cause.Shard != (ShardKey{}) && !slices.Contains(now.refused, r) {
			n.clusters.setProblem(r.Cause.Shard, problemOfGateway, r.name(id), nil)
		}
	}
	for _, r := range now.refused {
		if r.Cause.Shard != (ShardKey{}) {
			n.clusters.setProblem(r.Cause.Shard, problemOfGateway, r.name(id), &Problem{
				Code: "GATEWAY_REFUSED", Object: r.Cause.Object.Title(), Field: "metadata.labels", Message: r.Gateway + " " + r.Why,
			})
		}
	}
	if !known && len(now.uses) == 0 && len(now.refused) == 0 {
		n.networks.origins.Delete(string(id))
		return
	}
	n.networks.origins.Set(string(id), now)
}

func (r RefusedGateway) name(id NetworkID) string {
	return string(id) + nul + r.Cause.Object.String() + nul + r.Gateway
}
