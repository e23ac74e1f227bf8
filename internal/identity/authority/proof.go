package authority

import (
	"crypto/x509"
	"fmt"
	"slices"
	"time"

	"github.com/spiffe/go-spiffe/v2/svid/x509svid"

	"isthmus.dev/isthmus/federation"
)

// Proof is what a certificate proves.
type Proof struct {
	Workload Workload
	// Clusters are those of one of which the workload is; none: the certificate
	// does not tell, and no file of roots does.
	Clusters []federation.ClusterID
	Ends     time.Time // when the certificate does
	// Datacenter: a Consul datacenter signed the certificate, for the cluster that it is.
	Datacenter bool
	// Proven is when the workload last proved who it is by something else than a
	// certificate of the hub; zero: by this certificate.
	Proven time.Time
}

// Verify tells whose certificate it is: the first of those that a client
// presented, the others lead to a root. It has exactly one SPIFFE ID, whose trust
// domain's own bundle alone counts (S1). Its errors may be told to the client.
func (t *Trust) Verify(presented []*x509.Certificate) (Proof, error) {
	if len(presented) == 0 {
		return Proof{}, errNoCertificate
	}
	id, chains, err := x509svid.Verify(presented, t, x509svid.WithTime(t.o.Now()))
	if err != nil {
		return Proof{}, fmt.Errorf("the client's certificate: %w", plain(err))
	}
	if !mayAuthenticate(presented[0]) {
		return Proof{}, fmt.Errorf("the client's certificate is not for clients")
	}
	w, err := workloadOf(id)
	if err != nil {
		return Proof{}, err
	}
	own := slices.ContainsFunc(chains, t.signedHere)
	return Proof{
		Workload: w, Clusters: t.clustersOf(w, presented[0], chains), Ends: presented[0].NotAfter,
		Proven: lastProof(presented[0], own),
	}, nil
}

func mayAuthenticate(leaf *x509.Certificate) bool {
	return slices.Contains(leaf.ExtKeyUsage, x509.ExtKeyUsageClientAuth) || slices.Contains(leaf.ExtKeyUsage, x509.ExtKeyUsageAny)
}

// signedHere reports whether one of the hub's own signers signed the leaf of the chain.
func (t *Trust) signedHere(chain []*x509.Certificate) bool {
	return t.o.Authority != nil && len(chain) > 1 && t.o.Authority.now().signed(chain[1])
}

// clustersOf trusts the cluster that a leaf names only if one of the hub's own
// signers issued it.
func (t *Trust) clustersOf(w Workload, leaf *x509.Certificate, chains [][]*x509.Certificate) []federation.ClusterID {
	var all []federation.ClusterID
	for _, chain := range chains {
		if t.signedHere(chain) {
			if cluster, said := clusterOf(leaf); said {
				return []federation.ClusterID{cluster}
			}
		}
		all = append(all, t.clusters(w.TrustDomain, chain[len(chain)-1])...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}
