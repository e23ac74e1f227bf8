// Package reconcile decides which clusters are attached, and keeps the registries in
// step with that. Wanted is a pure function of what the sources say: the config file,
// the watched folder, Cluster objects, and Secrets of attached clusters. One goroutine,
// the Reconciler's, reads what the sources say and carries out the difference.
package reconcile

import (
	"cmp"
	"context"
	"fmt"
	"strings"

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

// The ranks of the sources. Each Secret and each ClusterProfile is a source of its own.
const (
	configRank = iota
	folderRank
	objectRank
	secretRank
	profileRank
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

// Holder is where clusters are named by objects of an attached cluster.
type Holder struct {
	Cluster federation.ClusterID
	By      attach.RemoteKind
}

// remoteKind is what differs between the kinds of objects that name clusters.
type remoteKind struct {
	rank       int
	noun       string
	plural     string                  // begins the owner of the clusters; the ID of the holder follows
	at         func(key string) string // the field with the ID
	notID      string                  // what to say of a key that is not an ID
	invalid    string                  // code: an object names no cluster
	unreadable string                  // code: the objects cannot be read
}

// Codes of problems with the objects that name clusters.
const (
	codeSecretInvalid      = "REMOTE_SECRET_INVALID"
	codeSecretsUnreadable  = "REMOTE_SECRETS_UNREADABLE"
	codeProfileInvalid     = "CLUSTER_PROFILE_INVALID"
	codeProfilesUnreadable = "CLUSTER_PROFILES_UNREADABLE"
)

// remoteKinds has a row for each kind of objects that name clusters.
var remoteKinds = map[attach.RemoteKind]remoteKind{
	attach.Secrets: {
		rank: secretRank, noun: "Secret", plural: "Secrets", at: func(key string) string { return fmt.Sprintf("data[%.80q]", key) },
		notID: "the key is not a cluster ID", invalid: codeSecretInvalid, unreadable: codeSecretsUnreadable,
	},
	attach.Profiles: {
		rank: profileRank, noun: "ClusterProfile", plural: "ClusterProfiles", at: func(string) string { return "metadata.name" },
		notID: "the name is not a cluster ID", invalid: codeProfileInvalid, unreadable: codeProfilesUnreadable,
	},
}

// owner is that of the clusters which the holder names; see registries.Cluster.Owner.
func (h Holder) owner() string { return remoteKinds[h.By].plural + " of " + string(h.Cluster) }

func (h Holder) compare(o Holder) int {
	return cmp.Or(cmp.Compare(h.Cluster, o.Cluster), cmp.Compare(h.By, o.By))
}

// holderOf is the holder whose clusters have the owner.
func holderOf(owner string) (Holder, bool) {
	for by, c := range remoteKinds {
		if id, found := strings.CutPrefix(owner, c.plural+" of "); found {
			return Holder{federation.ClusterID(id), by}, true
		}
	}
	return Holder{}, false
}

// source is that of a cluster which an object of the holder names.
func (h Holder) source(object string) Source {
	c := remoteKinds[h.By]
	return Source{Rank: c.rank, Name: fmt.Sprintf("the %s %s of cluster %s", c.noun, object, h.Cluster), Owner: h.owner(), Yields: true}
}

// unreadSource is that of clusters which objects of the holder named before the start.
func (h Holder) unreadSource() Source {
	c := remoteKinds[h.By]
	return Source{
		Rank: c.rank, Name: fmt.Sprintf("the %s of cluster %s, which were not read yet", c.plural, h.Cluster),
		Owner: h.owner(), Yields: true,
	}
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

// unread is a placeholder for a cluster whose credentials are in objects that were not read yet:
// what was known of it before the start is kept.
type unread struct{ holder Holder }

// Run is part of registries.Registry.
func (u unread) Run(ctx context.Context, to registries.Sink) error {
	c := remoteKinds[u.holder.By]
	to.Status(federation.RegistryStatus{
		Phase:   federation.Stale,
		Message: fmt.Sprintf("a %s of cluster %s names it, and its %s were not read yet", c.noun, u.holder.Cluster, c.plural),
	})
	<-ctx.Done()
	return nil
}

func (h Holder) unreadClaim(id federation.ClusterID) Claim {
	return Claim{Cluster: registries.Cluster{
		ID: id, Spec: federation.ClusterSpec{Provider: federation.Kubernetes}, Fingerprint: "not read yet",
		Open: func(federation.ClusterIdentity) (registries.Registry, error) { return unread{h}, nil },
	}}
}
