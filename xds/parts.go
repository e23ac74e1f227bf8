package xds

import (
	"strings"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/derive"
	"isthmus.dev/isthmus/xds/envoy"
)

// partSeparator separates the names of a resource and of one of its parts in the
// index. After it comes a part's name, or nothing: what parts of the resource have
// in common.
const partSeparator = "\x01"

// resourceOf is the name of the resource that an entry of the index means.
func resourceOf(name string) string {
	resource, _, _ := strings.Cut(name, partSeparator)
	return resource
}

// partCache keeps the parts of a group's resources. Where a part read something
// of its own that changed, it is built again; where parts read something that
// covers many hosts, all of the resource's are.
type partCache map[string]*resourceParts

type resourceParts struct {
	parts  map[string]*keptPart
	common federation.Deps
}

type keptPart struct {
	*envoy.Part
	own   federation.Deps
	stale bool
	used  bool // in the last build
}

// touch notes that something that parts read has changed; it returns the name of
// the resource.
func (s partCache) touch(name string) (resource string, isPart bool) {
	resource, part, isPart := strings.Cut(name, partSeparator)
	all := s[resource]
	if !isPart || all == nil {
		return resource, isPart
	}
	if part != "" {
		if kept := all.parts[part]; kept != nil {
			kept.stale = true
		}
		return resource, true
	}
	all.markStale()
	return resource, true
}

func (r *resourceParts) markStale() {
	for _, kept := range r.parts {
		kept.stale = true
	}
}

// of begins the build of a resource: the parts that it does not ask for will be
// swept.
func (s partCache) of(resource string) *resourceParts {
	if s[resource] == nil {
		s[resource] = &resourceParts{parts: map[string]*keptPart{}}
	}
	for _, kept := range s[resource].parts {
		kept.used = false
	}
	return s[resource]
}

// partBuild is the build of one resource with parts.
type partBuild struct {
	*resourceParts
	resource string
	index    *derive.Index[string]
}

// Part returns the part unless something that it read has changed.
func (b partBuild) Part(name string) *envoy.Part {
	kept := b.parts[name]
	if kept == nil || kept.stale {
		return nil
	}
	kept.used = true
	return kept.Part
}

// Keep puts the part in place of the one of that name.
func (b partBuild) Keep(name string, p *envoy.Part) {
	own, common := derive.Split(p.Deps)
	before := federation.Deps{}
	if kept := b.parts[name]; kept != nil {
		before = kept.own
	}
	b.index.Replace(b.resource+partSeparator+name, before, own)
	p.Deps = federation.Deps{} // the index has them
	b.parts[name] = &keptPart{Part: p, own: own, used: true}
	if all, grown := b.common.With(common); grown {
		b.index.Replace(b.resource+partSeparator, b.common, all)
		b.common = all
	}
}

// sweep drops the parts that the build did not ask for.
func (b partBuild) sweep() {
	for name, kept := range b.parts {
		if !kept.used {
			b.index.Replace(b.resource+partSeparator+name, kept.own, federation.Deps{})
			delete(b.parts, name)
		}
	}
}

// forget drops all parts of a resource.
func (s partCache) forget(resource string, index *derive.Index[string]) {
	all := s[resource]
	if all == nil {
		return
	}
	for name, kept := range all.parts {
		index.Replace(resource+partSeparator+name, kept.own, federation.Deps{})
	}
	index.Replace(resource+partSeparator, all.common, federation.Deps{})
	delete(s, resource)
}
