package main

import (
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc/connectivity"

	"isthmus.dev/isthmus/internal/cli/cmdutil"
	"isthmus.dev/isthmus/internal/hub/settings"
)

const h2Preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + "\x00\x00\x00\x04\x00\x00\x00\x00\x00" // with empty SETTINGS

// idle opens so many TLS connections to xDS that never open a stream, as far as the hub lets it.
func (p *secureProgram) idle(t *testing.T, n int) {
	t.Helper()
	config, slots := p.anonymous(), make(chan struct{}, 16)
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			raw, err := net.Dial("tcp", p.xdsAddr)
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = raw.Close() })
			connection := tls.Client(raw, config)
			if connection.Handshake() == nil {
				_, _ = connection.Write([]byte(h2Preface)) // a connection that is refused is one that the hub closed
			}
		})
	}
	all.Wait()
}

func (p *secureProgram) files(t *testing.T) int {
	t.Helper()
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.process.Process.Pid))
	if err != nil {
		t.Fatalf("the hub is gone: %v\n%s", err, p.log.String())
	}
	return len(open)
}

func (p *secureProgram) applyHost(host string) error {
	manifest := fmt.Sprintf(`apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {name: %[1]s, namespace: shop}\nspec: {hosts: [%[1]s.example], location: MESH_EXTERNAL, resolution: STATIC, ports: [{number: 80, name: tcp, protocol: TCP}], endpoints: [{address: 10.9.9.9}]}`, host)
	var answer struct {
		Apply struct{ UserErrors []struct{ Message string } }
	}
	if err := p.query(`mutation { apply(input: {manifests: ["`+manifest+`"]}) { userErrors { message } } }`, &answer); err != nil {
		return err
	}
	if len(answer.Apply.UserErrors) > 0 {
		return fmt.Errorf("it is refused: %s", answer.Apply.UserErrors[0].Message)
	}
	return nil
}

// TestR01IdleConnections: a client that reaches the xDS port opens more idle TLS connections than the hub may have file
// descriptors. Streams that are open and GraphQL go on, proxies at other addresses come in, and file descriptors stay for
// the hub itself: without them the embedded etcd ends the process.
func TestR01IdleConnections(t *testing.T) {
	p := startSecureProgram(t, "ulimit -Sn 256 && ulimit -Hn 600", "")
	limits, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", p.process.Process.Pid))
	if err != nil || !strings.Contains(strings.Join(strings.Fields(string(limits)), " "),
		"Max open files 599 600") { // the runtime keeps one back
		t.Errorf("the soft limit of file descriptors is not raised to the hard one: %v\n%s", err, limits)
	}
	open := p.open(t, p.connection(t, "127.0.0.1"))
	const before, during = "outbound|80||before.example", "outbound|80||during.example"
	must(t, p.applyHost("before"))
	p.receives(t, open, before)
	p.idle(t, 700)
	if n := p.files(t); n > 600*settings.ForConnections/100 {
		t.Errorf("the hub has %d files open of 600", n)
	}
	if err := p.isReady(); err != nil {
		t.Errorf("health: %v", err)
	}
	if err := p.applyHost("during"); err != nil {
		t.Fatalf("GraphQL: %v\n%s", err, p.log.String())
	}
	p.receives(t, open, during)
	p.receives(t, p.open(t, p.connection(t, "127.0.0.2")), during)
	_, metrics, err := p.health.get("/metrics")
	if err != nil || strings.Contains(metrics, `isthmus_connections_refused_total{listener="xds",reason="source"} 0`) ||
		!strings.Contains(metrics, `isthmus_connections_refused_total{listener="xds",reason="source"}`) {
		t.Errorf("the metrics do not count what was refused: %v", err)
	}
	if n := strings.Count(p.log.String(), "refusing a connection"); n < 1 || n > 20 {
		t.Errorf("the log has %d lines about refused connections", n)
	}
}

// TestR01IdleConnectionsEnd: a connection without a stream is closed after xds.idleTimeout, one with a stream stays.
func TestR01IdleConnectionsEnd(t *testing.T) {
	t.Parallel()
	p := startSecureProgram(t, "true", "xds: {idleTimeout: 1s}\n")
	used, idle := p.connection(t, "127.0.0.1"), p.connection(t, "127.0.0.1")
	open := p.open(t, used)
	for state := idle.GetState(); state != connectivity.Ready; state = idle.GetState() {
		idle.Connect() // again, if it was closed before anybody looked
		if !idle.WaitForStateChange(t.Context(), state) {
			t.Fatal("no connection")
		}
	}
	if !idle.WaitForStateChange(t.Context(), connectivity.Ready) {
		t.Error("the idle connection stays")
	}
	must(t, p.applyHost("after"))
	p.receives(t, open, "outbound|80||after.example")
	if state := used.GetState(); state != connectivity.Ready {
		t.Errorf("the connection of an open stream is %s", state)
	}
}

func TestR01ConnectionSettings(t *testing.T) {
	for text, want := range map[string]string{
		"xds: {maxConnections: -1}":              "xds.maxConnections: -1 is negative",
		"graphql: {maxConnectionsPerSource: -5}": "graphql.maxConnectionsPerSource: -5 is negative",
		"xds: {idleTimeout: 0s}":                 `xds.idleTimeout "0s": use a duration`,
	} {
		code, _, said := command(t, append(sockets(shortDir(t)), "--config", write(t, filepath.Join(shortDir(t), "x.yaml"), text))...)
		if code != cmdutil.ExitFailed || !strings.Contains(said, want) {
			t.Errorf("%s: exit %d: %s", text, code, said)
		}
	}
}
