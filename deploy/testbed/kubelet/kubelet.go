// Package kubelet forwards ports as a kubelet does, to pods that do not exist: a kube-apiserver
// of the test bed has no nodes, and some programs reach a control plane only by kubectl port-forward.
package kubelet

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"

	core "k8s.io/api/core/v1"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"

	"isthmus.dev/isthmus/deploy/testbed"
)

// protocol is the one that API servers speak with kubelets about ports.
const protocol = "portforward.k8s.io"

// Port is a port of a pod.
type Port struct {
	Namespace, Pod string
	Number         int
}

// Start serves until the test ends, and returns the address for a Node, which API servers in the same network
// namespace reach. Connections to a port lead to the TCP address for it, in that namespace; other ports are refused.
func Start(t testing.TB, at *testbed.Namespace, ports map[Port]string) netip.AddrPort {
	t.Helper()
	listener, err := at.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	k := &kubelet{at: at, ports: ports, end: t.Context().Done()}
	server := httptest.NewUnstartedServer(k)
	_ = server.Listener.Close()
	server.Listener = listener
	server.StartTLS()
	t.Cleanup(func() {
		server.Close()
		k.serving.Wait()
	})
	return netip.MustParseAddrPort(server.Listener.Addr().String())
}

type kubelet struct {
	at      *testbed.Namespace
	ports   map[Port]string
	end     <-chan struct{} // of the test
	serving sync.WaitGroup
}

// ServeHTTP upgrades the connection of an API server, and serves the streams that it opens.
func (k *kubelet) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	k.serving.Add(1)
	defer k.serving.Done()
	path := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	if len(path) < 3 || path[0] != "portForward" {
		http.NotFound(w, r)
		return
	}
	if _, err := httpstream.Handshake(r, w, []string{protocol}); err != nil {
		return // the API server was told
	}
	opened, over := make(chan httpstream.Stream), make(chan struct{})
	defer close(over)
	conn := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(s httpstream.Stream, _ <-chan struct{}) error {
		select {
		case opened <- s:
		case <-over:
		}
		return nil
	})
	if conn != nil {
		k.serve(Port{Namespace: path[1], Pod: path[2]}, conn, opened)
	}
}

// serve serves pairs of streams until the connection ends: one for data, and one that says what went wrong.
func (k *kubelet) serve(of Port, conn httpstream.Connection, opened <-chan httpstream.Stream) {
	var forwards sync.WaitGroup
	defer forwards.Wait()
	defer conn.Close()
	type pair struct{ data, fault httpstream.Stream }
	pairs := map[string]pair{}
	for {
		select {
		case <-k.end:
			return
		case <-conn.CloseChan():
			return
		case s := <-opened:
			id := s.Headers().Get(core.PortForwardRequestIDHeader)
			p := pairs[id]
			if s.Headers().Get(core.StreamType) == core.StreamTypeData {
				p.data = s
			} else {
				p.fault = s
			}
			pairs[id] = p
			if p.data == nil || p.fault == nil {
				continue
			}
			delete(pairs, id)
			forwards.Go(func() {
				if err := k.forward(of, p.data); err != nil {
					_, _ = fmt.Fprint(p.fault, err) // the test sees what is missing
				}
				_ = p.fault.Close()
			})
		}
	}
}

// forward connects a stream with the port that it names, until both sides have ended.
func (k *kubelet) forward(to Port, data httpstream.Stream) error {
	defer data.Close()
	if _, err := fmt.Sscan(data.Headers().Get(core.PortHeader), &to.Number); err != nil {
		return fmt.Errorf("reading the port: %w", err)
	}
	address, exists := k.ports[to]
	if !exists {
		return fmt.Errorf("nothing listens on port %d of the pod %s/%s", to.Number, to.Namespace, to.Pod)
	}
	conn, err := k.at.DialContext(context.Background(), "tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	var both sync.WaitGroup
	defer both.Wait()
	both.Go(func() {
		_, _ = io.Copy(conn, data)
		if half, can := conn.(*net.TCPConn); can {
			_ = half.CloseWrite() // the answer may still be on its way
		}
	})
	_, _ = io.Copy(data, conn)
	_ = data.Close() // the client sees the end, and ends its side
	return nil
}
