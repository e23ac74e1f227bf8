package envoy

import (
	"slices"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/destinationrule"
	"isthmus.dev/isthmus/xds/envoy/node"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

// Causes are the objects of which the parts of a resource are made, by part and
// sorted; a part has none where no object has a say in it. It builds the resource, so
// that it is for when a proxy refused something.
func Causes(t resource.Type, name string, f node.Facet, r *federation.Reader, parts []string) map[string][]federation.ObjectKey {
	b := &builder{facet: f, reader: r, causes: &causes{of: map[any][]federation.ObjectKey{}}}
	found := map[string][]federation.ObjectKey{}
	switch t {
	case resource.RouteType:
		b.routes(name)
		for _, host := range parts {
			found[host] = b.causes.of[host]
		}
	case resource.ListenerType:
		l, _ := b.listener(name).(*listenerv3.Listener)
		for _, chain := range append(l.GetFilterChains(), l.GetDefaultFilterChain()) {
			of := chainName(chain)
			if chain == l.GetDefaultFilterChain() {
				of = defaultChain
			}
			if !slices.Contains(parts, of) {
				continue
			}
			for _, filter := range chain.GetFilters() {
				found[of] = append(found[of], b.causes.of[filter]...)
			}
		}
	}
	for part, objects := range found {
		slices.SortFunc(objects, federation.ObjectKey.Compare)
		found[part] = slices.Compact(objects)
	}
	return found
}

// causes notes what virtual hosts and filters are made of.
type causes struct {
	of    map[any][]federation.ObjectKey // by the host's name, or by the filter
	rules []federation.ObjectKey         // DestinationRules of the one that is being made
}

// causedBy notes that the virtual host of that name, or the filter, is made of
// the object.
func (b *builder) causedBy(o *federation.Object, hostOrFilter any) {
	if b.causes != nil {
		b.causes.of[hostOrFilter] = append(b.causes.of[hostOrFilter], o.Key)
	}
}

// causedByPolicy notes that what is being made has something of the service's
// DestinationRules.
func (b *builder) causedByPolicy(s *federation.Service) {
	if b.causes == nil {
		return
	}
	for _, o := range destinationrule.For(s, b.callers(), b.reader) {
		b.causes.rules = append(b.causes.rules, o.Key)
	}
}

var serviceEntryKind = federation.Kind{Group: "networking.istio.io", Name: "ServiceEntry"}

// made notes the DestinationRules of what was made. What nothing else says anything of
// is made of the ServiceEntries that define the service; nil: there is none.
func (b *builder) made(hostOrFilter any, s *federation.Service) {
	if b.causes == nil {
		return
	}
	b.causes.of[hostOrFilter] = append(b.causes.of[hostOrFilter], b.causes.rules...)
	b.causes.rules = nil
	if len(b.causes.of[hostOrFilter]) > 0 || s == nil {
		return
	}
	for o := range b.reader.ObjectsNamed(serviceEntryKind, string(s.Key.Hostname)) {
		if o.Key.Namespace == s.Key.Namespace {
			b.causedBy(o, hostOrFilter)
		}
	}
}

// Concerns tells that resources for the facet can be made of the object. Whoever builds
// for a gateway reads all Gateways, and makes something only of those that select it.
func Concerns(o *federation.Object, f node.Facet) bool {
	spec, is := o.Spec.(*networking.Gateway)
	return !is || f.HasLabels(spec.GetSelector())
}
