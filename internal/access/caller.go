// Package access authenticates callers of xDS and of the certificate service, and decides
// which node a caller may be.
package access

import (
	"net/netip"
	"slices"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/identity/authority"
)

// Caller is who a caller proved to be.
type Caller struct {
	Workload authority.Workload
	// Clusters are those of one of which the caller is; a token proves exactly one.
	Clusters []federation.ClusterID
	Pod      string    // to which the token is bound; empty: to none, or there is no token
	Ends     time.Time // of the proof
	// Proven is when the caller last proved who it is by something else than a
	// certificate that the hub signed; zero: it does so now.
	Proven time.Time
	// Expired is when the token expired that the caller shows beside its certificate; zero: it shows none that has.
	Expired time.Time
	Address netip.Addr // from which it connects; not valid: it is not known
	// Certified: proven by the certificate of the connection.
	Certified bool
	// Datacenter: proven by what a Consul datacenter knows. Its proxies need not say of which cluster they are.
	Datacenter bool
	// again tells why the proof counts no more, for a node of the cluster. It does
	// not block. nil: there is nothing to look at again.
	again func(federation.ClusterID) error
}

// Cluster is the one cluster of the caller; false: it may be of several.
func (i Caller) Cluster() (federation.ClusterID, bool) {
	if len(i.Clusters) != 1 {
		return "", false
	}
	return i.Clusters[0], true
}

func (i Caller) of(cluster federation.ClusterID) bool { return slices.Contains(i.Clusters, cluster) }

// AttachState is how a cluster is attached.
type AttachState struct {
	Attached bool
	Frozen   string // why no change from it is accepted; empty: it is not frozen
	UID      string // of kube-system, as it was found first; empty: not known yet
	// TrustDomain is that of the cluster's workloads.
	TrustDomain string
}

// Clusters tell how they are attached. Its method must not block.
type Clusters interface {
	AttachState(id federation.ClusterID) AttachState
	// Named is the ID of the cluster that a caller names by its ID or by an alias; the
	// name itself where it is neither.
	Named(name federation.ClusterID) federation.ClusterID
}

// Outcome is how a proof went.
type Outcome string

// The outcomes.
const (
	Proven    Outcome = "proven"
	Refused   Outcome = "refused"   // it proves nothing, or not what is asked for
	Throttled Outcome = "throttled" // too many of that source failed before
	Unproven  Outcome = "unproven"  // it could not be found out
)

// Method is how a caller proves who it is.
type Method string

// The methods.
const (
	ByCertificate Method = "certificate"
	ByToken       Method = "token"
	ByNothing     Method = "none"
)

// Metrics counts proofs. Its method must not block.
type Metrics interface {
	Proof(by Method, outcome Outcome)
}

type uncounted struct{}

func (uncounted) Proof(Method, Outcome) {}
