package bridge

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	security "istio.io/api/security/v1alpha1"

	"isthmus.dev/isthmus/deploy/testbed"
)

// certify gets the certificate with which a proxy proves to the hub who it is. On
// Kubernetes the hub signs it for a token of the service account, as it does for
// Istio's agents; what runs in dc1 has one of the machines' own authority.
func (w *Topology) certify(t testing.TB, s *Site, p *Pod) (chain, key []byte) {
	t.Helper()
	if s.Kube == nil {
		return w.Certificate(testbed.Subject{Hosts: []string{SPIFFE(p)}})
	}
	token := s.Kube.ServiceAccountToken(testbed.TokenOptions{Namespace: p.namespace, Account: p.Account, Audience: "isthmus"})
	chain, key, err := w.Hub.sign(s.Cluster, token)
	if err != nil {
		t.Fatalf("getting a certificate for %s in %s: %v", p.Name, s.Cluster, err)
	}
	return chain, key
}

// SPIFFE is the identity of what runs in a pod.
func SPIFFE(p *Pod) string { return "spiffe://cluster.local/ns/" + p.namespace + "/sa/" + p.Account }

// Certificate is one of the authority of the machines in dc1, which the mesh trusts.
func (w *Topology) Certificate(subject testbed.Subject) (chain, key []byte) {
	return w.machines.Issue(subject)
}

// sign asks the hub's certificate service.
func (h *Hub) sign(cluster, token string) (chain, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	request, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, private)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(h.CA)
	conn, err := grpc.NewClient("passthrough:///"+h.XDS, grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: roots})),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			return h.at.DialContext(ctx, "tcp", address)
		}))
	if err != nil {
		return nil, nil, err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token, "clusterid", cluster)
	answer, err := security.NewIstioCertificateServiceClient(conn).CreateCertificate(ctx, &security.IstioCertificateRequest{
		Csr: string(encode("CERTIFICATE REQUEST", request)),
	})
	if err != nil {
		return nil, nil, fmt.Errorf("asking the hub: %w", err)
	}
	certificates := answer.GetCertChain()
	if len(certificates) > 1 {
		certificates = certificates[:len(certificates)-1] // without the root
	}
	return []byte(strings.Join(certificates, "\n")), encode("PRIVATE KEY", der), nil
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
