package federation

import (
	"cmp"
	"time"
)

// DefaultPrecedence is the precedence of a cluster that names none; the lower
// number wins a conflict.
const DefaultPrecedence = 100

// ClusterSpec is what an operator specifies for a cluster.
type ClusterSpec struct {
	Provider   Provider
	Network    NetworkID // empty: what the registry finds, else DefaultNetwork
	Precedence int       // 0 counts as DefaultPrecedence
	// TrustDomain is that of the identities of the cluster's workloads; empty: the
	// mesh's.
	TrustDomain string
	Aliases     Aliases // other names by which its proxies and tokens may name it
}

// Phase is the state of an attached cluster.
type Phase string

// The phases of a cluster. What a cluster offered stays in every phase but
// Detaching.
const (
	Pending   Phase = "PENDING"   // known, nothing tried yet
	Syncing   Phase = "SYNCING"   // connected, first full list not yet complete
	Ready     Phase = "READY"     // synced and following
	Stale     Phase = "STALE"     // no link; what was last known, if anything, is served
	Held      Phase = "HELD"      // a suspicious list waits for a second proof or an operator
	Failed    Phase = "FAILED"    // no retry will heal it; see the message
	Detaching Phase = "DETACHING" // on its way out
)

// RegistryStatus is what a registry reports about itself.
type RegistryStatus struct {
	Phase   Phase
	Since   time.Time // when the phase began; set by the registries room where zero
	Message string    // what is wrong and what to do; never a secret
	// LastKnownGood is the time of the saved state that is served in place of a
	// cluster that did not answer since the start; zero otherwise.
	LastKnownGood time.Time
}

// ClusterIdentity is what a registry found out about the cluster behind its address.
type ClusterIdentity struct {
	UID     string    // kube-system UID; Consul datacenter and servers
	Network NetworkID // network that the cluster itself names, if any
}

// Problem is something that a cluster said and that the hub does not use.
type Problem struct {
	Code    string // stable, upper case
	Object  string // "Service shop/web", "instance web-1"
	Field   string // path within the object
	Message string // what is wrong and what to do
}

// Cluster is an attached cluster as the snapshot shows it.
type Cluster struct {
	ID        ClusterID
	Spec      ClusterSpec
	Identity  ClusterIdentity
	Status    RegistryStatus
	Declared  NetworkID // network whose object lists the cluster, if any
	Listed    bool      // a complete list of it is in the snapshot, or was
	Services  int       // services to which it contributes
	Endpoints int       // endpoints of its services that may be offered, those that run elsewhere included
	Problems  int       // see Snapshot.Problems
}

// Network is the network of the cluster's endpoints that name none themselves.
func (c *Cluster) Network() NetworkID {
	if c == nil {
		return DefaultNetwork
	}
	return cmp.Or(c.Spec.Network, c.Declared, c.Identity.Network, DefaultNetwork)
}

// filledIn is the network that the cluster's registry gives to what names none
// itself.
func (c *Cluster) filledIn() NetworkID {
	if c == nil {
		return DefaultNetwork
	}
	return cmp.Or(c.Spec.Network, c.Identity.Network, DefaultNetwork)
}

func (c *Cluster) precedence() int {
	if c == nil || c.Spec.Precedence == 0 {
		return DefaultPrecedence
	}
	return c.Spec.Precedence
}
