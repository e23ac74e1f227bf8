package kubernetes

import (
	"context"
	"crypto/x509"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/analysis"
	"isthmus.dev/isthmus/internal/attach"
	"isthmus.dev/isthmus/internal/kube"
	"isthmus.dev/isthmus/internal/pemtext"
)

// Trusted is what certificates are verified with: roots in PEM by trust domain.
type Trusted interface{ Bundles() map[string][]byte }

// Where Istio says whom workloads of a cluster trust, and as whom they act.
const (
	istioNamespace = "istio-system"
	rootsConfigMap = "istio-ca-root-cert"
	rootsKey       = "root-cert.pem"
	meshConfigMap  = "istio"
	meshKey        = "mesh"
)

// trust compares the trust domain that the cluster has, and its roots, with those
// of the hub (B-K20). Where the account may not read them, nothing is compared.
func (s *server) trust(ctx context.Context, trusted Trusted) {
	if trusted == nil {
		return
	}
	roots, err := s.configured(ctx, rootsConfigMap, rootsKey)
	if err != nil {
		s.report.Add(attach.TrustDomain, analysis.Info, notCompared(err))
		return
	}
	if roots == "" {
		s.report.Addf(attach.TrustDomain, analysis.Info, "the cluster has no roots of its own")
		return
	}
	mesh, err := s.configured(ctx, meshConfigMap, meshKey)
	if err != nil {
		s.report.Add(attach.TrustDomain, analysis.Info, notCompared(err))
		return
	}
	severity, message := compareTrust(trustDomainIn(mesh), roots, trusted.Bundles())
	s.report.Add(attach.TrustDomain, severity, message)
}

func notCompared(err error) string {
	if apierrors.IsForbidden(err) {
		return "trust domains are not compared: the account may not read Istio's ConfigMaps; deploy/kubernetes/trust.yaml grants it that, if you want them compared"
	}
	return "trust domains are not compared: " + kube.Explain(err)
}

// configured is a key of a ConfigMap; empty where there is none.
func (s *server) configured(ctx context.Context, name, key string) (string, error) {
	list, err := s.CoreV1().ConfigMaps(istioNamespace).List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name, Limit: 1})
	if err != nil || len(list.Items) == 0 {
		return "", err
	}
	return list.Items[0].Data[key], nil
}

func trustDomainIn(mesh string) string {
	var m struct {
		TrustDomain string `json:"trustDomain"`
	}
	if yaml.Unmarshal([]byte(mesh), &m) != nil || m.TrustDomain == "" || len(m.TrustDomain) > 253 {
		return federation.DefaultTrustDomain
	}
	return m.TrustDomain
}

// compareTrust judges the roots that a cluster has for its trust domain.
func compareTrust(domain, roots string, bundles map[string][]byte) (severity analysis.Severity, message string) {
	theirs, ours := certificatesIn([]byte(roots)), certificatesIn(bundles[domain])
	switch {
	case len(ours) == 0:
		return analysis.Warning, "workloads of the cluster are of trust domain " + quoted(domain) +
			", for which the hub has no roots: name them in identity.bundles, or proxies do not trust them"
	case slices.ContainsFunc(theirs, func(c *x509.Certificate) bool { return slices.ContainsFunc(ours, c.Equal) }):
		return analysis.Info, "the cluster and the hub have the same roots for trust domain " + quoted(domain)
	}
	return analysis.Refusal, "trust domain " + quoted(domain) +
		" has other roots in the cluster than here: two meshes of one name cannot be told apart; give one of them another trust domain, or add the cluster's roots to identity.bundles"
}

func quoted(text string) string { return fmt.Sprintf("%.253q", text) }

func certificatesIn(data []byte) (all []*x509.Certificate) {
	for block := range pemtext.Blocks(data) {
		if c, err := x509.ParseCertificate(block.Bytes); err == nil {
			all = append(all, c)
		}
	}
	return all
}
