package access

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"isthmus.dev/isthmus/federation"
)

// Node is what a proxy reports about itself.
type Node struct {
	ID             string // whole
	Name           string // third part of the ID: POD.NAMESPACE
	Cluster        federation.ClusterID
	Namespace      string
	ServiceAccount string // empty: it does not say
	Addresses      []netip.Addr
}

// Workloads tell who lives where. Its method must not block.
type Workloads interface {
	// AccountsAt are the service accounts, NAMESPACE/NAME, of the workloads that
	// the cluster has at the address, in whatever network; none where no workload
	// is known.
	AccountsAt(cluster federation.ClusterID, address netip.Addr) []string
}

// Allow checks that the caller may be the node, with what it proved looked at
// again (F84): a certificate with the roots as they are now, a token as its cluster
// judged it last. The error is the reason, fit for the caller (S18). It does not
// block.
func (g *Guard) Allow(i Caller, n Node) error {
	if err := g.o.Denied.check(i.Workload.String()); err != nil {
		return err
	}
	if err := i.mayBe(n); err != nil {
		return err
	}
	if err := g.belongs(i, n.Cluster); err != nil {
		return err
	}
	if i.again != nil {
		if err := i.again(n.Cluster); err != nil {
			return err
		}
	}
	return g.ownsAddresses(i, n)
}

// Still checks what the caller proved again (F84), for one that is not a node. It does not block.
func (g *Guard) Still(i Caller) error {
	if err := g.o.Denied.check(i.Workload.String()); err != nil {
		return err
	}
	if i.again != nil {
		return i.again("")
	}
	return nil
}

// ownsAddresses checks that every address of the node is its own. With one of another
// workload beside it, the node could impersonate that workload (S18, R04).
func (g *Guard) ownsAddresses(i Caller, n Node) error {
	own := i.Workload.Namespace + "/" + i.Workload.ServiceAccount
	for _, address := range n.Addresses {
		if accounts := g.o.Workloads.AccountsAt(n.Cluster, address); len(accounts) > 0 && !slices.Contains(accounts, own) {
			return fmt.Errorf("the node's address %s is that of a workload that does not run as %s", address, own)
		}
	}
	return nil
}

// CertificateCluster is the cluster for which the caller may have a certificate; the error is
// the reason why it may have none, fit for the caller.
func (g *Guard) CertificateCluster(i Caller) (federation.ClusterID, error) {
	cluster, one := i.Cluster()
	if !one {
		return "", fmt.Errorf("nothing proves the cluster of %s: show a token of that cluster", i.Workload)
	}
	return cluster, g.belongs(i, cluster)
}

// LastProof is when the caller, of that cluster, last proved who it is by something
// else than a certificate that the hub signed. To connect from the address of a
// workload that runs as its account is a proof, too: a key that was stolen is
// renewed only where that workload is (R12). What a registry knew last counts while
// its cluster cannot be reached: else an outage of an API server would end the
// certificates of proxies that are well.
func (g *Guard) LastProof(i Caller, cluster federation.ClusterID) time.Time {
	own := i.Workload.Namespace + "/" + i.Workload.ServiceAccount
	if i.Proven.IsZero() || i.Address.IsValid() && slices.Contains(g.o.Workloads.AccountsAt(cluster, i.Address), own) {
		return time.Now()
	}
	return i.Proven
}

// noCluster tells a proxy of an installation of Istio, too, what to do: its cluster has another
// name there.
func noCluster(said federation.ClusterID) error {
	return fmt.Errorf("no cluster %q is attached to this hub: attach it, or give the attached cluster this alias", said)
}

// belongs checks that the cluster exists, and that its workloads have identities
// of the caller's trust domain.
func (g *Guard) belongs(i Caller, cluster federation.ClusterID) error {
	attached := g.o.Clusters.AttachState(cluster)
	switch {
	case !attached.Attached && cluster != g.o.Hub:
		return noCluster(cluster)
	case attached.TrustDomain != i.Workload.TrustDomain:
		return fmt.Errorf("the trust domain of the cluster %q is %q, and that of %s is another", cluster, attached.TrustDomain, i.Workload)
	}
	return nil
}

// mayBe compares what the node says with what was proven.
func (i Caller) mayBe(n Node) error {
	w := i.Workload
	switch {
	case n.Cluster == "":
		return fmt.Errorf("the node does not say its cluster (metadata CLUSTER_ID)")
	case len(i.Clusters) == 0:
		return fmt.Errorf("the certificate of %s does not prove its cluster; name the clusters of its roots (identity.bundles[].clusters)", w)
	case !i.of(n.Cluster):
		return fmt.Errorf("the node says that it is of the cluster %q, and it is proven to be of %s", n.Cluster, joined(i.Clusters))
	case n.Namespace != w.Namespace:
		return fmt.Errorf("the node says that it is of the namespace %q, and it is proven to be of %q", n.Namespace, w.Namespace)
	case n.ServiceAccount != "" && n.ServiceAccount != w.ServiceAccount:
		return fmt.Errorf("the node says that its service account is %q, and it is proven to be %q", n.ServiceAccount, w.ServiceAccount)
	case !strings.HasSuffix(n.Name, "."+w.Namespace):
		return fmt.Errorf("the third part of the node's ID is %q; it must end with its namespace: NAME.%s", n.Name, w.Namespace)
	case i.Pod != "" && n.Name != i.Pod+"."+w.Namespace:
		return fmt.Errorf("the third part of the node's ID is %q, and the token is that of %s.%s", n.Name, i.Pod, w.Namespace)
	}
	return nil
}

func joined(clusters []federation.ClusterID) string {
	var all []string
	for _, c := range clusters {
		all = append(all, fmt.Sprintf("%q", c))
	}
	return strings.Join(all, " or ")
}
