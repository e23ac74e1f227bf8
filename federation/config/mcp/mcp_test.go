package mcp_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
	mcpapi "istio.io/api/mcp/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/mcp"
)

type change = func(*mcpapi.Resource, *networking.ServiceEntry)

func TestM01WhatAServerSendsIsGiven(t *testing.T) {
	s := serve(t, false)
	h := s.read()
	first := s.next(func(*discoveryv3.DiscoveryRequest) bool { return true })
	if first.GetTypeUrl() != entries || first.GetNode().GetMetadata().GetFields()["GENERATOR"].GetStringValue() != "api" {
		t.Errorf("the first request is %v", first)
	}
	s.say("1", entry(t, "a", "7", func(m *mcpapi.Resource, _ *networking.ServiceEntry) {
		m.Metadata.Labels, m.Metadata.Annotations = map[string]string{"team": "x"}, map[string]string{"note": "y"}
		m.Metadata.CreateTime = timestamppb.New(time.Unix(1_700_000_000, 0))
	}), entry(t, "b", "7"))
	h.await("two objects", func() bool { return len(h.updates) == 1 && h.has("a") && h.has("b") })
	if u := h.updates[0]; !u.Full || u.Revision != 1 {
		t.Errorf("the first update is %+v", u)
	}
	for _, part := range []string{
		`"team":"x"`, `"note":"y"`, `"creationTimestamp":"2023-11-14T22:13:20Z"`, `"hosts":["a.example.com"]`,
		`"number":80`, `"uid":"`,
	} {
		if !strings.Contains(h.manifest("a"), part) {
			t.Errorf("%s is not in %s", part, h.manifest("a"))
		}
	}
	ack := s.next(func(r *discoveryv3.DiscoveryRequest) bool { return r.GetResponseNonce() != "" })
	if ack.GetVersionInfo() != "1" || ack.GetResponseNonce() != "n1" || ack.GetErrorDetail() != nil {
		t.Errorf("the answer is acknowledged with %v", ack)
	}
	b := h.objects[entryKey("b")]
	s.say("2", entry(t, "b", "7"))
	h.await("one object", func() bool { return !h.has("a") })
	if len(h.updates[1].Events) != 1 || h.objects[entryKey("b")] != b {
		t.Errorf("the second update is %+v", h.updates[1])
	}
}

func TestM02WhatWasReadStaysWhileTheServerIsAway(t *testing.T) {
	s := serve(t, false)
	h := s.read()
	s.say("5", entry(t, "a", "1"))
	h.await("the object", func() bool { return h.has("a") })
	s.grpc.Stop()
	h.await("that the server is away", func() bool { return h.said("UNREACHABLE") })
	if !h.has("a") || len(h.updates) != 1 {
		t.Errorf("without the server there are %d updates", len(h.updates))
	}
	for len(s.asked) > 0 {
		<-s.asked
	}
	s.start(s.at)
	// An acknowledgement of before may still come; it has no node.
	if again := s.next(func(r *discoveryv3.DiscoveryRequest) bool { return r.GetNode() != nil }); again.GetVersionInfo() != "5" {
		t.Errorf("it resumes with %v", again)
	}
	s.say("6", entry(t, "a", "1"), entry(t, "b", "1"))
	h.await("what is new", func() bool { return h.has("b") && h.said() })
	if len(h.updates[1].Events) != 1 {
		t.Errorf("the second update is %+v", h.updates[1])
	}
}

func TestM02AServerThatIsAwayDoesNotHoldUpTheStart(t *testing.T) {
	s := serve(t, false)
	s.grpc.Stop()
	h := s.read(func(o *mcp.Options) { o.Patience = time.Millisecond })
	h.await("an empty first update", func() bool {
		return len(h.updates) == 1 && h.updates[0].Full && len(h.objects) == 0 && h.said("UNREACHABLE")
	})
}

// TestM14NamesAndVersionsAreBounded: they are kept and shown. The last valid form of an object
// with a long version stays, and an answer with a long version is not an answer.
func TestM14NamesAndVersionsAreBounded(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	s := serve(t, false)
	h := s.read()
	s.say("1", entry(t, "a", "1"))
	h.await("the object", func() bool { return h.has("a") })
	s.say("2", entry(t, "a", long), entry(t, "well", "1"),
		entry(t, "x", "1", func(m *mcpapi.Resource, _ *networking.ServiceEntry) { m.Metadata.Name = "shop/" + long }))
	h.await("what is wrong, in few words, and the objects", func() bool {
		return h.said("OBJECT_TOO_LARGE", "UNDECODABLE") && len(fmt.Sprint(h.trouble)) < 4096 && h.has("a") && h.has("well")
	})
	opens := func(r *discoveryv3.DiscoveryRequest) bool { return r.GetNode() != nil }
	s.next(opens)
	s.say(long, entry(t, "b", "1"))
	s.next(opens) // the stream was closed
	s.say("3", entry(t, "a", "2"))
	h.await("the next answer", func() bool { return h.said() && h.has("a") && !h.has("b") && !h.has("well") })
}

// TestM03BadInput: what is wrong with one object has a code and no effect on others.
func TestM03BadInput(t *testing.T) {
	older := func(m *mcpapi.Resource, e *networking.ServiceEntry) { e.Hosts = []string{"old.example.com"} }
	body := func(a *anypb.Any) change { return func(m *mcpapi.Resource, _ *networking.ServiceEntry) { m.Body = a } }
	for name, c := range map[string]struct {
		says  []*anypb.Any
		codes []string
		stays string // in the manifest of "a"; empty: there is none
	}{
		"a body of another kind": {
			[]*anypb.Any{entry(t, "a", "2", body(wrap(t, &networking.Gateway{})))},
			[]string{"UNDECODABLE"},
			"a.example.com",
		},
		"an unknown type": {
			[]*anypb.Any{entry(t, "a", "2", body(&anypb.Any{TypeUrl: "type.googleapis.com/no.Such"}))},
			[]string{"UNDECODABLE"},
			"a.example.com",
		},
		"a body that is broken": {
			[]*anypb.Any{entry(t, "a", "2",
				body(&anypb.Any{TypeUrl: "type.googleapis.com/istio.networking.v1alpha3.ServiceEntry", Value: []byte{0xff}}))},
			[]string{"UNDECODABLE"},
			"a.example.com",
		},
		"an object that is not valid": {
			[]*anypb.Any{entry(t, "a", "2", func(_ *mcpapi.Resource, e *networking.ServiceEntry) { e.Hosts = nil })},
			[]string{"NOT_CHECKED", "REQUIRED"},
			"a.example.com",
		},
		"a resource that is broken": {[]*anypb.Any{entry(t, "a", "1"), {Value: []byte{0xff}}}, []string{"UNDECODABLE"}, "a.example.com"},
		"a name without namespace": {
			[]*anypb.Any{
				entry(t, "a", "1"),
				entry(t, "x", "1", func(m *mcpapi.Resource, _ *networking.ServiceEntry) { m.Metadata.Name = "x" }),
			},
			[]string{"UNDECODABLE"},
			"a.example.com",
		},
		"a name that is none": {[]*anypb.Any{
			entry(t, "a", "1"),
			entry(t, "x", "1", func(m *mcpapi.Resource, _ *networking.ServiceEntry) { m.Metadata.Name = "shop/X_\x00" }),
		}, nil, "a.example.com"},
		"duplicates": {
			[]*anypb.Any{entry(t, "a", "2", older), entry(t, "a", "2")},
			[]string{"DUPLICATE_OBJECT"},
			"a.example.com",
		},
		"the same twice": {[]*anypb.Any{entry(t, "a", "1"), entry(t, "a", "1")}, []string{}, "a.example.com"},
		"back in time":   {[]*anypb.Any{entry(t, "a", "0", older)}, []string{"VERSION_BACKWARDS"}, "a.example.com"},
		"created again": {[]*anypb.Any{entry(t, "a", "0", older, func(m *mcpapi.Resource, _ *networking.ServiceEntry) {
			m.Metadata.CreateTime = timestamppb.New(time.Unix(5, 0))
		})}, []string{}, "old.example.com"},
		"too large": {[]*anypb.Any{entry(t, "a", "2", func(_ *mcpapi.Resource, e *networking.ServiceEntry) {
			e.SubjectAltNames = []string{strings.Repeat("x", 5000)}
		})}, []string{"OBJECT_TOO_LARGE"}, "a.example.com"},
		"of this hub itself": {[]*anypb.Any{entry(t, "a", "2", func(m *mcpapi.Resource, _ *networking.ServiceEntry) {
			m.Metadata.Annotations = map[string]string{mcp.OriginAnnotation: "this-hub"}
		})}, []string{}, ""},
		"of another hub": {[]*anypb.Any{entry(t, "a", "2", older, func(m *mcpapi.Resource, _ *networking.ServiceEntry) {
			m.Metadata.Annotations = map[string]string{mcp.OriginAnnotation: "other-hub"}
		})}, []string{}, "old.example.com"},
		"without a body": {[]*anypb.Any{wrap(t, &mcpapi.Resource{Metadata: &mcpapi.Metadata{Name: "shop/a"}})}, []string{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, false)
			h := s.read(func(o *mcp.Options) { o.Object = 4096 })
			s.say("1", entry(t, "a", "1"))
			h.await("the object", func() bool { return h.has("a") })
			s.say("2", append(c.says, entry(t, "well", "1"))...)
			h.await("the other object", func() bool { return h.has("well") })
			h.await(fmt.Sprintf("the codes %v", c.codes),
				func() bool { return c.codes == nil && len(h.trouble) == 1 || c.codes != nil && h.said(c.codes...) })
			if got := h.manifest("a"); (got == "") != (c.stays == "") || !strings.Contains(got, c.stays) {
				t.Errorf("the object is %s", got)
			}
			s.say("3", entry(t, "a", "3", func(_ *mcpapi.Resource, e *networking.ServiceEntry) { e.Hosts = []string{"new.example.com"} }))
			h.await("what is well again", func() bool { return strings.Contains(h.manifest("a"), "new.example.com") && h.said() })
		})
	}
}

func TestM03TooManyObjectsAreRefusedAsAWhole(t *testing.T) {
	for name, limits := range map[string]federation.Limits{"objects": {Objects: 3}, "bytes": {Bytes: 4000}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, false)
			h := s.read(func(o *mcp.Options) { o.Limits = limits })
			s.say("1", entry(t, "a", "1"))
			h.await("the object", func() bool { return h.has("a") })
			s.say("2", entry(t, "b", "1"), entry(t, "c", "1"), entry(t, "d", "1"), entry(t, "e", "1"))
			h.await("that it is too much", func() bool { return h.said("TOO_MANY_OBJECTS") })
			refused := s.next(func(r *discoveryv3.DiscoveryRequest) bool { return r.GetResponseNonce() == "n2" })
			if refused.GetErrorDetail() == nil || refused.GetVersionInfo() != "1" || !h.has("a") || h.has("b") {
				t.Errorf("it answers %v", refused)
			}
			s.say("3", entry(t, "b", "1"))
			h.await("what is not too much", func() bool { return h.has("b") && !h.has("a") && h.said() })
		})
	}
}

// TestM03AnAnswerThatIsTooLargeIsRefused: an answer of more bytes than one may have is a problem that names the bound. What was read
// stays, and an answer that fits is read.
func TestM03AnAnswerThatIsTooLargeIsRefused(t *testing.T) {
	s := serve(t, false)
	h := s.read(func(o *mcp.Options) { o.Answer = 10_000 })
	say := func(version string, n int) {
		all := make([]*anypb.Any, n)
		for i := range all {
			all[i] = entry(t, fmt.Sprintf("e%03d", i), version)
		}
		s.say(version, all...)
	}
	connects := func() { s.next(func(r *discoveryv3.DiscoveryRequest) bool { return r.GetResponseNonce() == "" }) }
	connects()
	say("1", 2)
	h.await("two objects", func() bool { return len(h.objects) == 2 && h.said() })
	say("2", 500)
	h.await("that it is too large", func() bool { return h.said("TOO_MANY_OBJECTS") && len(h.objects) == 2 })
	if text := h.trouble[0].Message; !strings.Contains(text, "has more than 10000 bytes and is refused") {
		t.Errorf("the problem is %q", text)
	}
	connects() // the stream with the refused answer is over
	say("3", 3)
	h.await("three objects", func() bool { return len(h.objects) == 3 && h.said() })
}

func TestM04AMassRemovalNeedsTime(t *testing.T) {
	s := serve(t, false)
	all := make([]*anypb.Any, 20)
	for i := range all {
		all[i] = entry(t, fmt.Sprintf("e%02d", i), "1")
	}
	h := s.read(func(o *mcp.Options) { o.Hold = time.Hour })
	s.say("1", all...)
	h.await("all objects", func() bool { return len(h.objects) == 20 })
	s.say("2", all[0])
	h.await("that the removal waits", func() bool { return h.said("REMOVAL_HELD") && len(h.objects) == 20 })
	s.say("3", all[:15]...)
	h.await("fewer objects", func() bool { return len(h.objects) == 15 && h.said() })

	s = serve(t, false)
	quick := s.read(func(o *mcp.Options) { o.Hold = time.Millisecond })
	s.say("1", all...)
	quick.await("all objects", func() bool { return len(quick.objects) == 20 })
	s.say("2", all[0])
	quick.await("the end of the removed", func() bool { return len(quick.objects) == 1 && quick.said() })
}

func TestM05DeltaResumesWithWhatIsKnown(t *testing.T) {
	s := serve(t, true)
	h := s.read(func(o *mcp.Options) { o.Delta = true })
	send := func(removed []string, all ...*discoveryv3.Resource) {
		t.Helper()
		s.change(&discoveryv3.DeltaDiscoveryResponse{TypeUrl: entries, Nonce: "n", Resources: all, RemovedResources: removed})
	}
	send(nil, &discoveryv3.Resource{Name: "shop/a", Version: "va", Resource: entry(t, "a", "1")},
		&discoveryv3.Resource{Name: "shop/b", Version: "vb", Resource: entry(t, "b", "1")})
	h.await("two objects", func() bool { return h.has("a") && h.has("b") })
	send([]string{"shop/a"}, &discoveryv3.Resource{Name: "shop/c", Version: "vc", Resource: entry(t, "c", "1")})
	h.await("a change", func() bool { return !h.has("a") && h.has("b") && h.has("c") })
	for len(s.delta) > 0 {
		<-s.delta
	}
	s.hangUp <- struct{}{}
	for r := range s.delta {
		if r.GetNode() == nil {
			continue // an acknowledgement of before
		}
		if got := r.GetInitialResourceVersions(); len(got) != 2 || got["shop/b"] != "vb" || got["shop/c"] != "vc" {
			t.Errorf("it resumes with %v", got)
		}
		break
	}
	send([]string{"shop/b"})
	h.await("what was removed meanwhile", func() bool { return !h.has("b") && h.has("c") })
}

func TestM05WithoutDeltaItAsksBySotW(t *testing.T) {
	s := serve(t, false)
	h := s.read(func(o *mcp.Options) { o.Delta = true })
	s.say("1", entry(t, "a", "1"))
	h.await("the object", func() bool { return h.has("a") && h.said() })
}

// TestM01NumbersAreNumbers: 64-bit numbers pass the schemas.
func TestM01NumbersAreNumbers(t *testing.T) {
	s := serve(t, false)
	h := s.read(func(o *mcp.Options) { o.Kinds = []string{"DestinationRule.networking.istio.io"} })
	rule := &networking.DestinationRule{Host: "a.example.com", TrafficPolicy: &networking.TrafficPolicy{
		LoadBalancer: &networking.LoadBalancerSettings{LbPolicy: &networking.LoadBalancerSettings_ConsistentHash{ConsistentHash: &networking.LoadBalancerSettings_ConsistentHashLB{
			HashKey:       &networking.LoadBalancerSettings_ConsistentHashLB_UseSourceIp{UseSourceIp: true},
			HashAlgorithm: &networking.LoadBalancerSettings_ConsistentHashLB_RingHash_{RingHash: &networking.LoadBalancerSettings_ConsistentHashLB_RingHash{MinimumRingSize: 2048}},
		}}},
		ConnectionPool: &networking.ConnectionPoolSettings{Tcp: &networking.ConnectionPoolSettings_TCPSettings{ConnectTimeout: durationpb.New(1500 * time.Millisecond)}},
	}}
	s.send(&discoveryv3.DiscoveryResponse{
		TypeUrl: "networking.istio.io/v1/DestinationRule", VersionInfo: "1",
		Nonce: "1", Resources: []*anypb.Any{
			wrap(t, &mcpapi.Resource{Metadata: &mcpapi.Metadata{Name: "shop/a"}, Body: wrap(t, rule)}),
		},
	})
	h.await("the rule", func() bool { return len(h.objects) == 1 })
	for _, o := range h.objects {
		if text := string(o.Manifest); !strings.Contains(text, `"minimumRingSize":2048`) || !strings.Contains(text, `"connectTimeout":"1.500s"`) {
			t.Errorf("the rule is %s", text)
		}
	}
}

func TestM03AKindThatIsNotReadIsReported(t *testing.T) {
	s := serve(t, false)
	h := s.read(func(o *mcp.Options) {
		o.Kinds = append(o.Kinds, "Cluster.isthmus.dev", "NoSuch.networking.istio.io")
	})
	s.say("1", entry(t, "a", "1"))
	h.await("the object and two problems", func() bool { return h.has("a") && h.said("KIND_REFUSED", "KIND_REFUSED") })
}
