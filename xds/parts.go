package xds

import (
	"maps"
	"strings"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/derive"
	"isthmus.dev/isthmus/xds/envoy"
)

// partSeparator stands in the index between the names of a resource and of one
// of its parts. What follows it is a part's name, or nothing: what parts of the
// resource have in common.
const partSeparator = "\x01"

// resourceOf is the name of the resource that a name of the index stands for.
func resourceOf(name string) string {
	resource, _, _ := strings.Cut(name, partSeparator)
	return resource
}

// partShelf keeps the parts of a group's resources. Where a part read something
// of its own that changed, it is built again; where parts read something that
// stands for many hosts, all of the resource's are.
type partShelf map[string]*resourceParts

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
func (s partShelf) touch(name string) (resource string, isPart bool) {
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
	all.spoil()
	return resource, true
}

func (r *resourceParts) spoil() {
	for _, kept := range r.parts {
		kept.stale = true
	}
}

// of begins the build of a resource: the parts that it does not ask for will be
// swept.
func (s partShelf) of(resource string) *resourceParts {
	if s[resource] == nil {
		s[resource] = &resourceParts{parts: map[string]*keptPart{}, common: noDeps()}
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
	own, common := splitDeps(p.Deps)
	before := federation.Deps{}
	if kept := b.parts[name]; kept != nil {
		before = kept.own
	}
	b.index.Replace(b.resource+partSeparator+name, before, own)
	p.Deps = federation.Deps{} // the index has them
	b.parts[name] = &keptPart{Part: p, own: own, used: true}
	b.addCommon(common)
}

func (b partBuild) addCommon(more federation.Deps) {
	now := federation.Deps{
		Objects: maps.Clone(b.common.Objects), Names: maps.Clone(b.common.Names), Sets: maps.Clone(b.common.Sets),
		Clusters: maps.Clone(b.common.Clusters), Ports: maps.Clone(b.common.Ports),
		Networks: maps.Clone(b.common.Networks), Settings: b.common.Settings || more.Settings,
	}
	size := func(d federation.Deps) int {
		return len(d.Objects) + len(d.Names) + len(d.Sets) + len(d.Clusters) + len(d.Ports) + len(d.Networks)
	}
	maps.Copy(now.Objects, more.Objects)
	maps.Copy(now.Names, more.Names)
	maps.Copy(now.Sets, more.Sets)
	maps.Copy(now.Clusters, more.Clusters)
	maps.Copy(now.Ports, more.Ports)
	maps.Copy(now.Networks, more.Networks)
	if size(now) == size(b.common) && now.Settings == b.common.Settings {
		return
	}
	b.index.Replace(b.resource+partSeparator, b.common, now)
	b.common = now
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
func (s partShelf) forget(resource string, index *derive.Index[string]) {
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

func noDeps() federation.Deps {
	return federation.Deps{
		Objects: map[federation.ObjectKey]bool{}, Names: map[federation.ObjectName]bool{}, Sets: map[federation.ObjectSet]bool{},
		Clusters: map[federation.ClusterID]bool{}, Ports: map[uint16]bool{}, Networks: map[federation.NetworkID]bool{},
	}
}

// splitDeps parts what a part read of its own from what stands for many hosts:
// the settings of the mesh, and what speaks by wildcard.
func splitDeps(d federation.Deps) (own, common federation.Deps) {
	own, common = d, noDeps()
	common.Sets, common.Clusters, common.Ports, common.Networks, common.Settings = d.Sets, d.Clusters, d.Ports, d.Networks, d.Settings
	own.Sets, own.Clusters, own.Ports, own.Networks, own.Settings = nil, nil, nil, nil, false
	own.Names, own.Objects = map[federation.ObjectName]bool{}, map[federation.ObjectKey]bool{}
	for name := range d.Names {
		if strings.HasPrefix(name.Name, "*") {
			common.Names[name] = true
		} else {
			own.Names[name] = true
		}
	}
	for key := range d.Objects {
		if key.Group == federation.MeshGroup {
			common.Objects[key] = true
		} else {
			own.Objects[key] = true
		}
	}
	return own, common
}
