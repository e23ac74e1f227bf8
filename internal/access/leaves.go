package access

import (
	"crypto/x509"
	"fmt"
	"maps"
	"slices"
	"sync"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/identity/authority"
)

// Leaves verifies certificates of Connect beside those of the mesh. It may be used by several
// goroutines, and does not block.
type Leaves struct {
	mesh     Certificates
	clusters Clusters

	mu  sync.Mutex
	all map[federation.ClusterID]Datacenter
}

// NewLeaves has no datacenter yet. Certificates of none are verified by mesh.
func NewLeaves(mesh Certificates, clusters Clusters) *Leaves {
	return &Leaves{mesh: mesh, clusters: clusters, all: map[federation.ClusterID]Datacenter{}}
}

// Attach lets the datacenter's certificates prove workloads of the cluster until detach is called.
func (l *Leaves) Attach(id federation.ClusterID, d Datacenter) (detach func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all[id] = d
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.all[id] == d {
			delete(l.all, id)
		}
	}
}

// datacenters is what is attached now.
func (l *Leaves) datacenters() map[federation.ClusterID]Datacenter {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.all)
}

// Verify is part of Certificates. The proof of a datacenter is for its own cluster, in the
// trust domain of that cluster's workloads: no datacenter says anything about others.
func (l *Leaves) Verify(presented []*x509.Certificate) (authority.Proof, error) {
	all := l.datacenters()
	var of []federation.ClusterID
	var found authority.Proof
	for _, id := range slices.Sorted(maps.Keys(all)) {
		account, known, err := all[id].Leaf(l.clusters.AttachState(id).UID, presented)
		switch {
		case !known:
			continue
		case err != nil:
			return authority.Proof{}, fmt.Errorf("the client's certificate of Connect: %w", err)
		}
		of = append(of, id)
		w, err := authority.NewWorkload(l.clusters.AttachState(id).TrustDomain, account.Namespace, account.Name)
		if err != nil {
			return authority.Proof{}, err
		}
		found = authority.Proof{Workload: w, Clusters: []federation.ClusterID{id}, Ends: account.Ends, Datacenter: true}
	}
	switch len(of) {
	case 0:
		return l.mesh.Verify(presented)
	case 1:
		return found, nil
	}
	return authority.Proof{}, fmt.Errorf("the client's certificate of Connect: it is of several clusters, %s, which are one datacenter",
		joined(of))
}

// Roots are those of all datacenters.
func (l *Leaves) Roots() []*x509.Certificate {
	var all []*x509.Certificate
	for _, d := range l.datacenters() {
		all = append(all, d.Roots()...)
	}
	return all
}
