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

// target is where connections to a port lead.
type target struct {
	at      *testbed.Namespace
	address string
}

// Node is the node of a cluster's pods.
type Node struct {
	t       testing.TB
	kube    *testbed.Kube
	at      *testbed.Namespace
	end     <-chan struct{} // of the test
	serving sync.WaitGroup

	mu    sync.Mutex
	ports map[Port]target
}

// node is the one that the pods of the test bed name.
const node = `apiVersion: v1
kind: Node
metadata: {name: node-1}
`

const nodeStatus = node + `status:
  addresses: [{type: InternalIP, address: %s}]
  daemonEndpoints: {kubeletEndpoint: {Port: %d}}
`

// Start adds the Node to a cluster whose API server is in a network namespace, and serves until the test ends.
func Start(t testing.TB, at *testbed.Namespace, kube *testbed.Kube) *Node {
	t.Helper()
	listener, err := at.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n := &Node{t: t, kube: kube, at: at, end: t.Context().Done(), ports: map[Port]target{}}
	server := httptest.NewUnstartedServer(n)
	_ = server.Listener.Close()
	server.Listener = listener
	server.StartTLS()
	t.Cleanup(func() {
		server.Close()
		n.serving.Wait()
	})
	address := server.Listener.Addr().(*net.TCPAddr)
	kube.Apply(node)
	kube.ApplyStatus(fmt.Sprintf(nodeStatus, address.IP, address.Port))
	return n
}

// Forward has connections to a port lead to a TCP address in a network namespace. Ports that it is not told about are refused.
func (n *Node) Forward(from Port, at *testbed.Namespace, address string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ports[from] = target{at, address}
}

// Hub is a pod as which istioctl finds a hub that runs elsewhere.
type Hub struct {
	Namespace string
	Health    int            // The port of its health address, as its annotation says. 0: it says none.
	Ports     map[int]string // TCP addresses in the network namespace of the API server.
}

// Run adds the pod, with its namespace and the account of which istioctl asks for a token.
func (h Hub) Run(on *Node) {
	on.t.Helper()
	pod := testbed.Pod{
		Namespace: h.Namespace, Name: "isthmus-1", Account: "default", Labels: "{app: istiod, istio.io/rev: default}", Address: "192.0.2.1",
	}
	if h.Health != 0 {
		pod.Annotations = fmt.Sprintf(`{prometheus.io/port: "%d"}`, h.Health)
	}
	on.kube.Apply("apiVersion: v1\nkind: Namespace\nmetadata: {name: " + h.Namespace + "}\n")
	pod.Run(on.kube)
	for number, address := range h.Ports {
		on.Forward(Port{Namespace: h.Namespace, Pod: pod.Name, Number: number}, on.at, address)
	}
}

// ServeHTTP upgrades the connection of an API server, and serves the streams that it opens.
func (n *Node) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n.serving.Add(1)
	defer n.serving.Done()
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
		n.serve(Port{Namespace: path[1], Pod: path[2]}, conn, opened)
	}
}

// serve serves pairs of streams until the connection ends: one for data, and one that says what went wrong.
func (n *Node) serve(of Port, conn httpstream.Connection, opened <-chan httpstream.Stream) {
	var forwards sync.WaitGroup
	defer forwards.Wait()
	defer conn.Close()
	type pair struct{ data, fault httpstream.Stream }
	pairs := map[string]pair{}
	for {
		select {
		case <-n.end:
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
				if err := n.forward(of, p.data); err != nil {
					_, _ = fmt.Fprint(p.fault, err) // the test sees what is missing
				}
				_ = p.fault.Close()
			})
		}
	}
}

// forward connects a stream with the port that it names, until both sides have ended.
func (n *Node) forward(to Port, data httpstream.Stream) error {
	defer data.Close()
	if _, err := fmt.Sscan(data.Headers().Get(core.PortHeader), &to.Number); err != nil {
		return fmt.Errorf("reading the port: %w", err)
	}
	n.mu.Lock()
	target, exists := n.ports[to]
	n.mu.Unlock()
	if !exists {
		return fmt.Errorf("nothing listens on port %d of the pod %s/%s", to.Number, to.Namespace, to.Pod)
	}
	conn, err := target.at.DialContext(context.Background(), "tcp", target.address)
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
