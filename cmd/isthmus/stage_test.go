package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/structpb"

	"isthmus.dev/isthmus/internal/cli/cmdutil"
	"isthmus.dev/isthmus/xds/xdstest"
)

// stage is where proxies play their parts in a transcript, and a command runs
// that does not end by itself. A direction is a proxy's name and what it does:
// connects, connects from c9, receives, accepts, refuses or leaves; or "shows" and what the command
// is to have printed. Each returns when the hub knows.
type stage struct {
	t       *testing.T
	hub     *hubUnderTest
	proxies map[string]*actor
	running outcome
	stop    func()
	over    chan struct{}
}

// actor is a proxy that asks for clusters.
type actor struct {
	client *xdstest.Client
	last   xdstest.Response
}

func (s *stage) do(direction string) {
	s.t.Helper()
	who, what, _ := strings.Cut(direction, " ")
	if who == "shows" {
		s.hub.await(s.t, what, func() error {
			if shown := s.running.out.String() + s.running.errors.String(); !strings.Contains(shown, what) {
				return fmt.Errorf("it shows %q", shown)
			}
			return nil
		})
		return
	}
	switch what {
	case "connects":
		s.connect(who, nil)
		s.awaitState(who, "SYNCED")
	case "connects from c9":
		s.connect(who, &structpb.Struct{Fields: map[string]*structpb.Value{"CLUSTER_ID": structpb.NewStringValue("c9")}})
		s.awaitState(who, "SYNCED")
	case "receives":
		s.receive(who)
		s.awaitState(who, "PENDING")
	case "accepts":
		s.must(s.proxies[who].client.Ack(s.proxies[who].last))
		s.awaitState(who, "SYNCED")
	case "refuses":
		s.must(s.proxies[who].client.Nack(s.proxies[who].last, "no such cipher"))
		s.awaitState(who, "NACKED")
	case "leaves":
		s.proxies[who].client.Close()
		s.awaitState(who, "")
	default:
		s.t.Fatalf("%q is not a direction", direction)
	}
}

func (s *stage) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func nodeOf(who string) string { return "sidecar~10.1.0.9~" + who + ".shop~shop.svc.cluster.local" }

func (s *stage) connect(who string, metadata *structpb.Struct) {
	s.t.Helper()
	s.proxies[who] = s.connectNode(&corev3.Node{Id: nodeOf(who), Metadata: metadata})
	s.receive(who)
	s.must(s.proxies[who].client.Ack(s.proxies[who].last))
}

// connectNode connects a proxy that asks for clusters.
func (s *stage) connectNode(node *corev3.Node) *actor {
	s.t.Helper()
	conn, err := grpc.NewClient("unix:"+filepath.Join(s.hub.dir, "xds"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	s.must(err)
	client, err := xdstest.Open(context.Background(), conn, xdstest.Options{Delta: true, Node: node})
	s.must(err)
	s.t.Cleanup(func() { client.Close(); _ = conn.Close() })
	s.must(client.Send(xdstest.Request{Type: xdstest.CDS, Names: []string{"*"}}))
	return &actor{client: client}
}

func (s *stage) receive(who string) {
	s.t.Helper()
	var err error
	s.hub.await(s.t, who+" to be sent something", func() error {
		s.proxies[who].last, err = s.proxies[who].client.Receive(s.t.Context())
		return err
	})
}

// awaitState waits until the hub shows that state of the proxy's clusters; "": it
// is not connected.
func (s *stage) awaitState(who, want string) {
	s.t.Helper()
	s.hub.await(s.t, who+" to be "+want, func() error {
		var answer struct {
			Proxies struct {
				Nodes []struct {
					NodeID string
					Sync   []struct{ TypeURL, State string }
				}
			}
		}
		if err := s.hub.query(`{proxies(first: 50) {nodes {nodeID sync {typeUrl state}}}}`, &answer); err != nil {
			return err
		}
		state := ""
		for _, p := range answer.Proxies.Nodes {
			if p.NodeID != nodeOf(who) {
				continue
			}
			state = "nothing"
			for _, sync := range p.Sync {
				if sync.TypeURL == xdstest.CDS {
					state = sync.State
				}
			}
		}
		if state != want {
			return fmt.Errorf("it is %q", state)
		}
		return nil
	})
}

// begin starts a command line that goes on until end.
func (s *stage) begin(line string) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	s.stop, s.over = cancel, make(chan struct{})
	s.running = outcome{out: new(Text), errors: new(Text)}
	go func() {
		defer close(s.over)
		s.running.code = run(ctx, slices.Clone(words(line)), cmdutil.Streams{Out: s.running.out, Err: s.running.errors})
	}()
	s.t.Cleanup(func() { cancel(); <-s.over })
}

// end interrupts the command line.
func (s *stage) end() outcome {
	s.stop()
	<-s.over
	return s.running
}

// TestProxiesThatComeAreShown: while proxies are watched, in whatever state they
// are seen first.
func TestProxiesThatComeAreShown(t *testing.T) {
	s := &stage{t: t, hub: atHub(t), proxies: map[string]*actor{}}
	s.begin("get proxies -w -o wide")
	s.do("shows USER-AGENT")
	s.do("web-1 connects")
	s.do("shows " + nodeOf("web-1"))
	s.do("shows SYNCED")
	s.do("web-1 leaves")
	s.do("shows gone")
	if o := s.end(); o.code != cmdutil.ExitDone || o.errors.String() != "" {
		t.Errorf("exit %d with %q", o.code, o.errors.String())
	}
}

// TestWatchOutlivesItsHub: while the hub is away it says so, and goes on.
func TestWatchOutlivesItsHub(t *testing.T) {
	plainEnvironment(t)
	dir := shortDir(t)
	t.Setenv("ISTHMUS_SERVER", "unix:"+filepath.Join(dir, "graphql"))
	p := startProgramIn(t, dir)
	s := &stage{t: t, hub: &hubUnderTest{dir: dir, client: socketClient(filepath.Join(dir, "graphql"))}, proxies: map[string]*actor{}}
	s.begin("get proxies -w")
	s.do("shows NAME")
	_ = p.Process.Kill() // the end is waited for below
	<-p.done
	s.do("shows trying again")
	startProgramIn(t, dir)
	s.do("web-1 connects")
	s.do("shows " + nodeOf("web-1"))
	if o := s.end(); o.code != cmdutil.ExitDone {
		t.Errorf("exit %d with %q", o.code, o.errors.String())
	}
}
