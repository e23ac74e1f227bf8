package xds

import (
	"fmt"
	"iter"
	"runtime/debug"
	"slices"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/parallel"
	"isthmus.dev/isthmus/xds/envoy"
)

// prepare builds those of the names that are not built yet, on all processors:
// get finds them then.
func (g *group) prepare(names iter.Seq[string]) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if isBuilt(g) || g.kind.Has(envoy.BuiltInParts) { // builds of parts share them, and run one by one
		return
	}
	var missing []string
	for name := range names {
		if c := g.subscribed.byName[name]; g.names.has(name) && (c == nil || c.dirty) {
			missing = append(missing, name)
		}
	}
	made := make([]built, len(missing))
	parallel.Each(len(missing), func(i int) { made[i] = g.build(missing[i]) })
	for i, name := range missing {
		g.take(name, made[i])
	}
}

// isBuilt reports whether every name is built, as of the snapshot. What is subscribed to exists.
func isBuilt(g *group) bool {
	return g.subscribed.dirty == 0 && len(g.subscribed.byName) == len(g.names.counts)
}

// built is the outcome of a build, and what it was made from.
type built struct {
	resource *resource // nil: does not exist
	err      error
	deps     federation.Deps
	reasons  []envoy.Reason // about objects and services
	faults   []envoy.Reason // about those because of which it cannot be built
}

// build changes nothing in the group unless its type is one with parts.
func (g *group) build(name string) built {
	reader := g.snapshot.Read()
	r, reasons, err := g.buildOne(name, reader)
	if err != nil {
		return g.unbuilt(name, err)
	}
	return built{resource: r, deps: reader.Deps(), reasons: aboutObjects(reasons)}
}

// unbuilt is the outcome of a build that failed. What it depends on is what was read until
// then: parts that could not be built noted nothing, and a change of what they read heals
// them.
func (g *group) unbuilt(name string, err error) built {
	faults, deps := g.faults.suspects(g.snapshot, name, func(r *federation.Reader) error {
		m, _, err := g.make.build(g.kind, name, g.facet, r)
		if err != nil || m == nil {
			return err
		}
		return g.make.validate(m)
	})
	if len(faults) == 0 && deps.Services.Len() == 1 {
		for key := range deps.Services.All() {
			faults = []envoy.Reason{g.faults.faulty(envoy.Reason{Service: key})}
		}
	}
	return built{err: accused(err, faults), deps: deps, faults: faults}
}

func (g *group) take(name string, b built) {
	c := g.subscribed.byName[name]
	if c == nil {
		c = &subscribedResource{}
		g.subscribed.byName[name] = c
	}
	absent := c.absent
	defer func() {
		c.absent = c.resource == nil
		if c.absent != absent {
			g.absent.set(name, c.absent)
		}
		g.moved()
	}()
	g.index.Replace(name, c.deps, b.deps)
	g.subscribed.clean(c)
	c.deps, c.err = b.deps, b.err
	g.faults.set(name, b.faults)
	if b.err != nil {
		g.failed(g.kind, name, b.err)
		return
	}
	g.built()
	g.reasoned(c.reasons, b.reasons)
	c.reasons = b.reasons
	if b.resource == nil || c.resource == nil || b.resource.hash != c.resource.hash {
		c.resource = b.resource
		if b.resource != nil {
			b.resource.home = g
		}
	}
}

// buildOne builds, validates and serialises; a panic is an error like others.
func (g *group) buildOne(name string, reader *federation.Reader) (r *resource, reasons []envoy.Reason, err error) {
	defer func() {
		if p := recover(); p != nil {
			r, reasons, err = nil, nil, fmt.Errorf("building %s %q: panic: %v\n%s", g.kind, name, p, debug.Stack())
		}
	}()
	if g.kind.Has(envoy.BuiltInParts) {
		return g.assembleOne(name, reader)
	}
	m, reasons, err := g.message(name, reader)
	if err != nil || m == nil {
		return nil, reasons, err
	}
	r, err = newResource(g.kind, name, m)
	if err == nil {
		r.fixed = slices.Contains(g.names.fixed, name)
	}
	return r, reasons, err
}

// assembleOne builds a resource of parts, of which it builds those that are not
// as they were.
func (g *group) assembleOne(name string, reader *federation.Reader) (*resource, []envoy.Reason, error) {
	parts := partBuild{g.parts.of(name), name, g.index}
	a, reasons, err := g.make.assemble(name, g.facet, reader, parts)
	if err != nil {
		return nil, nil, err
	}
	parts.sweep()
	if a == nil {
		return nil, reasons, nil
	}
	r := serialised(g.kind, name, a.Bytes)
	r.refs = references{clusters: a.Clusters}
	r.fixed = slices.Contains(g.names.fixed, name)
	return r, reasons, nil
}
