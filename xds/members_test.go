package xds

import (
	"net/netip"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"

	"isthmus.dev/isthmus/xds/envoy"
	"isthmus.dev/isthmus/xds/xdstest"
)

// roll is the Members of a test, and the Membership of each.
type roll struct {
	mu      sync.Mutex
	joined  []envoy.Node
	reports chan string
	left    chan struct{}
	ended   chan struct{}
	refusal error
	ignores bool // what proxies report
}

func newRoll() *roll {
	return &roll{reports: make(chan string, 1000), left: make(chan struct{}, 10), ended: make(chan struct{})}
}

func (r *roll) Join(n envoy.Node, _ string, _ netip.Addr) (Membership, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.joined = append(r.joined, n)
	if r.ignores {
		return nil, nil
	}
	return r, r.refusal
}

func (r *roll) Report(unhealthy string) { r.reports <- unhealthy }
func (r *roll) Ended() <-chan struct{}  { return r.ended }
func (r *roll) Err() error              { return status.Error(codes.FailedPrecondition, "the group is gone") }
func (r *roll) Leave()                  { r.left <- struct{}{} }

// TestU07StreamsReportHealth: the proxy of a stream that names a group is registered as
// long as the stream lasts, and its agent's reports count. Without a group they do not.
func TestU07StreamsReportHealth(t *testing.T) {
	bothVariants(t, func(t *testing.T, delta bool) {
		r := newRoll()
		h := newHub(t, func(o *Options) { o.Members = r })
		h.set(service("web", 1))
		n := node("vm-1")
		n.Metadata.Fields["AUTO_REGISTER_GROUP"] = structpb.NewStringValue("ledger")
		probe, _ := structpb.NewStruct(map[string]any{"readinessProbe": map[string]any{"periodSeconds": 1}})
		n.Metadata.Fields["PROXY_CONFIG"] = structpb.NewStructValue(probe)
		c := h.client(xdstest.Options{Delta: delta, Node: n})
		c.get(xdstest.Request{Type: xdstest.CDS})
		if len(r.joined) != 1 || r.joined[0].Group != "ledger" || !r.joined[0].Probed {
			t.Fatalf("registered are %+v", r.joined)
		}
		for _, problem := range []string{"", "connection refused"} {
			if err := c.Send(xdstest.Request{Type: string(envoy.HealthType), Error: problem}); err != nil {
				t.Fatal(err)
			}
			if got := <-r.reports; got != problem {
				t.Errorf("reported is %q, want %q", got, problem)
			}
		}
		h.set(service("more", 1))
		c.accept(xdstest.CDS)
		close(r.ended)
		if err := c.ends(); status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "the group is gone") {
			t.Errorf("when the registration ends: %v", err)
		}
		<-r.left
		plain := h.client(xdstest.Options{Delta: delta, Node: node("web-1")})
		plain.get(xdstest.Request{Type: xdstest.CDS})
		for range 3 {
			if err := plain.Send(xdstest.Request{Type: string(envoy.HealthType)}); err != nil {
				t.Fatal(err)
			}
		}
		h.set(service("third", 1))
		plain.accept(xdstest.CDS)
		if len(r.reports) != 0 {
			t.Error("reports of a proxy without a group count")
		}
	})
}

// TestK78ProxiesOfWorkloadEntriesReportHealth: a stream that names a WorkloadEntry joins with its address, and reports;
// where reports have no effect, the proxy is served all the same.
func TestK78ProxiesOfWorkloadEntriesReportHealth(t *testing.T) {
	bothVariants(t, func(t *testing.T, delta bool) {
		for _, counts := range []bool{true, false} {
			r := newRoll()
			r.ignores = !counts
			h := newHub(t, func(o *Options) { o.Members = r })
			h.set(service("web", 1))
			n := node("vm-1")
			n.Metadata.Fields["WORKLOAD_ENTRY"] = structpb.NewStringValue("reports")
			c := h.client(xdstest.Options{Delta: delta, Node: n})
			c.get(xdstest.Request{Type: xdstest.CDS})
			if len(r.joined) != 1 || r.joined[0].Entry != "reports" {
				t.Fatalf("joined are %+v", r.joined)
			}
			for _, problem := range []string{"connection refused", ""} {
				if err := c.Send(xdstest.Request{Type: string(envoy.HealthType), Error: problem}); err != nil {
					t.Fatal(err)
				}
				if counts {
					if got := <-r.reports; got != problem {
						t.Errorf("reported is %q, want %q", got, problem)
					}
				}
			}
			h.set(service("more", 1))
			c.accept(xdstest.CDS)
			if len(r.reports) != 0 {
				t.Error("reports without effect are taken")
			}
		}
	})
}

// TestK78ProxiesJoinWhenTheirReportsHaveAnEffect: the WorkloadEntry of a stream gets the annotation and becomes that of the
// proxy; before that the proxy is served, also where it would be refused.
func TestK78ProxiesJoinWhenTheirReportsHaveAnEffect(t *testing.T) {
	bothVariants(t, func(t *testing.T, delta bool) {
		r := newRoll()
		change := func(ignores bool, refusal error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.ignores, r.refusal = ignores, refusal
		}
		change(true, nil)
		h := newHub(t, func(o *Options) { o.Members = r })
		h.set(service("web", 1))
		n := node("vm-1")
		n.Metadata.Fields["WORKLOAD_ENTRY"] = structpb.NewStringValue("reports")
		c := h.client(xdstest.Options{Delta: delta, Node: n})
		c.get(xdstest.Request{Type: xdstest.CDS})
		report := func(problem string) {
			t.Helper()
			if err := c.Send(xdstest.Request{Type: string(envoy.HealthType), Error: problem}); err != nil {
				t.Fatal(err)
			}
		}
		report("without effect")
		change(false, status.Error(codes.PermissionDenied, "at another address"))
		report("refused")
		c.get(xdstest.Request{Type: xdstest.LDS}) // the hub has handled what came before
		change(false, nil)
		report("connection refused")
		if got := <-r.reports; got != "connection refused" {
			t.Errorf("reported is %q", got)
		}
		close(r.ended)
		if err := c.ends(); status.Code(err) != codes.FailedPrecondition {
			t.Errorf("when the membership ends: %v", err)
		}
		<-r.left
	})
}

// TestU07RefusedProxiesGetNothing: the stream of a proxy that may not register ends with the
// reason, and so does one that floods the hub with reports.
func TestU07RefusedProxiesGetNothing(t *testing.T) {
	r := newRoll()
	r.refusal = status.Error(codes.PermissionDenied, "not this group")
	h := newHub(t, func(o *Options) { o.Members, o.Limits.Requests = r, onlyBurst })
	n := node("vm-1")
	n.Metadata.Fields["AUTO_REGISTER_GROUP"] = structpb.NewStringValue("ledger")
	refused := h.client(xdstest.Options{Delta: true, Node: n})
	if err := refused.Send(xdstest.Request{Type: xdstest.CDS}); err != nil {
		t.Fatal(err)
	}
	if err := refused.ends(); status.Code(err) != codes.PermissionDenied {
		t.Errorf("it ends with %v", err)
	}
	r.refusal, r.reports = nil, make(chan string, 100_000)
	flood := h.client(xdstest.Options{Delta: true, Node: n})
	flood.get(xdstest.Request{Type: xdstest.CDS})
	for range 2 * DefaultLimits.Burst {
		_ = flood.Send(xdstest.Request{Type: string(envoy.HealthType)}) // after the end it fails
	}
	if err := flood.ends(); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a flood ends with %v", err)
	}
}
