package mcp_test

import (
	"context"
	"log/slog"
	"maps"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/kind"
	"isthmus.dev/isthmus/federation/config/schema"
	served "isthmus.dev/isthmus/xds/mcp"
)

// source gives what a test has it give.
type source chan config.Sink

func (source) Kinds() []federation.Kind { return []federation.Kind{federation.ServiceEntryKind} }

func (s source) Run(ctx context.Context, to config.Sink) error {
	s <- to
	<-ctx.Done()
	return ctx.Err()
}

func entryNamed(name string) *config.Object {
	key := federation.ServiceEntryKind.Key("shop", name)
	manifest := `{"apiVersion":"networking.istio.io/v1","kind":"ServiceEntry","metadata":{"name":"` + name + `","namespace":"shop"},` +
		`"spec":{"hosts":["` + name + `.example"],"ports":[{"name":"http","number":80,"protocol":"HTTP"}],"resolution":"DNS"}}`
	return &config.Object{Key: key, APIVersion: "networking.istio.io/v1", Revision: 1, Manifest: []byte(manifest)}
}

// TestPropertyWhatIsServedIsAsMadeFromNothing: after each change of what three sources have, of which the
// objects are the same, a table serves what a table serves that has just started: no object that came
// from another control plane, and each that did not.
func TestPropertyWhatIsServedIsAsMadeFromNothing(t *testing.T) {
	set, err := schema.Load(kind.Expressions)
	if err != nil {
		t.Fatal(err)
	}
	own, echoes := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		mesh := federation.NewAggregate(nil)
		names := []string{"etcd", "MCP other", "file a"}
		var sources []config.Named
		for _, name := range names {
			sources = append(sources, config.Named{Name: name, Source: make(source)})
		}
		publisher := mesh.Open(federation.ShardKey{Cluster: "hub", Provider: federation.External})
		all := config.NewAggregate(config.Options{Hub: "hub"}, publisher, slog.New(slog.DiscardHandler), sources...)
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- all.Run(ctx) }()
		defer func() { cancel(); <-done }()
		var to []config.Sink
		for _, s := range sources {
			to = append(to, <-s.Source.(source))
		}
		table := func() *served.Table {
			return served.New(served.Options{
				Snapshots: mesh, Views: all, Kinds: set.Kinds(), Origin: "ORIGIN123", Logger: slog.New(slog.DiscardHandler),
			})
		}
		kept := table()
		for range rapid.IntRange(1, 15).Draw(t, "changes") {
			o := entryNamed(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "object"))
			e := config.Event{New: o}
			if rapid.Bool().Draw(t, "gone") {
				e = config.Event{Old: o}
			}
			to[rapid.IntRange(0, 2).Draw(t, "source")].Update(config.Update{Revision: 1, Events: []config.Event{e}})
			if rapid.IntRange(0, 2).Draw(t, "asked later") == 0 {
				continue
			}
			now, want := versions(kept), versions(table())
			if !maps.Equal(now, want) {
				t.Fatalf("it serves %v, made from nothing %v", now, want)
			}
			for _, name := range []string{"a", "b"} {
				from, _ := all.Latest().SourceOf(entryNamed(name).Key)
				_, is := now["shop/"+name]
				if is != (from != "" && !strings.HasPrefix(from, "MCP ")) {
					t.Fatalf("%s, of %q, is served: %t", name, from, is)
				}
				if is {
					own++
				} else if from != "" {
					echoes++
				}
			}
		}
	})
	if own == 0 || echoes == 0 {
		t.Errorf("%d objects of the hub and %d of others", own, echoes)
	}
}
