package xds

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/xds/envoy"
)

// PreviewedResource is a resource that a change would make, alter or remove.
type PreviewedResource struct {
	Type          envoy.Type
	Name          string
	Before, After []byte // as indented JSON with sorted fields; nil: does not exist
}

// Preview is what a change would bring to the connected proxies.
type Preview struct {
	Proxies   []fleet.ProxyID     // that would get something else, each once, in order
	Resources []PreviewedResource // each once, though it may differ between proxies
	More      int                 // resources beyond MaxPreview
}

// MaxPreview bounds the resources of a Preview.
const MaxPreview = 1000

// Preview tells what would differ for the proxies that are connected if after,
// which follows from before, were the snapshot. Nothing is published, and only
// what the change touches is built.
func (s *Server) Preview(ctx context.Context, before, after *federation.Snapshot) (Preview, error) {
	var p Preview
	differences := map[[2]groupKey][]PreviewedResource{}
	resources := map[string]PreviewedResource{}
	for node := range nodes(s.options.Fleet.Latest()) {
		concerned := false
		viewBefore, viewAfter := envoy.ViewOf(*node, before.Read()), envoy.ViewOf(*node, after.Read())
		for _, kind := range pushOrder {
			was, is := viewBefore.Facets(kind), viewAfter.Facets(kind)
			for i := range max(len(was), len(is)) {
				if err := ctx.Err(); err != nil {
					return p, fmt.Errorf("previewing a change: %w", err)
				}
				pair := [2]groupKey{facetAt(kind, was, i), facetAt(kind, is, i)}
				found, known := differences[pair]
				if !known {
					found = s.compare(pair, before, after)
					differences[pair] = found
				}
				concerned = concerned || len(found) > 0
				for _, r := range found {
					resources[string(r.Type)+"\x00"+r.Name] = r
				}
			}
		}
		if concerned {
			p.Proxies = append(p.Proxies, fleet.ProxyID{Cluster: node.Cluster, NodeID: node.ID})
		}
	}
	for _, key := range slices.Sorted(maps.Keys(resources)) {
		p.Resources = append(p.Resources, resources[key])
	}
	if over := len(p.Resources) - MaxPreview; over > 0 {
		p.Resources, p.More = p.Resources[:MaxPreview], over
	}
	slices.SortFunc(p.Proxies, fleet.ProxyID.Compare)
	p.Proxies = slices.Compact(p.Proxies)
	return p, nil
}

// nodes yields the nodes of all streams, by ID.
func nodes(of *fleet.Value) iter.Seq[*envoy.Node] {
	return func(yield func(*envoy.Node) bool) {
		for p := range of.Proxies() {
			if node, is := p.Node.(*envoy.Node); is && !yield(node) {
				return
			}
		}
	}
}

// facetAt is the i-th facet; the zero one, which has no resources, behind the
// last.
func facetAt(kind envoy.Type, facets []envoy.Facet, i int) groupKey {
	if i >= len(facets) {
		return groupKey{kind: kind}
	}
	return groupKey{kind, facets[i]}
}

// compare finds the resources of a facet that differ.
func (s *Server) compare(pair [2]groupKey, before, after *federation.Snapshot) []PreviewedResource {
	was, is := newGroup(pair[0].kind, pair[0].facet, *s.options.builder), newGroup(pair[1].kind, pair[1].facet, *s.options.builder)
	names := s.touched(pair, before, after)
	if names == nil {
		was.sync(before)
		is.sync(after)
		names = slices.Concat(was.list(), is.list())
	}
	slices.Sort(names)
	var found []PreviewedResource
	for _, name := range slices.Compact(names) {
		r := PreviewedResource{Type: pair[0].kind, Name: name, Before: was.render(name, before), After: is.render(name, after)}
		if !bytes.Equal(r.Before, r.After) {
			found = append(found, r)
		}
	}
	return found
}

// touched names the resources of a facet that the change may touch, nil where
// that is not known: the facet itself is another, or no stream follows it.
func (s *Server) touched(pair [2]groupKey, before, after *federation.Snapshot) []string {
	s.mu.Lock()
	g := s.groups[pair[0]]
	s.mu.Unlock()
	if pair[0] != pair[1] || g == nil {
		return nil
	}
	return g.previewNames(before, after)
}

// previewNames names what a sync from before to after would touch; nil where the
// group is not at before or the changes are not known.
func (g *group) previewNames(before, after *federation.Snapshot) []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	changes := after.ChangesSince(before.Version())
	if g.snapshot == nil || g.snapshot.Version() != before.Version() || changes.All {
		return nil
	}
	names := []string{}
	for _, name := range g.index.Affected(changes, after) {
		names = append(names, resourceOf(name))
	}
	names = append(names, g.names.preview(changes, before, after)...)
	if slices.Contains(names, fixedNames) {
		names = slices.Concat(names, g.names.fixed, g.make.fixed(g.kind, g.facet, after.Read()))
	}
	return slices.DeleteFunc(names, func(name string) bool { return name == fixedNames })
}

func indented(m proto.Message) []byte {
	text, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(m)
	if err != nil {
		return nil
	}
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		return nil
	}
	text, err = json.MarshalIndent(value, "", "  ")
	if err != nil {
		return nil
	}
	return append(text, '\n')
}
