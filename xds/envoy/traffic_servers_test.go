package envoy_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/anypb"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy"
)

// trafficServers are what the servers of two pods saw, and how the test moves them.
type trafficServers struct {
	copies  [3]atomic.Int64 // requests to the ports for copies
	pings   atomic.Int64    // of HTTP/2, which are not answered
	fail    atomic.Bool     // b fails at the port of the split
	release chan struct{}   // closed: retries are answered
}

func serveTraffic(t *testing.T, a, b *testbed.Namespace) *trafficServers {
	s := &trafficServers{release: make(chan struct{})}
	for name, ns := range map[string]*testbed.Namespace{"a": a, "b": b} {
		testbed.StartEcho(t, testbed.EchoOptions{Name: name, Namespace: ns, HTTP: []int{plainPort}})
		serves(t, ns, fmt.Sprint("0.0.0.0:", splitPort), func(w http.ResponseWriter, _ *http.Request) {
			if name == "b" && s.fail.Load() {
				w.WriteHeader(http.StatusInternalServerError)
				return
			}
			_ = json.NewEncoder(w).Encode(testbed.EchoAnswer{Name: name})
		})
	}
	serves(t, a, fmt.Sprint("0.0.0.0:", budgetPort), s.holdRetries())
	for i := range s.copies {
		serves(t, b, fmt.Sprint("0.0.0.0:", copyPort+i), func(http.ResponseWriter, *http.Request) { s.copies[i].Add(1) })
	}
	s.stayMute(t, a)
	return s
}

// holdRetries fails the first request for each path. The second is answered when the test says so.
func (s *trafficServers) holdRetries() http.HandlerFunc {
	var seen sync.Map
	return func(w http.ResponseWriter, r *http.Request) {
		if _, again := seen.LoadOrStore(r.URL.Path, true); !again {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		select {
		case <-s.release:
		case <-r.Context().Done():
		}
	}
}

// stayMute accepts connections of HTTP/2 and answers nothing on them.
func (s *trafficServers) stayMute(t *testing.T, ns *testbed.Namespace) {
	t.Helper()
	listener, err := ns.Listen(fmt.Sprint("0.0.0.0:", mutePort))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go s.countPings(conn)
		}
	}()
}

// countPings reads the frames of a connection until its peer closes it.
func (s *trafficServers) countPings(conn net.Conn) {
	defer conn.Close()
	const preface, header, ofPing = len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), 9, 6
	_, _ = conn.Write([]byte{0, 0, 0, 4, 0, 0, 0, 0, 0}) // SETTINGS, the first frame of a server
	in := bufio.NewReader(conn)
	_, err := in.Discard(preface)
	for frame := make([]byte, header); err == nil; {
		_, err = io.ReadFull(in, frame)
		if err == nil {
			_, err = in.Discard(int(frame[0])<<16 | int(frame[1])<<8 | int(frame[2]))
		}
		if err == nil && frame[3] == ofPing {
			s.pings.Add(1)
		}
	}
}

const (
	warmCluster  = "outbound|80||warm.shop"
	endpointFile = "endpoints.json"
)

// withEndpointFile has the proxy read the endpoints of a cluster from a file, which the test may replace.
func withEndpointFile(t *testing.T, config []byte, name string) []byte {
	t.Helper()
	var root map[string]any
	if err := json.Unmarshal(config, &root); err != nil {
		t.Fatal(err)
	}
	for _, c := range root["staticResources"].(map[string]any)["clusters"].([]any) {
		if c := c.(map[string]any); c["name"] == name {
			c["type"] = "EDS"
			c["edsClusterConfig"] = map[string]any{"edsConfig": map[string]any{
				"resourceApiVersion": "V3",
				"pathConfigSource":   map[string]any{"path": testbed.DirPlaceholder + "/" + endpointFile},
			}}
			delete(c, "loadAssignment")
		}
	}
	out, err := json.Marshal(root)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// endpointsOf is the assignment of the cluster as such a file.
func endpointsOf(t *testing.T, s *federation.Snapshot, name string) []byte {
	t.Helper()
	assignment, _ := find[*endpointv3.ClusterLoadAssignment](t, build(t, envoy.EndpointType, client(t), s), name)
	content, err := protojson.Marshal(&discoveryv3.DiscoveryResponse{Resources: []*anypb.Any{pack(t, assignment)}})
	if err != nil {
		t.Fatal(err)
	}
	return content
}
