package csr

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"
	security "istio.io/api/security/v1alpha1"
	authenticationv1 "k8s.io/api/authentication/v1"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/access"
	"isthmus.dev/isthmus/internal/identity/authority"
	"isthmus.dev/isthmus/internal/kube/clients"
	"isthmus.dev/isthmus/internal/kube/listwatch"
	"isthmus.dev/isthmus/internal/kube/listwatch/listwatchtest"
)

// shared is a store of one replica; it seals nothing.
type shared struct {
	value    []byte
	revision int64
}

func (s *shared) Load(context.Context) ([]byte, int64, error) { return s.value, s.revision, nil }

func (s *shared) Save(_ context.Context, value []byte, revision int64) (bool, error) {
	s.value, s.revision = value, revision+1
	return true, nil
}

func (s *shared) Seal(secret []byte, _ string) ([]byte, error) { return secret, nil }
func (s *shared) Open(sealed []byte, _ string) ([]byte, error) { return sealed, nil }

// hub is a certificate service over TLS, with a cluster c1 that says that the
// token with the signature NAME is that of shop/NAME.
type hub struct {
	t         *testing.T
	at        string
	server    *testbed.Authority
	authority *authority.Authority
	trust     *authority.Trust
	mu        sync.Mutex
	log       bytes.Buffer
	counted   map[Outcome]int
	store     *shared
	accounts  []string // of workloads at the callers' address
	poisoned  bool     // signing panics
}

// Sign makes the hub a Signer.
func (h *hub) Sign(o authority.Order) (authority.Leaf, error) {
	h.mu.Lock()
	poisoned := h.poisoned
	h.mu.Unlock()
	if poisoned {
		panic("poison")
	}
	return h.authority.Sign(o)
}

func (h *hub) poison(on bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.poisoned = on
}

func (h *hub) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.log.Write(p)
}

func (h *hub) Requested(o Outcome) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.counted[o]++
}

func (h *hub) Named(name federation.ClusterID) federation.ClusterID { return name }

func (h *hub) AttachState(id federation.ClusterID) access.AttachState {
	return access.AttachState{Attached: id == "c1", UID: "u1", TrustDomain: "mesh.example"}
}

func (h *hub) AccountsAt(federation.ClusterID, netip.Addr) []string { return h.accounts }

func startHub(t *testing.T, limits Limits) *hub {
	t.Helper()
	h := &hub{t: t, server: testbed.NewAuthority(t, "hub"), counted: map[Outcome]int{}}
	store, logger := &shared{}, slog.New(slog.NewTextHandler(h, nil))
	h.store = store
	var err error
	h.authority, err = authority.Open(t.Context(), authority.Options{
		TrustDomain: "mesh.example", Store: store, Keys: store, Policy: authority.Policy{Leaf: time.Hour}, Logger: logger,
	})
	if err != nil {
		t.Fatal(err)
	}
	h.trust, err = authority.OpenTrust(authority.TrustOptions{Authority: h.authority})
	if err != nil {
		t.Fatal(err)
	}
	tokens := access.NewTokens(access.TokenOptions{Audiences: []string{"isthmus"}, Clusters: h})
	tokens.Attach("c1", reviewer(t), listwatchtest.Probed(t, reviewer(t), listwatch.ClusterOptions{}))
	guard := access.New(access.Options{Certificates: h.trust, Tokens: tokens, Clusters: h, Workloads: h, Hub: "hub", Logger: logger})
	service := New(Options{Callers: guard, Signer: h, Roots: h.trust, Limits: limits, Metrics: h, Logger: logger})
	config := h.server.TLS(testbed.Subject{Name: "hub", Hosts: []string{"127.0.0.1"}})
	config.ClientAuth, config.ClientCAs, config.NextProtos = tls.VerifyClientCertIfGiven, h.trust.Pool(), []string{"h2"}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.Creds(credentials.NewTLS(config)))
	service.Register(server)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() { server.Stop(); <-served })
	h.at = listener.Addr().String()
	return h
}

func reviewer(t *testing.T) clients.Interface {
	t.Helper()
	server := listwatchtest.New("u1")
	server.Review(func(token string) authenticationv1.TokenReviewStatus {
		name := token[strings.LastIndexByte(token, '.')+1:]
		return authenticationv1.TokenReviewStatus{
			Authenticated: name != "forged", Audiences: []string{"isthmus"},
			User: authenticationv1.UserInfo{Username: "system:serviceaccount:shop:" + name},
		}
	})
	return server.Client(t)
}

// token is one that the reviewer takes for that of shop/NAME.
func token(name string) string {
	payload, _ := json.Marshal(map[string]any{"aud": "isthmus", "exp": time.Now().Add(time.Hour).Unix()})
	return "e30." + base64.RawURLEncoding.EncodeToString(payload) + "." + name
}

// caller is how a client proves who it is.
type caller struct {
	token, cluster string
	pair           *tls.Certificate
}

func (h *hub) create(c caller, r *security.IstioCertificateRequest) ([]string, error) {
	h.t.Helper()
	config := &tls.Config{RootCAs: h.server.Pool()}
	if c.pair != nil {
		config.Certificates = []tls.Certificate{*c.pair}
	}
	conn, err := grpc.NewClient(h.at, grpc.WithTransportCredentials(credentials.NewTLS(config)))
	if err != nil {
		h.t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(h.t.Context(), time.Minute)
	defer cancel()
	if c.token != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+c.token, "clusterid", c.cluster)
	}
	answer, err := security.NewIstioCertificateServiceClient(conn).CreateCertificate(ctx, r)
	return answer.GetCertChain(), err
}

// request is a signing request with the key's PEM.
func request(t *testing.T, uris ...string) (csr string, key []byte) {
	t.Helper()
	private, key, err := authority.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	var template x509.CertificateRequest
	for _, text := range uris {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		template.URIs = append(template.URIs, u)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &template, private)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})), key
}

// The whole way of an agent: by its token it gets a certificate, and by that the
// next one.
func TestACertificateByTokenAndThenByCertificate(t *testing.T) {
	h := startHub(t, Limits{})
	web := caller{token: token("web"), cluster: "c1"}
	for _, by := range []string{"token", "certificate"} {
		csr, key := request(t, "spiffe://mesh.example/ns/shop/sa/web")
		chain, err := h.create(web, &security.IstioCertificateRequest{Csr: csr, ValidityDuration: 600})
		if err != nil || len(chain) != 2 {
			t.Fatalf("by %s: %d certificates, %v", by, len(chain), err)
		}
		pair, err := tls.X509KeyPair([]byte(chain[0]), key)
		if err != nil {
			t.Fatal(err)
		}
		proof, err := h.trust.Verify([]*x509.Certificate{pair.Leaf})
		if err != nil || proof.Workload.String() != "spiffe://mesh.example/ns/shop/sa/web" || fmt.Sprint(proof.Clusters) != "[c1]" {
			t.Errorf("by %s it proves %+v, %v", by, proof, err)
		}
		if left := time.Until(pair.Leaf.NotAfter); left > 10*time.Minute {
			t.Errorf("it lives %s", left)
		}
		if chain[1] != string(h.trust.Bundles()["mesh.example"]) {
			t.Error("the roots do not come last")
		}
		web = caller{pair: &pair}
	}
	if h.counted[Signed] != 2 {
		t.Errorf("counted %v", h.counted)
	}
	for _, secret := range []string{token("web"), "PRIVATE", "BEGIN"} {
		if strings.Contains(h.log.String(), secret) {
			t.Error("the log tells too much")
		}
	}
	if !strings.Contains(h.log.String(), "spiffe://mesh.example/ns/shop/sa/web") || !strings.Contains(h.log.String(), "serial=") {
		t.Errorf("the log does not tell who got a certificate:\n%s", h.log.String())
	}
}

// S1, S2: nobody gets the certificate of another.
func TestS02CertificatesForWhatWasProvenOnly(t *testing.T) {
	h := startHub(t, Limits{})
	web := caller{token: token("web"), cluster: "c1"}
	own, _ := request(t)
	others, _ := request(t, "spiffe://mesh.example/ns/shop/sa/admin")
	impersonating, err := structpb.NewStruct(map[string]any{impersonates: "spiffe://mesh.example/ns/shop/sa/admin"})
	if err != nil {
		t.Fatal(err)
	}
	stranger := testbed.NewAuthority(t, "stranger").TLS(testbed.Subject{
		Name:  "x",
		Hosts: []string{"spiffe://mesh.example/ns/shop/sa/admin"},
	}).Certificates[0]
	for name, c := range map[string]struct {
		caller
		request *security.IstioCertificateRequest
		want    codes.Code
	}{
		"its own":                {web, &security.IstioCertificateRequest{Csr: own}, codes.OK},
		"another's":              {web, &security.IstioCertificateRequest{Csr: others}, codes.PermissionDenied},
		"another's, by metadata": {web, &security.IstioCertificateRequest{Csr: own, Metadata: impersonating}, codes.InvalidArgument},
		"nobody":                 {caller{}, &security.IstioCertificateRequest{Csr: own}, codes.Unauthenticated},
		"a forged token": {
			caller{token: token("forged"), cluster: "c1"},
			&security.IstioCertificateRequest{Csr: own},
			codes.Unauthenticated,
		},
		"an unknown cluster": {
			caller{token: token("web"), cluster: "c2"},
			&security.IstioCertificateRequest{Csr: own},
			codes.Unauthenticated,
		},
		"a strange certificate": {caller{pair: &stranger}, &security.IstioCertificateRequest{Csr: own}, codes.Unauthenticated},
		"no request":            {web, &security.IstioCertificateRequest{}, codes.InvalidArgument},
		"a request that is large": {
			web, &security.IstioCertificateRequest{Csr: strings.Repeat("x", authority.MaxRequest+1)},
			codes.InvalidArgument,
		},
	} {
		if chain, err := h.create(c.caller, c.request); status.Code(err) != c.want || (len(chain) > 0) != (err == nil) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}

func TestCertificatesAreLimited(t *testing.T) {
	h := startHub(t, Limits{Workload: 0.001, WorkloadBurst: 2, All: 0.001, AllBurst: 3})
	csr, _ := request(t)
	for i, c := range []struct {
		account string
		want    codes.Code
	}{{"web", codes.OK}, {"web", codes.OK}, {"web", codes.ResourceExhausted}, {"cart", codes.OK}, {"db", codes.ResourceExhausted}} {
		if _, err := h.create(caller{token: token(c.account), cluster: "c1"},
			&security.IstioCertificateRequest{Csr: csr}); status.Code(err) != c.want {
			t.Errorf("request %d of %s: %v", i, c.account, err)
		}
	}
	if h.counted[Limited] != 2 {
		t.Errorf("counted %v", h.counted)
	}
}
