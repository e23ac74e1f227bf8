package xds

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	security "istio.io/api/security/v1"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/jwks/fetch"
	"isthmus.dev/isthmus/xds/envoy"
)

// keySet verifies tokens of the issuer. It also has a key of a type that nobody knows.
func keySet(of testbed.TokenIssuer) string { return `{"keys":[{"kty":"XYZ"},` + of.Key() + `]}` }

// keyServer is a server of keys whose answer changes.
type keyServer struct {
	answer atomic.Pointer[http.HandlerFunc]
	asked  atomic.Int64
}

func (k *keyServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	k.asked.Add(1)
	(*k.answer.Load())(w, r)
}

func (k *keyServer) says(body string) {
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) })
	k.answer.Store(&handler)
}

// verifies has the edge verify tokens by the keys at a URI, which a Keeper fetches.
func (e *edge) verifies(uri string) {
	e.operator.Update(federation.Edit{Settings: &federation.Settings{Addresses: federation.AddressPolicy{AllowLoopback: true}}})
	o := &federation.Object{
		Key:   federation.ObjectKey{Group: "security.istio.io", Kind: "RequestAuthentication", Namespace: "shop", Name: "tokens"},
		Names: []string{federation.WorkloadsName + "shop"}, Digest: uri,
		Spec: &security.RequestAuthentication{JwtRules: []*security.JWTRule{{Issuer: "issuer", JwksUri: uri}}},
	}
	e.operator.Update(federation.Edit{Objects: federation.Delta[federation.ObjectKey,
		*federation.Object]{Set: map[federation.ObjectKey]*federation.Object{o.Key: o}}})
	ctx, cancel := context.WithCancel(e.t.Context())
	done := make(chan error)
	keeper := fetch.New(fetch.Options{
		Snapshots: e.snapshots, To: e.snapshots.Open(federation.ShardKey{Provider: "Keys"}),
		Every: 50 * time.Millisecond,
	})
	go func() { done <- keeper.Run(ctx) }()
	e.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			e.t.Error(err)
		}
	})
}

// answers waits until a request with a token of the issuer is answered with the status.
func (e *edge) answers(status int, by testbed.TokenIssuer, what string) {
	e.t.Helper()
	token := by.Token(map[string]any{"iss": "issuer", "sub": "ann", "exp": time.Now().Add(time.Hour).Unix()})
	e.await(what, func() error {
		answer := e.namespace.Get("http://"+gatewayIP+":8080/", "Host", "plain.example.com", "Authorization", "Bearer "+token)
		if answer.Status != status {
			return fmt.Errorf("the answer has status %d, %w", answer.Status, answer.Err)
		}
		return nil
	})
}

// TestK10K11KeysThatAServerChangesReachARealGateway: without keys tokens are refused; keys that come, and keys
// that replace them, verify tokens; and what a server says that fails changes nothing and is sent to nobody.
func TestK10K11KeysThatAServerChangesReachARealGateway(t *testing.T) {
	e, server := newEdge(t), &keyServer{}
	first, second := testbed.NewTokenIssuer(t), testbed.NewTokenIssuer(t)
	server.says(`{"keys":[{"kty":"XYZ"}]}`)
	at := httptest.NewServer(server)
	defer at.Close()
	e.verifies(at.URL)
	e.answers(http.StatusUnauthorized, first, "a token to be refused while there are no keys")
	server.says(keySet(first))
	e.answers(http.StatusOK, first, "the token to be accepted")
	server.says(keySet(second))
	e.answers(http.StatusOK, second, "a token of the new key to be accepted")
	e.answers(http.StatusUnauthorized, first, "a token of the old key to be refused")
	e.await("everything to be accepted", e.inSync)
	e.forget()
	for _, bad := range []http.HandlerFunc{
		func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) },
		func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://169.254.169.254/", http.StatusFound)
		},
		func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("{")) },
	} {
		before := server.asked.Load()
		server.answer.Store(&bad)
		e.await("the server to be asked", func() error {
			if server.asked.Load() == before {
				return fmt.Errorf("it was not asked")
			}
			return nil
		})
		e.answers(http.StatusOK, second, "the last good keys to stay")
	}
	if n := e.counted(Sent, envoy.ListenerType); n > 0 {
		t.Errorf("a failure is sent to the gateway %d times", n)
	}
}
