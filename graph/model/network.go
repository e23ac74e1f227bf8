package model

import (
	"strings"
	"time"

	"isthmus.dev/isthmus/federation"
)

// Network is a network as one snapshot has it.
type Network struct{ Of *federation.Network }

// networkIn is the network of that ID; nil: it does not exist.
func networkIn(from *federation.Snapshot, id federation.NetworkID) *Network {
	found, exists := from.Network(id)
	if !exists {
		return nil
	}
	return &Network{Of: found}
}

// IsNode marks a network as a Node of the schema.
func (Network) IsNode() {}

// ID makes the opaque ID.
func (n Network) ID() string { return ID(KindNetwork, n.NetworkID()) }

// Key is the key of the network in lists.
func (n Network) Key() string { return n.NetworkID() }

// NetworkID is what it is called.
func (n Network) NetworkID() string { return string(n.Of.ID) }

// Gated reports whether it is entered through gateways.
func (n Network) Gated() bool { return n.Of.Gated }

// Cidrs are the ranges that are in it.
func (n Network) Cidrs() []string {
	all := make([]string, len(n.Of.CIDRs))
	for i, c := range n.Of.CIDRs {
		all[i] = c.String()
	}
	return all
}

// ClusterIDs are the clusters that are in it.
func (n Network) ClusterIDs() []string { return texts(n.Of.Clusters) }

// Gateways are its entries.
func (n Network) Gateways() []NetworkGateway {
	all := make([]NetworkGateway, len(n.Of.Gateways))
	for i := range all {
		all[i] = NetworkGateway{network: n.Of, at: i}
	}
	return all
}

// NetworkGateway is an entry of a network.
type NetworkGateway struct {
	network *federation.Network
	at      int
}

// Key orders gateways by network, then by address.
func (g NetworkGateway) Key() string { return g.NetworkID() + nul + g.Address() }

// Unreachable reports whether a network reports it as unreachable and none as reachable.
func (g NetworkGateway) Unreachable() bool { return isUnreachable(g.of()) }

func (g NetworkGateway) of() federation.Gateway { return g.network.Gateways[g.at] }

// IsNode marks a gateway as a Node of the schema.
func (NetworkGateway) IsNode() {}

// ID makes the opaque ID.
func (g NetworkGateway) ID() string { return ID(KindGateway, g.Key()) }

// GatewayKey reads the network and the address that the ID of a gateway names.
func GatewayKey(name string) (network federation.NetworkID, address string) {
	id, address, _ := strings.Cut(name, nul)
	return federation.NetworkID(id), address
}

// NetworkID is the network that it leads into.
func (g NetworkGateway) NetworkID() string { return string(g.network.ID) }

// Address is its address and port.
func (g NetworkGateway) Address() string { return g.of().Address.String() }

// Cause is what declared it.
func (g NetworkGateway) Cause() federation.GatewayCause { return g.of().Cause }

// ClusterID is the cluster whose service it is, nil for that of a Network object.
func (g NetworkGateway) ClusterID() *string { return nonEmpty(string(g.of().Cause.Shard.Cluster)) }

// Locality is where it is.
func (g NetworkGateway) Locality() Locality { return locality(g.of().Locality) }

// FromNetworkIDs are the networks that it is for.
func (g NetworkGateway) FromNetworkIDs() []string { return texts(g.of().From) }

// Health is what it is to each observer.
func (g NetworkGateway) Health() []GatewayHealth {
	all := make([]GatewayHealth, len(g.of().Verdicts))
	for i, v := range g.of().Verdicts {
		all[i] = GatewayHealth{
			ObserverNetworkID: string(v.Observer), Observer: string(v.Observer), Reachable: v.Reachable,
			Since: v.Since.UTC().Truncate(time.Millisecond),
			State: GatewayState(g.network.GatewayStatesFrom(v.Observer)[g.at]),
		}
	}
	return all
}
