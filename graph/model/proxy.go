package model

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

// NewProxy shows one stream of a proxy as the fleet has it. What registries know of
// its workload goes before what it reports about itself, as in what it is sent; the
// snapshot knows where its cluster and workload are, where neither says.
func NewProxy(from *federation.Snapshot, of *fleet.Proxy) Proxy {
	place, registered, known := placed(from, of)
	is, marks := of.Locality, of.Labels
	if known {
		marks = registered.Workload.Labels
		is = cmp.Or(registered.Workload.Locality, is)
	}
	if is == (federation.Locality{}) {
		is, _ = from.At(place).Locality()
	}
	shown := Proxy{
		ID: ID(KindProxy, proxyKey(of.Key())), NodeID: of.NodeID, Type: TypeOf(of),
		RouterMode: capital(of.RouterMode, RouterModeStandard),
		ClusterID:  nonEmpty(string(of.Cluster)), NetworkID: string(from.At(place).Network()),
		Namespace: nonEmpty(of.Namespace), Locality: locality(is),
		Labels: labels(marks), DNSCapture: of.DNSCapture, UserAgent: userAgent(of), Delivery: capital(string(of.Protocol), DeliverySotw),
		ConnectedAt: of.ConnectedAt, SyncState: WorstState(of), Sync: syncs(of),
	}
	for _, address := range of.Addresses {
		shown.Addresses = append(shown.Addresses, address.String())
	}
	if port := int(of.HTTPProxyPort); port != 0 {
		shown.HTTPProxyPort = &port
	}
	return shown
}

// placed is where a proxy is, and what a registry knows of its workload.
func placed(from *federation.Snapshot, of *fleet.Proxy) (place federation.Place, is federation.Registration, known bool) {
	place = federation.Place{Cluster: of.Cluster, Network: of.Network, Addresses: of.Addresses}
	is, known = from.At(place).Registered(of.Workload)
	if known {
		place.Network = is.Network
	}
	return place, is, known
}

// PlaceOf is where a proxy is shown to be.
func PlaceOf(from *federation.Snapshot, of *fleet.Proxy) federation.Place {
	place, _, _ := placed(from, of)
	place.Network = from.At(place).Network()
	return place
}

// TypeOf is the type of a proxy; one that claims none is a sidecar.
func TypeOf(of *fleet.Proxy) ProxyType { return capital(of.Type, ProxyTypeSidecar) }

// KeyOf is the Key of the proxy that shows the stream.
func KeyOf(of *fleet.Proxy) string { return proxyKey(of.Key()) }

// Key orders proxies by node ID, then in the order of connecting.
func (p Proxy) Key() string {
	_, key, _ := ParseID(p.ID)
	return key
}

func proxyKey(of fleet.Key) string { return of.NodeID + nul + of.StreamID }

// ProxyKey reads what Proxy.Key writes.
func ProxyKey(key string) fleet.Key {
	node, stream, _ := strings.Cut(key, nul)
	return fleet.Key{NodeID: node, StreamID: stream}
}

func userAgent(of *fleet.Proxy) *string {
	if of.UserAgent == "" || of.Version == "" {
		return nonEmpty(of.UserAgent + of.Version)
	}
	return nonEmpty(of.UserAgent + "/" + of.Version)
}

// shownTypes are shown of every proxy, whether it asked for them or not.
var shownTypes = resource.TypesWith(resource.Shown)

// syncs lists the status of each type, shownTypes first.
func syncs(of *fleet.Proxy) []ProxySync {
	var types []string
	for _, t := range shownTypes {
		types = append(types, string(t))
	}
	for _, typeURL := range slices.Sorted(maps.Keys(of.Sync)) {
		if !resource.Type(typeURL).Has(resource.Shown) {
			types = append(types, typeURL)
		}
	}
	var all []ProxySync
	for _, typeURL := range types {
		is, asked := of.Sync[typeURL]
		if !asked {
			is = fleet.Sync{Since: of.ConnectedAt}
		}
		all = append(all, ProxySync{
			TypeURL: typeURL, State: SyncState(cmp.Or(is.State, fleet.NotRequested)), Since: known(is.Since),
			VersionSent: nonEmpty(is.VersionSent), VersionAcked: nonEmpty(is.VersionAcked), LastError: nonEmpty(is.LastError),
		})
	}
	return all
}

// states are those of a proxy from good to bad.
var states = [...]SyncState{SyncStateNotRequested, SyncStateSynced, SyncStatePending, SyncStateNacked}

// WorstState is the worst state of a stream's types.
func WorstState(of *fleet.Proxy) SyncState {
	worst := 0
	for _, sync := range of.Sync {
		worst = max(worst, slices.Index(states[:], SyncState(sync.State)))
	}
	return states[worst]
}

// Badness orders states from good to bad.
func Badness(s SyncState) int { return slices.Index(states[:], s) }

// capital spells a name as enums do: sni-dnat is SNI_DNAT.
func capital[E interface {
	~string
	IsValid() bool
}](name string, otherwise E) E {
	if is := E(strings.ToUpper(strings.ReplaceAll(name, "-", "_"))); is.IsValid() {
		return is
	}
	return otherwise
}
