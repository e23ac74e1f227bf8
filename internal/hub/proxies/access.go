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
		return openAccess{o.Snapshots, o.Identities.Proven, o.Readers}
	}
	return provenAccess{o.Identities.Guard, o.Readers}
}

// provenAccess has xds serve those who proved who they are.
type provenAccess struct {
	guard   *callers.Guard
	readers readers
}

// readers are the SPIFFE IDs of those who may read the configuration of the mesh, or
// anyone.
type readers []string

// anyone means all clients that may open a stream.
const anyone = "*"

// check tells why the workload may not read the configuration.
func (r readers) check(workload string) error {
	if slices.Contains(r, anyone) || workload != "" && slices.Contains(r, workload) {
		return nil
	}
	return fmt.Errorf("%s may not read the configuration of this hub: it is not named in mcp.clients", cmp.Or(workload, "a client without an identity"))
}

// Identify is part of xds.Access.
func (a provenAccess) Identify(ctx context.Context) (xds.Caller, error) {
	who, err := a.guard.Identify(ctx)
	if err != nil {
		return xds.Caller{}, err
	}
	lastProof := func(n envoy.Node) time.Time { return a.guard.LastProof(who, n.Cluster) }
	return xds.Caller{Identity: identityOf(who), Ends: who.Ends, Proven: true, LastProof: lastProof, Admit: func(n envoy.Node) (string, error) {
		return who.Workload.String(), a.guard.Allow(who, callers.Node{
			ID: n.ID, Name: n.Name, Cluster: n.Cluster, Namespace: n.Namespace,
			ServiceAccount: n.ServiceAccount, Addresses: n.Addresses,
		})
	}, Reads: func() (string, error) {
		workload := who.Workload.String()
		return workload, cmp.Or(a.readers.check(workload), a.guard.Still(who))
	}}, nil
}

// identityOf names a workload of a cluster, all of its pods together.
func identityOf(who callers.Identity) string {
	cluster, _ := who.Cluster()
	return fmt.Sprintf("%s of cluster %q", who.Workload, cluster)
}

// openAccess trusts every caller, with --dev: a process that reaches a loopback address or
// the hub's socket is of this machine.
type openAccess struct {
	snapshots *federation.Aggregate
	accepted  func(net.Addr)
	readers   readers
}

// Identify is part of xds.Access.
func (a openAccess) Identify(ctx context.Context) (xds.Caller, error) {
	if p, ok := peer.FromContext(ctx); ok {
		a.accepted(p.Addr)
	}
	return xds.Caller{Admit: func(n envoy.Node) (string, error) {
		domain := a.snapshots.Latest().Read().TrustDomain(n.Cluster)
		w, err := authority.NewWorkload(domain, n.Namespace, cmp.Or(n.ServiceAccount, "default"))
		if err != nil {
			return "", nil // a node without a namespace has no identity, and gets its configuration
		}
		return w.String(), nil
	}, Reads: func() (string, error) { return "", a.readers.check("") }}, nil
}
