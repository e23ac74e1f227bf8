package federation

import (
	"cmp"
	"slices"
	"strings"

	"isthmus.dev/isthmus/internal/smallmap"
)

// DefaultTrustDomain is that of a mesh that names none.
const DefaultTrustDomain = "cluster.local"

// AnyCluster represents all clusters in Deps.
const AnyCluster ClusterID = "*"

// Trust is the trust domain of the mesh, with its default.
func (m *MeshSettings) Trust() string {
	if m == nil {
		return DefaultTrustDomain
	}
	return cmp.Or(m.TrustDomain, DefaultTrustDomain)
}

// TrustDomains are the trust domain of the mesh and its aliases.
func (m *MeshSettings) TrustDomains() []string {
	domains := []string{m.Trust()}
	if m != nil {
		domains = append(domains, m.TrustDomainAliases...)
	}
	return domains
}

// TrustDomain is that of the identities of the cluster's workloads; of an unknown
// cluster it is the mesh's.
func (r *Reader) TrustDomain(id ClusterID) string {
	if c, ok := r.Cluster(id); ok && c.Spec.TrustDomain != "" {
		return c.Spec.TrustDomain
	}
	return r.Mesh().Trust()
}

// TrustDomains are those of the mesh, its aliases included, and of all its clusters, sorted.
func (r *Reader) TrustDomains() []string {
	smallmap.Add(&r.deps.Clusters, AnyCluster)
	domains := r.Mesh().TrustDomains()
	for c := range r.snapshot.Clusters() {
		if c.Spec.TrustDomain != "" {
			domains = append(domains, c.Spec.TrustDomain)
		}
	}
	slices.Sort(domains)
	return slices.Compact(domains)
}

// SPIFFE is the identity of an account within a trust domain. Accounts are
// NAMESPACE/NAME; what is none is an identity as it stands.
func SPIFFE(trustDomain, account string) string {
	namespace, name, ok := strings.Cut(account, "/")
	if !ok || namespace == "" || name == "" || strings.ContainsAny(name, "/") || strings.Contains(namespace, ":") {
		return account
	}
	return "spiffe://" + trustDomain + "/ns/" + namespace + "/sa/" + name
}
