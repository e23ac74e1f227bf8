package kube

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/transport"

	"isthmus.dev/isthmus/deploy/testbed"
)

func anywhere(netip.AddrPort) error { return nil }

func serverCA(server *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
}

// apiServer starts a TLS server and credentials that trust it.
func apiServer(t *testing.T, handler http.HandlerFunc) (*httptest.Server, *Credentials) {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.EnableHTTP2 = true
	server.Config.ErrorLog = nil
	server.StartTLS()
	t.Cleanup(server.Close)
	return server, &Credentials{Server: server.URL, CA: serverCA(server), Token: NewSecret(canary)}
}

func identity(t *testing.T, credentials *Credentials, allow AddressPolicy) (string, error) {
	t.Helper()
	client, err := Connect(credentials, ConnectOptions{Allow: allow})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	namespace, err := client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("reading namespace kube-system: %w", err)
	}
	if namespace.UID == "" {
		return "", fmt.Errorf("reading namespace kube-system: %w", ErrNotAPIServer)
	}
	return string(namespace.UID), nil
}

func answer(status int, contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

const kubeSystem = `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":"3f0c"}}`

func TestIdentityIsTheUIDOfKubeSystem(t *testing.T) {
	_, credentials := apiServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+canary || r.UserAgent() != "isthmus" || r.Proto != "HTTP/2.0" ||
			!strings.Contains(r.Header.Get("Accept"), "protobuf") || r.Header.Get("Accept-Encoding") != "gzip" ||
			r.URL.Path != "/api/v1/namespaces/kube-system" {
			http.Error(w, fmt.Sprint(r.Header, r.Proto, r.URL), http.StatusTeapot)
			return
		}
		answer(200, "application/json", kubeSystem)(w, r)
	})
	uid, err := identity(t, credentials, anywhere)
	if err != nil || uid != "3f0c" {
		t.Errorf("got %q, %v", uid, err)
	}
}

func TestBK07PolicyIsAskedAfterDNS(t *testing.T) {
	server, credentials := apiServer(t, answer(200, "application/json", kubeSystem))
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	credentials.Server, credentials.ServerName = "https://localhost:"+port, "example.com"
	var asked atomic.Value
	_, err = identity(t, credentials, func(address netip.AddrPort) error {
		asked.Store(address)
		return errors.New("loopback")
	})
	if !errors.Is(err, ErrAddressRefused) || !strings.Contains(Explain(err), "address policy") {
		t.Errorf("got %v", err)
	}
	if address, ok := asked.Load().(netip.AddrPort); !ok || !address.Addr().IsLoopback() || fmt.Sprint(address.Port()) != port {
		t.Errorf("asked about %v", asked.Load())
	}
	if _, err := Connect(credentials, ConnectOptions{}); err == nil {
		t.Error("connects without a policy")
	}
}

func TestBK07RedirectsAreNotFollowed(t *testing.T) {
	followed := atomic.Bool{}
	target, _ := apiServer(t, func(http.ResponseWriter, *http.Request) { followed.Store(true) })
	_, credentials := apiServer(t, http.RedirectHandler(target.URL, http.StatusFound).ServeHTTP)
	_, err := identity(t, credentials, anywhere)
	if !errors.Is(err, ErrRedirect) || followed.Load() {
		t.Errorf("got %v, followed %v", err, followed.Load())
	}
}

func TestBK08ProxyEnvironmentIsIgnored(t *testing.T) {
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:1")
	_, credentials := apiServer(t, answer(200, "application/json", kubeSystem))
	client, err := Connect(credentials, ConnectOptions{Allow: anywhere})
	if err != nil {
		t.Fatal(err)
	}
	if client.transport.Proxy != nil {
		t.Error("the transport has a proxy function")
	}
}

// TestBK18Explain feeds answers of servers that are none. No word of theirs may come back (S40).
func TestBK18Explain(t *testing.T) {
	status := func(code int, reason, message string) string {
		return fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d,"reason":%q,"message":%q,"details":{"kind":%q}}`,
			code, reason, message, canary)
	}
	cases := []struct {
		name, want string
		trouble    Trouble
		handler    http.HandlerFunc
	}{
		{"web page", "not that of a Kubernetes API server", TroubleNotAPIServer, answer(200, "text/html", "<html>"+canary)},
		{"wrong JSON types", "not that of", TroubleNotAPIServer, answer(200, "application/json", `{"kind":"`+canary+`","apiVersion":7}`)},
		{"empty object", "not that of", TroubleNotAPIServer, answer(200, "application/json", `{"kind":"Namespace","apiVersion":"v1"}`)},
		{"wrong protobuf", "cut off", TroubleUnreachable, answer(200, protobufTypes, "k8s\x00"+canary)},
		{"401", "(401)", TroubleUnauthorized, answer(401, "application/json", status(401, "Unauthorized", canary))},
		{"401 as text", "(401)", TroubleUnauthorized, answer(401, "text/plain", canary)},
		{"403", "lack a right (403)", TroubleForbidden, answer(403, "application/json", status(403, "Forbidden", canary+"\n\x1b[31m"))},
		{"403 of RBAC", "list on services of group core", TroubleForbidden, answer(403, "application/json",
			status(403, "Forbidden", `services is forbidden: User "`+canary+
				`" cannot list resource "services" in API group "" at the cluster scope`))},
		{"404", "(404)", TroubleNotFound, answer(404, "text/html", canary)},
		{"500", "(500)", TroubleServer, answer(500, "application/json", status(500, "InternalError", canary))},
		{"teapot", "unexpected status (418)", TroubleNotAPIServer, answer(418, "text/plain", canary)},
		{"410", "(410)", TroubleExpired, answer(410, "application/json", status(410, "Expired", canary))},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, credentials := apiServer(t, c.handler)
			_, err := identity(t, credentials, anywhere)
			got := Diagnose(err)
			if err == nil || got.Trouble != c.trouble || !strings.Contains(got.Message, c.want) {
				t.Fatalf("got %q %q for %v", got.Trouble, got.Message, err)
			}
			if strings.Contains(got.Message, canary) || strings.ContainsAny(got.Message, "\n\x1b") {
				t.Errorf("repeats the answer: %q", got.Message)
			}
		})
	}
}

func TestBK18AnswersAreBounded(t *testing.T) {
	_, credentials := apiServer(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		block := []byte(strings.Repeat("x", 1<<20))
		for range maxResponseBody>>20 + 8 {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
	})
	_, err := identity(t, credentials, anywhere)
	if Diagnose(err).Trouble != TroubleNotAPIServer || !strings.Contains(Explain(err), "larger") {
		t.Errorf("got %v", err)
	}
}

func TestWatchIsNotBounded(t *testing.T) {
	release := make(chan struct{})
	_, credentials := apiServer(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.(http.Flusher).Flush()
		<-release
		fmt.Fprintf(w, `{"type":"ADDED","object":%s}`, kubeSystem)
	})
	client, err := Connect(credentials, ConnectOptions{Allow: anywhere})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	watcher, err := client.CoreV1().Namespaces().Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer watcher.Stop()
	close(release)
	if event := <-watcher.ResultChan(); event.Type != "ADDED" {
		t.Errorf("got %v", event)
	}
}

func TestExplainConnections(t *testing.T) {
	server, credentials := apiServer(t, answer(200, "application/json", kubeSystem))
	plain := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plain.Close)
	local := netip.MustParseAddr("127.0.0.1")
	closed := netip.AddrPortFrom(local, uint16(testbed.FreePort(t, nil, local))) // nobody else takes it meanwhile
	cases := []struct {
		name, want string
		trouble    Trouble
		with       Credentials
	}{
		{"unknown authority", "unknown authority", TroubleTLS, Credentials{Server: server.URL, CA: valid(t, ecKey(t))}},
		{"other name", "another name", TroubleTLS, Credentials{Server: server.URL, CA: credentials.CA, ServerName: "other.example.org"}},
		{"no TLS", "", TroubleNotAPIServer, Credentials{Server: strings.Replace(plain.URL, "http:", "https:", 1)}},
		{"refused", "connection refused", TroubleUnreachable, Credentials{Server: "https://" + closed.String()}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := identity(t, &c.with, anywhere)
			if got := Diagnose(err); got.Trouble != c.trouble || !strings.Contains(got.Message, c.want) {
				t.Errorf("got %+v for %v", got, err)
			}
		})
	}
	for err, want := range map[error]Trouble{
		nil:              TroubleNone,
		context.Canceled: TroubleCanceled,
		&net.DNSError{Err: "x", IsNotFound: true}:        TroubleUnreachable,
		fmt.Errorf("list: %w", context.DeadlineExceeded): TroubleTimeout,
		io.ErrUnexpectedEOF:                              TroubleUnreachable,
	} {
		if got := Diagnose(err); got.Trouble != want || (err != nil) != (got.Message != "") {
			t.Errorf("%v: got %+v", err, got)
		}
	}
}

// TestBK01SecondWall shows that a configuration with forbidden parts is refused after the parser, too (S44).
func TestBK01SecondWall(t *testing.T) {
	cases := map[string]rest.Config{
		"exec":        {ExecProvider: &clientcmdapi.ExecConfig{Command: "true"}},
		"auth":        {AuthProvider: &clientcmdapi.AuthProviderConfig{Name: "oidc"}},
		"token file":  {BearerTokenFile: "/x"},
		"CA file":     {TLSClientConfig: rest.TLSClientConfig{CAFile: "/x"}},
		"insecure":    {TLSClientConfig: rest.TLSClientConfig{Insecure: true}},
		"impersonate": {Impersonate: rest.ImpersonationConfig{UserName: "x"}},
		"password":    {Username: "x"},
		"proxy":       {Proxy: http.ProxyFromEnvironment},
	}
	for name, config := range cases {
		if seal(&config) == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	denied := &rest.Config{Host: "https://10.0.0.1", ExecProvider: &clientcmdapi.ExecConfig{
		Command: "true", APIVersion: "client.authentication.k8s.io/v1", InteractiveMode: clientcmdapi.NeverExecInteractiveMode,
	}}
	if seal(denied) == nil {
		t.Fatal("exec is accepted")
	}
	config, err := denied.TransportConfig()
	if err != nil {
		t.Fatal(err)
	}
	roundTripper, err := transport.HTTPWrappersForConfig(config, http.DefaultTransport)
	if err != nil {
		t.Fatal(err)
	}
	request := httptest.NewRequest(http.MethodGet, "https://10.0.0.1/", nil)
	if _, err := roundTripper.RoundTrip(request); err == nil || !strings.Contains(err.Error(), "not allowed") {
		t.Errorf("client-go ran the plug-in: %v", err)
	}
}
