package proxies

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"slices"
	"time"

	"google.golang.org/grpc/peer"

	"isthmus.dev/isthmus/federation"
	callers "isthmus.dev/isthmus/internal/access"
	"isthmus.dev/isthmus/internal/identity/authority"
	"isthmus.dev/isthmus/xds"
	"isthmus.dev/isthmus/xds/envoy"
)

// access is how xds tells who opens streams.
func access(o Options) xds.Access {
	if o.Dev {
		return openAccess{o.Snapshots, o.Identities.Proven, o.Readers, o.Inspectors}
	}
	return provenAccess{o.Identities.Guard, o.Readers, o.Inspectors}
}

// provenAccess has xds serve those who proved who they are.
type provenAccess struct {
	guard      *callers.Guard
	readers    readers
	inspectors Inspectors
}

// anyone means all clients that may open a stream.
const anyone = "*"

// lists reports whether the list has the caller.
func lists(clients []string, caller string) bool {
	return slices.Contains(clients, anyone) || caller != "" && slices.Contains(clients, caller)
}

// unnamed is what errors call a client that has no name.
const unnamed = "a client without an identity"

// readers are the SPIFFE IDs of those who may read the configuration of the mesh, or
// anyone.
type readers []string

// check tells why the workload may not read the configuration.
func (r readers) check(workload string) error {
	if lists(r, workload) {
		return nil
	}
	return fmt.Errorf("%s may not read the configuration of this hub: it is not named in mcp.clients", cmp.Or(workload, unnamed))
}

// Inspectors are the names of those who may ask about the hub with Istio's tools, or anyone.
type Inspectors []string

// Check tells why the caller may not.
func (i Inspectors) Check(caller string) error {
	if lists(i, caller) {
		return nil
	}
	return fmt.Errorf("%s may not ask about this hub: it is not named in debug.clients", cmp.Or(caller, unnamed))
}

// Identify is part of xds.Access.
func (a provenAccess) Identify(ctx context.Context) (xds.Caller, error) {
	who, err := a.guard.Identify(ctx)
	if err != nil {
		return xds.Caller{}, err
	}
	lastProof := func(n envoy.Node) time.Time { return a.guard.LastProof(who, n.Cluster) }
	return xds.Caller{
		Identity: identityOf(who), Source: who.Address, Ends: who.Ends, Proven: true, Given: givenOf(who), LastProof: lastProof,
		Admit: func(n envoy.Node) (string, error) {
			return who.Workload.String(), a.guard.Allow(who, callers.Node{
				ID: n.ID, Name: n.Name, Cluster: n.Cluster, Namespace: n.Namespace,
				ServiceAccount: n.ServiceAccount, Addresses: n.Addresses,
			})
		}, Reads: a.still(who, a.readers.check), Inspects: a.still(who, a.inspectors.Check),
	}, nil
}

// still checks the caller that is not a node, with what it proved looked at again.
func (a provenAccess) still(who callers.Caller, check func(workload string) error) func() (string, error) {
	return func() (string, error) {
		workload := who.Workload.String()
		return workload, cmp.Or(check(workload), a.guard.Still(who))
	}
}

// givenOf is what the proof of a Consul datacenter says about a proxy: those that Consul starts
// do not say it themselves.
func givenOf(who callers.Caller) envoy.Given {
	cluster, one := who.Cluster()
	if !who.Datacenter || !one {
		return envoy.Given{}
	}
	return envoy.Given{Cluster: cluster, Namespace: who.Workload.Namespace, ServiceAccount: who.Workload.ServiceAccount, Address: who.Address}
}

// identityOf names a workload of a cluster, all of its pods together.
func identityOf(who callers.Caller) string {
	cluster, _ := who.Cluster()
	return fmt.Sprintf("%s of cluster %q", who.Workload, cluster)
}

// openAccess trusts every caller, with --dev: a process that reaches a loopback address or
// the hub's socket is of this machine.
type openAccess struct {
	snapshots  *federation.Aggregate
	accepted   func(net.Addr)
	readers    readers
	inspectors Inspectors
}

// Identify is part of xds.Access.
func (a openAccess) Identify(ctx context.Context) (xds.Caller, error) {
	if p, ok := peer.FromContext(ctx); ok {
		a.accepted(p.Addr)
	}
	return xds.Caller{
		Admit: func(n envoy.Node) (string, error) {
			domain := a.snapshots.Latest().Read().TrustDomain(n.Cluster)
			w, err := authority.NewWorkload(domain, n.Namespace, cmp.Or(n.ServiceAccount, "default"))
			if err != nil {
				return "", nil // a node without a namespace has no identity, and gets its configuration
			}
			return w.String(), nil
		}, Reads: func() (string, error) { return "", a.readers.check("") },
		Inspects: func() (string, error) { return "", a.inspectors.Check("") },
	}, nil
}
