package envoy

import (
	"slices"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"google.golang.org/protobuf/proto"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/envoyfilter"
	"isthmus.dev/isthmus/xds/envoy/facet"
	"isthmus.dev/isthmus/xds/envoy/node"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

// Causes are the objects of which the parts of a resource are made, by part and
// sorted; a part has none where no object has a say in it. It builds the resource, so
// that it is for when a proxy refused something.
func Causes(t resource.Type, name string, f node.Facet, r *federation.Reader, parts []string) map[string][]federation.ObjectKey {
	v := facet.Open(f, r)
	v.Causes = &facet.Causes{Of: map[any][]federation.ObjectKey{}}
	found := map[string][]federation.ObjectKey{}
	if of, divides := divided[t]; divides {
		of.causes(v.Causes, contentOf(f)[t].build(v, name), parts, found)
	}
	patchedParts(v, t, name, parts, found)
	for part, objects := range found {
		slices.SortFunc(objects, federation.ObjectKey.Compare)
		found[part] = slices.Compact(objects)
	}
	return found
}

// hostCauses adds the objects of which virtual hosts are made.
func hostCauses(of *facet.Causes, _ proto.Message, parts []string, found map[string][]federation.ObjectKey) {
	for _, host := range parts {
		found[host] = of.Of[host]
	}
}

// chainCauses adds the objects of which filter chains are made.
func chainCauses(of *facet.Causes, m proto.Message, parts []string, found map[string][]federation.ObjectKey) {
	l, _ := m.(*listenerv3.Listener)
	for _, chain := range append(l.GetFilterChains(), l.GetDefaultFilterChain()) {
		name := chainName(chain)
		if chain == l.GetDefaultFilterChain() {
			name = defaultChain
		}
		if !slices.Contains(parts, name) {
			continue
		}
		for _, filter := range chain.GetFilters() {
			found[name] = append(found[name], of.Of[filter]...)
		}
	}
}

// patchedParts adds the EnvoyFilters whose patches changed a part.
func patchedParts(v *facet.View, t resource.Type, name string, parts []string, found map[string][]federation.ObjectKey) {
	if v.Facet.Extras().Patches == "" || !t.Has(resource.InParts) {
		return
	}
	envoyfilter.Steps(v, contentOf(v.Facet)[t].build(v, name), func(p envoyfilter.Patch, before, after proto.Message) {
		was, now := formsByPart(before), formsByPart(after)
		for _, part := range parts {
			if was[part] != now[part] {
				found[part] = append(found[part], p.Object)
			}
		}
	})
}
