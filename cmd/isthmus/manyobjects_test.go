package main

import (
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	mcpapi "istio.io/api/mcp/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"
)

var manyObjects = flag.Int("objects", 4000, "how many objects a configuration server has at once")

// changingServer serves ServiceEntries, which the test changes.
type changingServer struct {
	discoveryv3.UnimplementedAggregatedDiscoveryServiceServer
	say     chan []*anypb.Any // the next answer
	refused chan string       // why an answer was not taken
}

// StreamAggregatedResources sends what the test says, and that there is nothing of other types.
func (s *changingServer) StreamAggregatedResources(g discoveryv3.AggregatedDiscoveryService_StreamAggregatedResourcesServer) error {
	requests := make(chan *discoveryv3.DiscoveryRequest)
	go func() {
		for {
			r, err := g.Recv()
			if err != nil {
				return
			}
			select {
			case requests <- r:
			case <-g.Context().Done():
				return
			}
		}
	}()
	var say <-chan []*anypb.Any // nil before the hub asked
	for version := 1; ; version++ {
		answer := &discoveryv3.DiscoveryResponse{VersionInfo: fmt.Sprint(version), Nonce: fmt.Sprint(version)}
		select {
		case r := <-requests:
			answer.TypeUrl = r.GetTypeUrl()
			switch {
			case r.GetErrorDetail() != nil:
				s.refused <- r.GetErrorDetail().GetMessage()
				continue
			case r.GetResponseNonce() != "":
				continue
			case r.GetTypeUrl() == entryURL:
				say = s.say
				continue
			}
		case answer.Resources = <-say:
			answer.TypeUrl = entryURL
		case <-g.Context().Done():
			return g.Context().Err()
		}
		if err := g.Send(answer); err != nil {
			return err
		}
	}
}

const entryURL = "networking.istio.io/v1/ServiceEntry"

// serveChanging starts such a server, and returns its address.
func serveChanging(t *testing.T) (*changingServer, string) {
	t.Helper()
	s := &changingServer{say: make(chan []*anypb.Any, 1), refused: make(chan string, 10)}
	address, _ := serveADS(t, s)
	return s, address
}

// manyEntries are n ServiceEntries NAME-0, NAME-1, and so on.
func manyEntries(name string, n int) []*anypb.Any {
	all := make([]*anypb.Any, n)
	for i := range all {
		one := fmt.Sprintf("%s-%d", name, i)
		all[i] = packed(&mcpapi.Resource{
			Metadata: &mcpapi.Metadata{Name: "shop/" + one},
			Body: packed(&networking.ServiceEntry{
				Hosts: []string{one + ".example.com"}, Resolution: networking.ServiceEntry_STATIC,
				Ports:     []*networking.ServicePort{{Number: 80, Name: "http", Protocol: "HTTP"}},
				Endpoints: []*networking.WorkloadEntry{{Address: "192.0.2.7"}},
			}),
		})
	}
	return all
}

// TestM03AServerWithFarTooManyObjects: twice as many objects as the limit allows are refused at once and with a code. What was read
// of the server before stays, other sources go on, and the memory of the hub grows by a few times the answer at most.
func TestM03AServerWithFarTooManyObjects(t *testing.T) {
	t.Parallel()
	many, manyAt := serveChanging(t)
	few, fewAt := serveChanging(t)
	many.say <- manyEntries("early", 1)
	few.say <- manyEntries("few", 1)
	dir := shortDir(t)
	p := startProgramIn(t, dir, "--config", fileOf(t,
		"mcp: {servers: [{name: many, address: %q}, {name: few, address: %q}]}\nclusterLimits: {objects: %d}\n", manyAt, fewAt, *manyObjects/2))
	h := &hubUnderTest{dir: dir, client: socketClient(filepath.Join(dir, "graphql"))}
	h.awaitEndpoints(t, "early-0.example.com", "192.0.2.7")
	h.awaitEndpoints(t, "few-0.example.com", "192.0.2.7")

	flood := manyEntries("flood", *manyObjects)
	size := 0
	for _, a := range flood {
		size += proto.Size(a)
	}
	before := memoryOf(t, p.Cmd, &p.log, "VmRSS")
	many.say <- flood
	h.awaitSource(t, "MCP many", func(s shownSource) bool { return len(s.Problems) == 1 && s.Problems[0].Code == "TOO_MANY_OBJECTS" })
	want := fmt.Sprintf("there would be %d objects, and the limit is %d", *manyObjects, *manyObjects/2)
	h.await(t, "the server to be told "+want, func() error {
		select {
		case why := <-many.refused:
			if !strings.Contains(why, want) {
				t.Fatalf("it is told %q", why)
			}
			return nil
		default:
			return errors.New("it is told nothing")
		}
	})
	few.say <- manyEntries("few", 2)
	h.awaitEndpoints(t, "few-1.example.com", "192.0.2.7")
	if wrong := h.applied(t, fmt.Sprintf(entryManifest, "own", 9)); wrong != "" {
		t.Fatal(wrong)
	}
	h.awaitEndpoints(t, "own.example.com", "192.0.2.9")
	h.awaitEndpoints(t, "early-0.example.com", "192.0.2.7")
	if found, err := h.endpointsOf("flood-0.example.com"); err != nil || found != nil {
		t.Errorf("a service of the refused answer has the endpoints %v, %v", found, err)
	}
	grown := memoryOf(t, p.Cmd, &p.log, "VmHWM") - before
	t.Logf("an answer of %d MiB: the memory of the hub grew by %d MiB from %d", size>>20, grown, before)
	if most := 100 + 8*size>>20; grown > most {
		t.Errorf("the memory of the hub grew by %d MiB from %d, want at most %d", grown, before, most)
	}
	many.say <- manyEntries("late", 2)
	h.awaitEndpoints(t, "late-1.example.com", "192.0.2.7")
	h.awaitSource(t, "MCP many", func(s shownSource) bool { return len(s.Problems) == 0 })
}
