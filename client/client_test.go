package client_test

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"isthmus.dev/isthmus/client"
)

const hubAnswer = `{"data":{"hub":{"version":"v9","clusterID":"hub","snapshotVersion":"7"}}}`

// answering is a handler that answers everything alike.
func answering(status int, contentType, body string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	})
}

func open(t *testing.T, o client.Options) *client.Client {
	t.Helper()
	c, err := client.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func serving(t *testing.T, h http.Handler) *client.Client {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return open(t, client.Options{URL: server.URL})
}

func TestRequestsAreGraphQLOverHTTP(t *testing.T) {
	var sent []string
	var body struct {
		Query, OperationName string
		Variables            map[string]any
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil || r.URL.Path != "/graphql" || r.Method != http.MethodPost {
			t.Errorf("%s %s with %v", r.Method, r.URL, err)
		}
		if got := r.UserAgent(); got != "test/1" {
			t.Errorf("the user agent is %q", got)
		}
		w.Header().Set("Content-Type", "application/graphql-response+json; charset=utf-8")
		_, _ = io.WriteString(w, `{"data":{"configObject":null}}`)
	}))
	defer server.Close()
	c := open(t, client.Options{URL: server.URL + "/", UserAgent: "test/1", Sent: func(r client.Request) { sent = append(sent, r.Operation) }})
	namespace := "shop"
	answer, err := client.Object(t.Context(), c, "networking.istio.io", "VirtualService", &namespace, "web", nil, nil)
	if err != nil || answer.ConfigObject != nil {
		t.Fatalf("the answer is %+v, %v", answer, err)
	}
	if body.OperationName != "Object" || body.Variables["namespace"] != "shop" || !strings.Contains(body.Query, "query Object") {
		t.Errorf("the request is %+v", body)
	}
	if len(sent) != 1 || sent[0] != "Object" {
		t.Errorf("told of %v", sent)
	}
}

func TestUnixSocket(t *testing.T) {
	dir, err := os.MkdirTemp("", "client-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "hub")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: answering(200, "application/json", hubAnswer)}
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(listener) }()
	defer func() { server.Close(); <-done }()
	answer, err := client.Hub(t.Context(), open(t, client.Options{URL: "unix:" + path}))
	if err != nil || answer.Hub.Version != "v9" {
		t.Errorf("%+v, %v", answer, err)
	}
}

func TestErrorsAreTyped(t *testing.T) {
	for name, c := range map[string]struct {
		handler http.Handler
		check   func(error) bool
		text    string
	}{
		"of GraphQL": {
			answering(400, "application/graphql-response+json",
				`{"errors":[{"message":"too much","extensions":{"code":"TOO_COMPLEX"}},{"message":"more"}]}`),
			func(err error) bool { return client.CodeOf(err) == "TOO_COMPLEX" }, "too much; more",
		},
		"of the hub": {
			answering(200, "application/json", `{"errors":[{"message":"failed","extensions":{"code":"INTERNAL","requestId":"r1"}}],"data":null}`),
			func(err error) bool { return client.CodeOf(err) == "INTERNAL" }, "failed (r1)",
		},
		"no hub": {
			answering(404, "text/html", "<h1>nothing\nhere</h1>"),
			func(err error) bool { var e *client.StatusError; return errors.As(err, &e) && e.Status == 404 }, "nothing here",
		},
		"half an answer": {
			answering(200, "application/json", `{"data":`),
			func(err error) bool { var e *client.StatusError; return errors.As(err, &e) }, "not GraphQL",
		},
		"a redirect is not followed": {
			http.RedirectHandler("http://192.0.2.1/", http.StatusTemporaryRedirect),
			func(err error) bool { var e *client.StatusError; return errors.As(err, &e) && e.Status == 307 }, "307",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := client.Hub(t.Context(), serving(t, c.handler))
			if err == nil || !c.check(err) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

func TestUnreachableHubIsNamed(t *testing.T) {
	_, err := client.Hub(t.Context(), open(t, client.Options{URL: "http://127.0.0.1:1"}))
	var e *client.UnreachableError
	if !errors.As(err, &e) || e.Server != "http://127.0.0.1:1" || strings.Contains(err.Error(), "Post") {
		t.Errorf("the error is %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("enough")
	cancel(cause)
	if _, err := client.Hub(ctx, open(t, client.Options{URL: "http://127.0.0.1:1"})); !errors.Is(err, cause) {
		t.Errorf("the error is %v", err)
	}
}

func TestBF7BadAddressesAndFilesAreRefused(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty.pem")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		options client.Options
		want    string
	}{
		"no URL":         {client.Options{URL: "hub"}, "not the address of a hub"},
		"no scheme":      {client.Options{URL: "hub.example:8080"}, "not the address of a hub"},
		"empty":          {client.Options{}, "not the address of a hub"},
		"password":       {client.Options{URL: "https://u:hidden-word@hub"}, "contains a user name"},
		"broken":         {client.Options{URL: "https://u:hidden-word@hub:%zz"}, "not the address of a hub"},
		"query":          {client.Options{URL: "http://hub/?a=b"}, "more than an address"},
		"no path":        {client.Options{URL: "unix:"}, "no path"},
		"socket and TLS": {client.Options{URL: "unix:x", TLS: client.TLS{CA: "a"}}, "no TLS"},
		"http and TLS":   {client.Options{URL: "http://hub", TLS: client.TLS{CA: "a"}}, "plaintext"},
		"no CA":          {client.Options{URL: "https://hub", TLS: client.TLS{CA: "/none"}}, "/none"},
		"empty CA":       {client.Options{URL: "https://hub", TLS: client.TLS{CA: empty}}, "no certificate"},
		"half a pair":    {client.Options{URL: "https://hub", TLS: client.TLS{Cert: empty}}, "belong together"},
		"empty pair":     {client.Options{URL: "https://hub", TLS: client.TLS{Cert: empty, Key: empty}}, "certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := client.New(c.options)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hidden-word") {
				t.Errorf("the error is %v, want %q", err, c.want)
			}
		})
	}
}

func TestTLSIsVerified(t *testing.T) {
	server := httptest.NewTLSServer(answering(200, "application/json", hubAnswer))
	defer server.Close()
	server.Config.ErrorLog = nil
	_, err := client.Hub(t.Context(), open(t, client.Options{URL: server.URL}))
	var unknown x509.UnknownAuthorityError
	if !errors.As(err, &unknown) {
		t.Errorf("without the CA: %v", err)
	}
	ca := filepath.Join(t.TempDir(), "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(ca, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Hub(t.Context(), open(t, client.Options{URL: server.URL, TLS: client.TLS{CA: ca}})); err != nil {
		t.Errorf("with the CA: %v", err)
	}
}

func TestListsAreReadPageByPage(t *testing.T) {
	pages := 0
	c := serving(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct{ Variables struct{ After *string } }
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		pages++
		w.Header().Set("Content-Type", "application/json")
		if body.Variables.After == nil {
			_, _ = io.WriteString(w, `{"data":{"clusters":{"pageInfo":{"hasNextPage":true,"endCursor":"x"},"nodes":[{"clusterID":"c1"}]}}}`)
			return
		}
		_, _ = io.WriteString(w, `{"data":{"clusters":{"pageInfo":{"hasNextPage":false,"endCursor":"y"},"nodes":[{"clusterID":"c2-`+
			*body.Variables.After+`"}]}}}`)
	}))
	var got []string
	for cluster, err := range c.Clusters(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, cluster.ClusterID)
	}
	if strings.Join(got, " ") != "c1 c2-x" || pages != 2 {
		t.Errorf("%v in %d pages", got, pages)
	}
}
