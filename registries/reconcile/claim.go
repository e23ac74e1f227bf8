// Package reconcile decides which clusters are attached, and keeps the registries in
// step with that. Wanted is a pure function of what the sources say: the config file,
// the watched folder, Cluster objects, and Secrets of attached clusters. One goroutine,
// the Reconciler's, takes up what the sources say and carries out the difference.
package reconcile

import (
	"cmp"
	"context"
	"fmt"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/attach"
	"isthmus.dev/isthmus/registries"
)

// Claim is what one source says about one cluster.
type Claim struct {
	registries.Cluster
	Refused string // why it cannot be attached; empty: it can
}

// Refuse is a claim of a cluster that cannot be attached. It has the ID all the same.
func Refuse(id federation.ClusterID, spec federation.ClusterSpec, why string) Claim {
	return Claim{Cluster: registries.Cluster{ID: id, Spec: spec}, Refused: why}
}

// Source is a place where clusters are named. Of the sources that name one ID, the
// first has it: by rank, then by name, never by arrival.
type Source struct {
	Rank  int
	Name  string // for people
	Owner string // see registries.Cluster.Owner
	// Yields: the source is not an operator's. When an operator takes an ID from it, the
	// operator's word counts, not what was known of the cluster behind the ID.
	Yields bool
}

// The ranks of the sources. Each Secret is a source of its own.
const (
	configRank = iota
	folderRank
	objectRank
	secretRank
	sampleRank
)

// folderName is the name of the source of clusters of the watched folder.
const folderName = "--kubeconfig-dir"

func configSource() Source { return Source{Rank: configRank, Name: "the config file", Owner: "config"} }
func folderSource() Source { return Source{Rank: folderRank, Name: folderName, Owner: "folder"} }
func objectSource() Source {
	return Source{Rank: objectRank, Name: attach.ObjectSource, Owner: "object"}
}
func sampleSource() Source { return Source{Rank: sampleRank, Name: "the sample", Yields: true} }

// secretOwner begins the owner of clusters that Secrets name; the ID of the cluster
// with the Secrets follows.
const secretOwner = "Secrets of "

func secretSource(holder federation.ClusterID, secret string) Source {
	return Source{Rank: secretRank, Name: fmt.Sprintf("the Secret %s of cluster %s", secret, holder), Owner: secretOwner + string(holder), Yields: true}
}

// unreadSource is that of clusters which Secrets named before the start.
func unreadSource(holder federation.ClusterID) Source {
	return Source{Rank: secretRank, Name: "the Secrets of cluster " + string(holder) + ", which were not read yet", Owner: secretOwner + string(holder), Yields: true}
}

// Attachment is the claim that has its ID.
type Attachment struct {
	Claim
	Source Source
}

// same reports whether two attachments of one ID need nothing to be done.
func (a Attachment) same(b Attachment) bool {
	return a.Source == b.Source && a.Refused == b.Refused && a.Spec == b.Spec && a.Fingerprint == b.Fingerprint
}

func (a Attachment) compare(b Attachment) int {
	return cmp.Or(cmp.Compare(a.Source.Rank, b.Source.Rank), cmp.Compare(a.Source.Name, b.Source.Name))
}

// unread is a placeholder for a cluster whose credentials are in Secrets that were not read yet:
// what was known of it before the start is kept.
type unread struct{ holder federation.ClusterID }

// Run is part of registries.Registry.
func (u unread) Run(ctx context.Context, to registries.Sink) error {
	to.Status(federation.RegistryStatus{Phase: federation.Stale, Message: fmt.Sprintf("its credentials are in a Secret of cluster %s, whose Secrets were not read yet", u.holder)})
	<-ctx.Done()
	return nil
}

func unreadClaim(id, holder federation.ClusterID) Claim {
	return Claim{Cluster: registries.Cluster{
		ID: id, Spec: federation.ClusterSpec{Provider: federation.Kubernetes}, Fingerprint: "not read yet",
		Open: func(federation.Identity) (registries.Registry, error) { return unread{holder}, nil },
	}}
}
