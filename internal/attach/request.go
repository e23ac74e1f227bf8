// Package attach attaches clusters by Cluster objects: it checks and encrypts their
// credentials, checks the cluster before it is attached, and decrypts the credentials for
// the registry. Attaching means applying an object; the credentials are stored beside the
// object and are never part of it.
package attach

import (
	"slices"
	"strings"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/apply"
	"isthmus.dev/isthmus/internal/kube"
)

// Request attaches a cluster, or gives an attached one other credentials.
type Request struct {
	ID         federation.ClusterID
	Provider   federation.Provider  // empty: none was given, or several
	Network    federation.NetworkID // only to attach; empty: what the cluster names itself
	Precedence *int                 // only to attach; nil: the default
	Aliases    []string             // only to attach: further names of the cluster
	// Section is the kind's own in the spec of the Cluster object: where the cluster is.
	Section     map[string]any
	Credentials Credentials
	DryRun      bool
	Author      string
}

// The codes of findings and errors beside those of package apply. A check of a
// dry run has its code whatever it found; the severity tells.
const (
	InvalidClusterID   apply.Code = "INVALID_CLUSTER_ID"
	DuplicateClusterID apply.Code = "DUPLICATE_CLUSTER_ID"    // the ID is taken
	DuplicateAlias     apply.Code = "DUPLICATE_CLUSTER_ALIAS" // the alias names another cluster
	InvalidConsul      apply.Code = "INVALID_CONSUL"
	Reachability       apply.Code = "REACHABILITY"
	ServerCertificate  apply.Code = "SERVER_CERTIFICATE"
	NotAPIServer       apply.Code = "NOT_API_SERVER"
	Unauthorized       apply.Code = "UNAUTHORIZED"
	APIVersion         apply.Code = "API_VERSION"
	APIUnstable        apply.Code = "API_UNSTABLE"
	Clock              apply.Code = "CLOCK"
	Rights             apply.Code = "RIGHTS"
	RightsTooWide      apply.Code = "RIGHTS_TOO_WIDE"
	DuplicateCluster   apply.Code = "DUPLICATE_CLUSTER" // the same cluster under another ID
	OtherCluster       apply.Code = "OTHER_CLUSTER"     // not the one that is to be rotated
	NetworkClash       apply.Code = "NETWORK_CLASH"     // one name for two networks
	AddressOverlap     apply.Code = "ADDRESS_OVERLAP"
	CredentialsExpiry  apply.Code = "CREDENTIALS_EXPIRY"
	TrustDomain        apply.Code = "TRUST_DOMAIN"
	NotAttached        apply.Code = "NOT_ATTACHED"
	AttachedElsewhere  apply.Code = "ATTACHED_ELSEWHERE" // by a file, not by an object
	OtherProvider      apply.Code = "OTHER_PROVIDER"
	NothingHeld        apply.Code = "NOTHING_HELD"
)

// check returns what is wrong with the request by itself.
func (c *Clusters) check(r Request) []apply.Error {
	var wrong []apply.Error
	if err := kube.ValidateClusterID(string(r.ID)); err != nil {
		wrong = append(wrong, apply.Error{Code: InvalidClusterID, Field: "clusterID", Message: err.Error()})
	}
	if r.Provider == "" {
		wrong = append(wrong, apply.Error{
			Code: apply.InvalidRequest, Message: "give exactly one of " + strings.Join(c.o.Kinds.sections(), " and "),
		})
	}
	return wrong
}

// Access splits what a request says about a cluster into the section of the Cluster object and the credentials.
// Texts of the section that are empty unset what an attached cluster has.
type Access func(input map[string]any) (section map[string]any, credentials map[string]string)

// Kinds are those of all providers.
type Kinds map[federation.Provider]Kind

// sections are those that requests may have, sorted.
func (k Kinds) sections() (names []string) {
	for p, of := range k {
		if of.Access != nil {
			names = append(names, p.Section())
		}
	}
	slices.Sort(names)
	return names
}

// Request is what the sections of an input ask for. Without a section, or with several, it has no provider.
func (k Kinds) Request(id federation.ClusterID, input map[string]any) Request {
	var requests []Request
	for p, of := range k {
		if section, given := input[p.Section()].(map[string]any); given && of.Access != nil {
			r := Request{ID: id, Provider: p, Credentials: Credentials{Values: map[string]kube.Secret{}}}
			var credentials map[string]string
			r.Section, credentials = of.Access(section)
			for name, value := range credentials {
				r.Credentials.Values[name] = kube.NewSecret(value)
			}
			requests = append(requests, r)
		}
	}
	if len(requests) != 1 {
		return Request{ID: id}
	}
	return requests[0]
}
