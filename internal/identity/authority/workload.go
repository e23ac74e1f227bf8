// Package authority is the certificate authority of the mesh: it signs certificates,
// rotates signers, and keeps a trust bundle for each trust domain.
package authority

import (
	"fmt"
	"strings"

	"github.com/spiffe/go-spiffe/v2/spiffeid"
)

// Workload is whom a certificate is for: a service account of a namespace of a
// trust domain.
type Workload struct {
	TrustDomain    string
	Namespace      string
	ServiceAccount string
}

// NewWorkload refuses what cannot be a part of a SPIFFE ID.
func NewWorkload(domain, namespace, account string) (Workload, error) {
	w := Workload{TrustDomain: domain, Namespace: namespace, ServiceAccount: account}
	if _, err := w.id(); err != nil {
		return Workload{}, fmt.Errorf("naming the workload %q of the namespace %q in the trust domain %q: %w", account, namespace, domain, err)
	}
	return w, nil
}

// ParseWorkload reads spiffe://TRUSTDOMAIN/ns/NAMESPACE/sa/ACCOUNT and nothing else.
func ParseWorkload(uri string) (Workload, error) {
	id, err := spiffeid.FromString(uri)
	if err != nil {
		return Workload{}, fmt.Errorf("reading the identity %q: %w", uri, err)
	}
	return workloadOf(id)
}

// unqualified is the name that Istio's agents request if they have no trust domain, as on machines that istioctl describes.
func (w Workload) unqualified() string {
	return Workload{Namespace: w.Namespace, ServiceAccount: w.ServiceAccount}.String()
}

func workloadOf(id spiffeid.ID) (Workload, error) {
	parts := strings.Split(id.Path(), "/")
	if len(parts) != 5 || parts[1] != "ns" || parts[3] != "sa" {
		return Workload{}, fmt.Errorf("the identity %q has not the form spiffe://TRUSTDOMAIN/ns/NAMESPACE/sa/ACCOUNT", id)
	}
	return Workload{TrustDomain: id.TrustDomain().Name(), Namespace: parts[2], ServiceAccount: parts[4]}, nil
}

// String is the SPIFFE ID.
func (w Workload) String() string {
	return "spiffe://" + w.TrustDomain + "/ns/" + w.Namespace + "/sa/" + w.ServiceAccount
}

func (w Workload) id() (spiffeid.ID, error) {
	domain, err := spiffeid.TrustDomainFromString(w.TrustDomain)
	if err != nil {
		return spiffeid.ID{}, err
	}
	return spiffeid.FromSegments(domain, "ns", w.Namespace, "sa", w.ServiceAccount)
}

// CheckTrustDomain refuses what cannot be the name of a trust domain.
func CheckTrustDomain(name string) error {
	if domain, err := spiffeid.TrustDomainFromString(name); err != nil || domain.Name() != name {
		return fmt.Errorf("%q is not a trust domain: use the letters a to z, digits, '.', '-' and '_', such as cluster.local", name)
	}
	return nil
}
