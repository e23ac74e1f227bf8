package testbed

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"
)

// exchange sends a line and returns the line that comes back.
func exchange(t *testing.T, conn net.Conn, line string) string {
	t.Helper()
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintln(conn, line); err != nil {
		t.Fatal(err)
	}
	answer, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(answer)
}

// startProxied returns a proxy to a TCP echo server and a connection through it.
func startProxied(t *testing.T) (*Proxy, net.Conn) {
	t.Helper()
	echo := StartEcho(t, EchoOptions{Name: "web", TCP: []int{0}})
	proxy := StartProxy(t, echo.TCP[0].String())
	conn, err := net.Dial("tcp", proxy.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if got := exchange(t, conn, "first"); got != "web first" {
		t.Fatalf("through the proxy the answer is %q", got)
	}
	return proxy, conn
}

func TestProxyBlackholeKeepsConnectionsAndDeliversLater(t *testing.T) {
	proxy, conn := startProxied(t)
	proxy.Blackhole()
	if _, err := fmt.Fprintln(conn, "second"); err != nil {
		t.Fatal(err)
	}
	late, err := net.Dial("tcp", proxy.Addr())
	if err != nil {
		t.Fatalf("connecting to a black hole: %v", err)
	}
	defer late.Close()
	if err := conn.SetReadDeadline(time.Now().Add(200 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	var timeout net.Error
	if n, err := conn.Read(make([]byte, 10)); !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("out of a black hole came %d bytes, %v", n, err)
	}
	proxy.Pass()
	if got := exchange(t, conn, "third"); got != "web second" {
		t.Errorf("after the black hole the answer is %q, want that to the line sent before", got)
	}
	if got := exchange(t, late, "fourth"); got != "web fourth" {
		t.Errorf("a connection made in the black hole is answered %q", got)
	}
}

func TestProxyRefusesNewConnectionsOnly(t *testing.T) {
	proxy, conn := startProxied(t)
	proxy.Refuse()
	if _, err := net.Dial("tcp", proxy.Addr()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a new connection gives %v, want a refusal", err)
	}
	if got := exchange(t, conn, "second"); got != "web second" {
		t.Errorf("the open connection is answered %q", got)
	}
	proxy.Pass()
	again, err := net.Dial("tcp", proxy.Addr())
	if err != nil {
		t.Fatalf("connecting after a refusal: %v", err)
	}
	defer again.Close()
	if got := exchange(t, again, "third"); got != "web third" || proxy.Accepted() != 2 {
		t.Errorf("after a refusal the answer is %q and %d were accepted, want 2", got, proxy.Accepted())
	}
}

func TestProxyResetsConnections(t *testing.T) {
	proxy, conn := startProxied(t)
	proxy.Reset()
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("reading gives %v, want a reset", err)
	}
}

func TestProxyDelaysAndLimits(t *testing.T) {
	proxy, conn := startProxied(t)
	proxy.Delay(150 * time.Millisecond)
	started := time.Now()
	exchange(t, conn, "second")
	if took := time.Since(started); took < 300*time.Millisecond {
		t.Errorf("with 150 ms of delay each way an exchange took %s", took)
	}
	proxy.Pass()
	proxy.Limit(10_000)
	started = time.Now()
	exchange(t, conn, strings.Repeat("x", 4000))
	if took := time.Since(started); took < 300*time.Millisecond {
		t.Errorf("at 10,000 bytes a second 4,000 bytes took %s", took)
	}
}

func TestProxyJoinsNetworksAndPassesTheEnd(t *testing.T) {
	network := NewNetwork(t, "east", "10.1.0.0/24")
	server := NewNamespace(t, "server")
	server.Join(network, "10.1.0.2")
	StartEcho(t, EchoOptions{Name: "web", Namespace: server, TCP: []int{7}})
	proxy := StartProxyWith(t, ProxyOptions{Target: "10.1.0.2:7", TargetIn: server})
	conn, err := net.Dial("tcp", proxy.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if got := exchange(t, conn, "hello"); got != "web hello" {
		t.Errorf("from the network of the test the answer is %q", got)
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if n, err := conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("after the end of the data came %d bytes, %v", n, err)
	}
}
