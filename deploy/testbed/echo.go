package testbed

import (
	"bufio"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"testing"
	"time"
)

// EchoOptions say where an echo server listens. Port 0 is any free one.
type EchoOptions struct {
	Name      string
	Namespace *Namespace  // Nil is the network of the test.
	Address   netip.Addr  // Default all of a namespace, or 127.0.0.1.
	HTTP      []int       // Ports for HTTP/1.1 and HTTP/2 without TLS.
	TCP       []int       // Ports that answer each line with NAME, a space and the line.
	TLS       *tls.Config // Non-nil: the HTTP ports speak TLS.
	Errors    io.Writer   // Of connections to HTTP ports, such as handshakes that fail. Nil: they are not told.
}

// Echo is a server in the test process that says who it is and who asked. The
// query ?status=503 makes it answer with a status, ?delay=2s late.
type Echo struct {
	HTTP, TCP []netip.AddrPort

	name    string
	closers []io.Closer
	mu      sync.Mutex
	conns   map[net.Conn]bool
}

// An EchoAnswer is the JSON body of the HTTP answer.
type EchoAnswer struct {
	Name       string      `json:"name"`
	Method     string      `json:"method"`
	Path       string      `json:"path"`
	Protocol   string      `json:"protocol"`
	Host       string      `json:"host"`
	Header     http.Header `json:"header"`
	Remote     string      `json:"remote"`
	ServerName string      `json:"serverName,omitempty"` // The SNI.
	Peer       []string    `json:"peer,omitempty"`       // The URIs of the client's certificate.
}

// StartEcho listens and serves until Stop or the end of the test.
func StartEcho(t testing.TB, options EchoOptions) *Echo {
	t.Helper()
	e := &Echo{name: options.Name, conns: map[net.Conn]bool{}}
	t.Cleanup(e.Stop)
	for _, port := range options.HTTP {
		listener := options.listen(t, port)
		e.HTTP = append(e.HTTP, localAddr(listener))
		e.serveHTTP(listener, options)
	}
	for _, port := range options.TCP {
		listener := options.listen(t, port)
		e.TCP = append(e.TCP, localAddr(listener))
		e.closers = append(e.closers, listener)
		go e.serveTCP(listener)
	}
	return e
}

func (o EchoOptions) listen(t testing.TB, port int) net.Listener {
	t.Helper()
	address := o.Address
	if !address.IsValid() {
		address = netip.AddrFrom4([4]byte{127, 0, 0, 1})
		if o.Namespace != nil {
			address = netip.IPv4Unspecified()
		}
	}
	listener, err := o.Namespace.Listen(net.JoinHostPort(address.String(), strconv.Itoa(port)))
	if err != nil {
		t.Fatalf("starting the echo server %s in %s: %v", o.Name, o.Namespace, err)
	}
	return listener
}

func (e *Echo) serveHTTP(listener net.Listener, options EchoOptions) {
	config := options.TLS.Clone() // the server writes into it
	told := options.Errors
	if told == nil {
		told = io.Discard
	}
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{Handler: http.HandlerFunc(e.answer), Protocols: &protocols, TLSConfig: config, ErrorLog: log.New(told, "", 0)}
	e.closers = append(e.closers, server)
	if config == nil {
		go server.Serve(listener)
		return
	}
	go server.ServeTLS(listener, "", "")
}

func (e *Echo) answer(w http.ResponseWriter, r *http.Request) {
	answer := EchoAnswer{
		Name: e.name, Method: r.Method, Path: r.URL.Path, Protocol: r.Proto, Host: r.Host, Header: r.Header, Remote: r.RemoteAddr,
	}
	if r.TLS != nil {
		answer.ServerName = r.TLS.ServerName
		for _, cert := range r.TLS.PeerCertificates {
			for _, uri := range cert.URIs {
				answer.Peer = append(answer.Peer, uri.String())
			}
		}
	}
	if delay, err := time.ParseDuration(r.URL.Query().Get("delay")); err == nil {
		timer := time.NewTimer(delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-r.Context().Done():
			return
		}
	}
	w.Header().Set("Content-Type", "application/json")
	if status, err := strconv.Atoi(r.URL.Query().Get("status")); err == nil && status >= 200 && status < 600 {
		w.WriteHeader(status)
	}
	json.NewEncoder(w).Encode(answer)
}

func (e *Echo) serveTCP(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		e.track(conn, true)
		go e.echoLines(conn)
	}
}

func (e *Echo) echoLines(conn net.Conn) {
	defer e.track(conn, false)
	defer conn.Close()
	lines := bufio.NewReader(conn)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return
		}
		if _, err := fmt.Fprintf(conn, "%s %s", e.name, line); err != nil {
			return
		}
	}
}

func (e *Echo) track(conn net.Conn, open bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if open {
		e.conns[conn] = true
	} else {
		delete(e.conns, conn)
	}
}

// Stop closes all listeners and connections.
func (e *Echo) Stop() {
	for _, closer := range e.closers {
		closer.Close()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for conn := range e.conns {
		conn.Close()
	}
}

// Echo returns the body of an echo server's answer and ends the test if the
// response is none.
func (r Response) Echo(t testing.TB) EchoAnswer {
	t.Helper()
	var answer EchoAnswer
	r.Decode(t, &answer)
	return answer
}

func localAddr(listener net.Listener) netip.AddrPort {
	return listener.Addr().(*net.TCPAddr).AddrPort()
}
