package model

import (
	"cmp"
	"time"

	"isthmus.dev/isthmus/federation"
)

// Cluster is a cluster as one snapshot has it. LastEvent, LastSync and Usage are not
// part of a snapshot; Now is the moment of the answer.
type Cluster struct {
	From                     *federation.Snapshot
	Of                       *federation.Cluster
	LastEvent, LastSync, Now time.Time
	Usage                    *ClusterUsage // nil: the cluster is not being read
}

// IsNode marks a cluster as a Node of the schema.
func (Cluster) IsNode() {}

// ID makes the opaque ID.
func (c Cluster) ID() string { return ID(KindCluster, c.Key()) }

// Key orders clusters by their IDs.
func (c Cluster) Key() string { return string(c.Of.ID) }

// ClusterID is the ID that it was attached with.
func (c Cluster) ClusterID() string { return string(c.Of.ID) }

// Provider is the kind of the source.
func (c Cluster) Provider() Provider { return ProviderOf(c.Of) }

// NetworkID is the network of its endpoints that name no other.
func (c Cluster) NetworkID() string { return string(c.Of.Network()) }

// Precedence is what decides when clusters disagree; the lower wins.
func (c Cluster) Precedence() int {
	return cmp.Or(c.Of.Spec.Precedence, federation.DefaultPrecedence)
}

// PhaseOf is the phase of the link to a cluster.
func PhaseOf(of *federation.Cluster) ClusterPhase {
	return ClusterPhase(cmp.Or(of.Status.Phase, federation.Pending))
}

// ProviderOf is the kind of the source that a cluster is.
func ProviderOf(of *federation.Cluster) Provider { return provider(of.Spec.Provider) }

// Aliases are the further names of the cluster.
func (c Cluster) Aliases() []string { return append([]string{}, c.Of.Spec.Aliases.List()...) }

// Identity says which cluster answers, nil until that is known.
func (c Cluster) Identity() *ClusterIdentity {
	if c.Of.Identity.UID == "" {
		return nil
	}
	return &ClusterIdentity{
		UID: c.Of.Identity.UID, NetworkID: nonEmpty(string(c.Of.Identity.Network)), Network: networkIn(c.From, c.Of.Identity.Network),
	}
}

// Status says how the link is.
func (c Cluster) Status() ClusterStatus {
	status := c.Of.Status
	found := ClusterStatus{
		Phase: PhaseOf(c.Of), Since: known(status.Since), Message: nonEmpty(status.Message),
		LastEventAt: known(c.LastEvent), LastSyncAt: known(c.LastSync), LastKnownGoodAt: known(status.LastKnownGood),
		Usage: c.Usage,
	}
	if found.LastKnownGoodAt != nil {
		age := max(c.Now.Sub(status.LastKnownGood), 0)
		found.LastKnownGoodAge = &age
	}
	return found
}
