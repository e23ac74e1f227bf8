// Package fleet knows the proxies that are connected and what was delivered to
// them, as immutable values with versions.
package fleet

import (
	"net/netip"
	"slices"
	"time"

	"isthmus.dev/isthmus/federation"
)

// Protocol is the xDS variant of a stream.
type Protocol string

// The two variants.
const (
	SotW  Protocol = "sotw"
	Delta Protocol = "delta"
)

// State is the status of a type of resources on a stream.
type State string

// The states of a type on a stream.
const (
	NotRequested State = "NOT_REQUESTED" // the proxy never asked for the type
	Synced       State = "SYNCED"        // the last response was accepted
	Pending      State = "PENDING"       // the last response is not answered yet
	Nacked       State = "NACKED"        // the last answered response was refused
)

// Sync is the delivery of one type to one stream. Versions are those on the
// wire; snapshot versions are the hub's own and say from which snapshot the
// content came: later snapshots that change nothing for the proxy move nothing.
type Sync struct {
	State         State
	VersionSent   string
	VersionAcked  string
	SnapshotSent  uint64
	SnapshotAcked uint64
	LastError     string    // of the last refusal, cut and escaped; stays until a response is accepted
	Since         time.Time // when the state began
}

// Proxy is one live stream of a proxy, as the proxy describes itself. It is
// read-only.
type Proxy struct {
	Node        any // all that the proxy says, as the reporter of the stream reads it; never changed; nil: not said
	NodeID      string
	StreamID    string // given by Connect; rises with the order of connecting
	Type        string
	RouterMode  string
	Cluster     federation.ClusterID
	Network     federation.NetworkID
	Locality    federation.Locality
	Addresses   []netip.Addr
	Namespace   string
	Workload    federation.WorkloadKey // as which it runs
	Labels      map[string]string
	UserAgent   string // the proxy's program
	Version     string // of the proxy's program
	MeshVersion string // of Istio's agent beside it, as it says; empty: there is none
	Protocol    Protocol
	ConnectedAt time.Time
	Sync        map[string]Sync // by type URL
	// Served: the hub knows what the proxy is to get, as of the snapshot of that version.
	Served   bool
	Snapshot uint64

	HTTPProxyPort uint16 // 0: no explicit HTTP proxy
	DNSCapture    bool

	deliveries []*Delivery
	types      []string // of the deliveries
}

// Told is what was delivered of the type; nil: nothing was.
func (p *Proxy) Told(typeURL string) Told {
	if at, served := slices.BinarySearch(p.types, typeURL); served {
		return p.deliveries[at].Told
	}
	return nil
}

// Key names one stream of one node.
type Key struct{ NodeID, StreamID string }

// Key is the name of the stream.
func (p *Proxy) Key() Key { return Key{p.NodeID, p.StreamID} }

const nul = "\x00"

func (k Key) sortKey() string { return k.NodeID + nul + k.StreamID }

// Explained is what a hostname and a port mean for a proxy.
type Explained struct {
	Proxy     ProxyID
	Service   *federation.Service // nil: there is none
	Endpoints []federation.Explanation
}
