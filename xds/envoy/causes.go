package envoy

import (
	"slices"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/node"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

// Causes are the objects of which the parts of a resource are made, sorted; none
// where no object has a say in them. It builds the resource, so that it is for
// when a proxy refused something.
func Causes(t resource.Type, name string, f node.Facet, r *federation.Reader, parts []string) []federation.ObjectKey {
	b := &builder{facet: f, reader: r, causes: map[any][]federation.ObjectKey{}}
	var found []federation.ObjectKey
	switch t {
	case resource.RouteType:
		b.routes(name)
		for _, host := range parts {
			found = append(found, b.causes[host]...)
		}
	case resource.ListenerType:
		l, _ := b.listener(name).(*listenerv3.Listener)
		for _, chain := range append(l.GetFilterChains(), l.GetDefaultFilterChain()) {
			of := chainName(chain)
			if chain == l.GetDefaultFilterChain() {
				of = defaultChain
			}
			if slices.Contains(parts, of) {
				for _, filter := range chain.GetFilters() {
					found = append(found, b.causes[filter]...)
				}
			}
		}
	}
	slices.SortFunc(found, federation.ObjectKey.Compare)
	return slices.Compact(found)
}

// causedBy notes that the virtual host of that name, or the filter, is made of
// the object.
func (b *builder) causedBy(o *federation.Object, hostOrFilter any) {
	if b.causes != nil {
		b.causes[hostOrFilter] = append(b.causes[hostOrFilter], o.Key)
	}
}

// Concerns tells that resources for the facet can be made of the object. Whoever builds
// for a gateway reads all Gateways, and makes something only of those that select it.
func Concerns(o *federation.Object, f node.Facet) bool {
	spec, is := o.Spec.(*networking.Gateway)
	return !is || f.HasLabels(spec.GetSelector())
}
