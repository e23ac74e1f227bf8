package access

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/identity/authority"
	"isthmus.dev/isthmus/internal/kube/clients"
	"isthmus.dev/isthmus/internal/kube/listwatch"
	"isthmus.dev/isthmus/internal/kube/listwatch/listwatchtest"
)

// fixture is what a guard knows about clusters and workloads.
type fixture struct {
	mu       sync.Mutex
	now      time.Time
	clusters map[federation.ClusterID]AttachState
	named    map[federation.ClusterID]federation.ClusterID // by alias
	accounts map[string][]string                           // by address
	proofs   map[string]authority.Proof                    // by common name
	counted  map[string]int
	log      bytes.Buffer
	tokens   *Tokens
	*Guard
}

func newFixture(clusters map[federation.ClusterID]AttachState) *fixture {
	w := &fixture{now: time.Now(), clusters: clusters, proofs: map[string]authority.Proof{}, counted: map[string]int{}}
	w.tokens = NewTokens(TokenOptions{Audiences: []string{"isthmus", "istio-ca"}, Clusters: w, Now: func() time.Time { return w.now }})
	w.Guard = New(Options{
		Certificates: w, Tokens: w.tokens, Clusters: w, Workloads: w, Hub: "hub", Metrics: w,
		Logger: slog.New(slog.NewTextHandler(&w.log, nil)),
	})
	return w
}

// attach lets the client review tokens of the cluster, which was probed once.
func (w *fixture) attach(t *testing.T, id federation.ClusterID, client clients.Interface) (detach func()) {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	return w.tokens.Attach(id, client, listwatchtest.Probed(t, client, listwatch.ClusterOptions{UID: w.clusters[id].UID, Logger: quiet}))
}

func (w *fixture) Named(name federation.ClusterID) federation.ClusterID {
	return cmp.Or(w.named[name], name)
}

func (w *fixture) AttachState(id federation.ClusterID) AttachState {
	s := w.clusters[id]
	s.TrustDomain = cmp.Or(s.TrustDomain, "mesh.example")
	return s
}

func (w *fixture) AccountsAt(_ federation.ClusterID, at netip.Addr) []string {
	return w.accounts[at.String()]
}

func (w *fixture) Proof(by Method, outcome Outcome) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counted[string(by)+" "+string(outcome)]++
}

func (w *fixture) Verify(presented []*x509.Certificate) (authority.Proof, error) {
	proof, ok := w.proofs[presented[0].Subject.CommonName]
	if !ok {
		return authority.Proof{}, errors.New("the client's certificate: not of this mesh")
	}
	return proof, nil
}

// call is the context of a gRPC call.
type call struct {
	plain       bool
	certificate string // its common name
	token       Token
	cluster     string
	more        metadata.MD
}

func (c call) context(t *testing.T) context.Context {
	t.Helper()
	p := &peer.Peer{Addr: net.TCPAddrFromAddrPort(netip.MustParseAddrPort("10.0.0.7:4711"))}
	if !c.plain {
		info := credentials.TLSInfo{State: tls.ConnectionState{}}
		if c.certificate != "" {
			leaf := &x509.Certificate{}
			leaf.Subject.CommonName = c.certificate
			info.State.PeerCertificates = []*x509.Certificate{leaf}
		}
		p.AuthInfo = info
	}
	md := metadata.MD{}
	if c.token != "" {
		md.Set("authorization", "Bearer "+string(c.token))
	}
	if c.cluster != "" {
		md.Set("clusterid", c.cluster)
	}
	return metadata.NewIncomingContext(peer.NewContext(t.Context(), p), metadata.Join(md, c.more))
}

// forged is a token that no cluster made.
func forged(audience string, ends time.Time) Token {
	payload, _ := json.Marshal(map[string]any{"aud": audience, "exp": ends.Unix(), "sub": "system:serviceaccount:shop:web"})
	return Token(fmt.Sprintf("e30.%s.c2lnbmF0dXJl", base64.RawURLEncoding.EncodeToString(payload)))
}

func workload(namespace, account string) authority.Workload {
	return authority.Workload{TrustDomain: "mesh.example", Namespace: namespace, ServiceAccount: account}
}
