package mcp_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	mcpapi "istio.io/api/mcp/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"

	"isthmus.dev/isthmus/federation/config/mcp"
)

// TestM12ARestartWhileTheServerIsAwayKeepsWhatItGave: the last form of each object, at once, and
// what changed meanwhile when the server answers.
func TestM12ARestartWhileTheServerIsAwayKeepsWhatItGave(t *testing.T) {
	for _, delta := range []bool{false, true} {
		t.Run(fmt.Sprintf("delta %v", delta), func(t *testing.T) {
			t.Parallel()
			s, dir := serve(t, delta), filepath.Join(t.TempDir(), "new")
			kept := func(o *mcp.Options) { o.Dir, o.Delta, o.Patience = dir, delta, time.Hour }
			first := s.read(kept)
			s.answer(delta, []string{"a", "b"}, nil)
			first.await("two objects", func() bool { return first.has("a") && first.has("b") })
			s.answer(delta, []string{"c", "b"}, []string{"a"})
			first.await("a change", func() bool { return first.has("c") && !first.has("a") })
			first.stop()
			s.grpc.Stop()

			second := s.read(kept)
			second.await("what the last run read", func() bool {
				return second.has("b") && second.has("c") && len(second.objects) == 2 && second.said("UNREACHABLE")
			})
			if u := second.updates[0]; !u.Full || len(u.Events) != 2 || !strings.Contains(second.trouble[0].Message,
				"the last run of the hub read until 20") {
				t.Errorf("the first update is %+v, and the trouble is %+v", u, second.trouble)
			}
			for len(s.delta) > 0 {
				<-s.delta
			}
			s.start(s.at)
			for delta {
				if r := <-s.delta; r.GetNode() != nil {
					if v := r.GetInitialResourceVersions(); len(v) != 2 || v["shop/b"] != "" {
						t.Errorf("it claims to have %v", v)
					}
					break
				}
			}
			s.answer(delta, []string{"d", "c"}, []string{"b"})
			second.await("what there is now", func() bool { return second.has("c") && second.has("d") && !second.has("b") && second.said() })
			if n := len(second.updates[len(second.updates)-1].Events); n != 2 {
				t.Errorf("an object that did not change changed: %+v", second.updates)
			}
		})
	}
}

// answer says what there is, or how that changed.
func (s *server) answer(delta bool, has, removed []string) {
	s.t.Helper()
	if !delta {
		r := &discoveryv3.DiscoveryResponse{TypeUrl: entries, VersionInfo: "1", Nonce: "n"}
		for _, name := range has {
			r.Resources = append(r.Resources, entry(s.t, name, "1"))
		}
		s.send(r)
		return
	}
	r := &discoveryv3.DeltaDiscoveryResponse{TypeUrl: entries, Nonce: "n"}
	for _, name := range has {
		r.Resources = append(r.Resources, &discoveryv3.Resource{Name: "shop/" + name, Version: "v", Resource: entry(s.t, name, "1")})
	}
	for _, name := range removed {
		r.RemovedResources = append(r.RemovedResources, "shop/"+name)
	}
	s.change(r)
}

// TestM13WhatIsNotOfTheServerIsNotUsed: nor what is damaged, of a kind that is not read any more,
// or not all.
func TestM13WhatIsNotOfTheServerIsNotUsed(t *testing.T) {
	for name, c := range map[string]struct {
		between func(t *testing.T, path string)
		then    func(*mcp.Options)
		stays   bool
	}{
		"nothing happened":  {stays: true},
		"a damaged file":    {between: func(t *testing.T, path string) { damage(t, path) }},
		"an empty file":     {between: func(t *testing.T, path string) { write(t, path, nil) }},
		"another address":   {then: func(o *mcp.Options) { o.Address = "127.0.0.1:1" }},
		"another kind":      {then: func(o *mcp.Options) { o.Kinds = []string{"Gateway.networking.istio.io"} }},
		"a server is gone":  {between: func(t *testing.T, path string) { forget(t, path, "other") }},
		"a server is there": {between: func(t *testing.T, path string) { forget(t, path, "test") }, stays: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, dir := serve(t, false), t.TempDir()
			first := s.read(func(o *mcp.Options) { o.Dir = dir })
			s.say("1", entry(t, "a", "1"))
			first.await("the object", func() bool { return first.has("a") })
			first.stop()
			s.grpc.Stop()
			if c.between != nil {
				c.between(t, filepath.Join(dir, "test.db"))
			}
			second := s.read(func(o *mcp.Options) {
				o.Dir, o.Patience = dir, time.Millisecond
				if c.then != nil {
					c.then(o)
				}
			})
			second.await("the first update", func() bool { return len(second.updates) > 0 && second.said("UNREACHABLE") })
			if second.has("a") != c.stays {
				t.Errorf("it has %v", second.objects)
			}
		})
	}
}

// TestM13APartIsNotKept: of a server that answered for one kind of two, the file stays as it was.
func TestM13APartIsNotKept(t *testing.T) {
	s, dir := serve(t, false), t.TempDir()
	two := func(o *mcp.Options) {
		o.Dir, o.Patience, o.Kinds = dir, time.Millisecond, []string{"ServiceEntry.networking.istio.io", "Gateway.networking.istio.io"}
	}
	whole := s.read(two)
	s.send(&discoveryv3.DiscoveryResponse{TypeUrl: "networking.istio.io/v1/Gateway", VersionInfo: "1", Nonce: "g"})
	s.say("1", entry(t, "a", "1"))
	whole.await("the last answer", func() bool { return whole.has("a") })
	whole.stop()
	part := s.read(two)
	s.say("2", entry(t, "b", "1"))
	part.await("what one kind has now", func() bool { return part.has("b") && !part.has("a") })
	part.stop()
	s.grpc.Stop()
	last := s.read(two)
	last.await("what was whole", func() bool { return last.has("a") && !last.has("b") })
}

// TestM12AFolderThatCannotBeWrittenStopsNothing: and what could not be written is, once it can be.
func TestM12AFolderThatCannotBeWrittenStopsNothing(t *testing.T) {
	s, place := serve(t, false), filepath.Join(t.TempDir(), "file")
	write(t, place, []byte("in the way"))
	h := s.read(func(o *mcp.Options) { o.Dir = place })
	s.say("1", entry(t, "a", "1"))
	h.await("the object", func() bool { return h.has("a") && h.said() })
	s.say("2", entry(t, "a", "2", func(_ *mcpapi.Resource, e *networking.ServiceEntry) { e.Hosts = []string{"new.example.com"} }))
	h.await("a change", func() bool { return strings.Contains(h.manifest("a"), "new.example.com") })
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// damage changes one byte of an object.
func damage(t *testing.T, path string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	damaged := strings.ReplaceAll(string(data), "a.example.com", "z.example.com")
	if damaged == string(data) {
		t.Fatal("the file does not have the object")
	}
	write(t, path, []byte(damaged))
}

func forget(t *testing.T, path, but string) {
	t.Helper()
	if err := mcp.Forget(filepath.Dir(path), []mcp.Server{{Name: but}}); err != nil {
		t.Fatal(err)
	}
}
