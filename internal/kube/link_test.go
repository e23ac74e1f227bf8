package kube

import (
	"bufio"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// TestF40BrokenConnectionIsUnreachable breaks the connection to a server in the
// ways that a restart of it does: each is the link's fault and passes.
func TestF40BrokenConnectionIsUnreachable(t *testing.T) {
	t.Parallel()
	cut := func(half bool) func(*httptest.Server, http.ResponseWriter) {
		return func(server *httptest.Server, w http.ResponseWriter) {
			if half {
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, kubeSystem[:20])
				w.(http.Flusher).Flush()
			}
			server.CloseClientConnections()
		}
	}
	abort := func(*httptest.Server, http.ResponseWriter) { panic(http.ErrAbortHandler) }
	abortInBody := func(_ *httptest.Server, w http.ResponseWriter) {
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
	for name, c := range map[string]struct {
		http1  bool
		handle func(*httptest.Server, http.ResponseWriter)
	}{
		"HTTP/2 stream reset":         {handle: abort},
		"HTTP/2 connection closed":    {handle: cut(false)},
		"HTTP/2 closed in the body":   {handle: cut(true)},
		"HTTP/1 connection closed":    {http1: true, handle: cut(false)},
		"HTTP/1 closed in the body":   {http1: true, handle: cut(true)},
		"HTTP/1 handler aborts":       {http1: true, handle: abort},
		"HTTP/2 body reset":           {handle: abortInBody},
		"HTTP/1 chunk without an end": {http1: true, handle: abortInBody},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // client-go tries some of them for 10 s
			var server *httptest.Server
			server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { c.handle(server, w) }))
			server.EnableHTTP2 = !c.http1
			server.StartTLS()
			defer server.Close()
			_, err := identity(t, &Credentials{Server: server.URL, CA: serverCA(server), Token: NewSecret(canary)}, anywhere)
			if got := Diagnose(err); got.Trouble != TroubleUnreachable || got.Definite {
				t.Errorf("got %+v for %v", got, err)
			}
		})
	}
	for _, text := range []string{
		"http2: client connection lost", "http2: server sent GOAWAY and closed the connection; LastStreamID=1, ErrCode=NO_ERROR",
		"http: server closed idle connection", "http2: client connection force closed via ClientConn.Close",
	} {
		err := &url.Error{Op: "Get", URL: "https://10.0.0.1/", Err: onLink(errors.New(text))}
		if got := Diagnose(err); got.Trouble != TroubleUnreachable || got.Definite {
			t.Errorf("got %+v for %v", got, err)
		}
	}
}

// TestBK18EndlessHeaderIsNoAPIServer: a server that answers so once does it again.
func TestBK18EndlessHeaderIsNoAPIServer(t *testing.T) {
	for name, http2 := range map[string]bool{"HTTP/1": false, "HTTP/2": true} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("X-Long", strings.Repeat("x", 2*maxResponseHeader))
			}))
			server.EnableHTTP2 = http2
			server.StartTLS()
			defer server.Close()
			_, err := identity(t, &Credentials{Server: server.URL, CA: serverCA(server), Token: NewSecret(canary)}, anywhere)
			if got := Diagnose(err); got.Trouble != TroubleNotAPIServer || !got.Definite || len(got.Message) > 200 {
				t.Errorf("got %+v for %.200s", got, err)
			}
		})
	}
}

func TestServerThatSpeaksNoHTTPIsNoAPIServer(t *testing.T) {
	helper := httptest.NewTLSServer(http.NotFoundHandler())
	defer helper.Close()
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: helper.TLS.Certificates})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go greet(connection)
		}
	}()
	defer listener.Close()
	_, err = identity(t, &Credentials{Server: "https://" + listener.Addr().String(), CA: serverCA(helper), Token: NewSecret(canary)}, anywhere)
	if got := Diagnose(err); got.Trouble != TroubleNotAPIServer || strings.Contains(got.Message, "SSH") {
		t.Errorf("got %+v for %v", got, err)
	}
}

func greet(connection net.Conn) {
	defer connection.Close()
	_, _ = bufio.NewReader(connection).ReadString('\n')
	_, _ = io.WriteString(connection, "SSH-2.0-OpenSSH_9.9\r\n\r\n")
}
