package envoyfilter

import (
	"fmt"
	"slices"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"google.golang.org/protobuf/proto"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/check"
	"isthmus.dev/isthmus/xds/envoy/facet"
	"isthmus.dev/isthmus/xds/envoy/node"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

// Names are those of the resources of a type that EnvoyFilters add: clusters or listeners.
func Names(t resource.Type) func(node.Facet, *federation.Reader) []string {
	return func(f node.Facet, r *federation.Reader) []string {
		var names []string
		for _, a := range addedTo(facet.Open(f, r)) {
			if typeOfAdded(a.value) == t {
				names = append(names, nameOf(a.value))
			}
		}
		slices.Sort(names)
		return slices.Compact(names)
	}
}

// Added is the cluster or listener of that name; of several, the first one.
func Added(v *facet.View, name string) proto.Message {
	for _, a := range addedTo(v) {
		if nameOf(a.value) != name {
			continue
		}
		v.LeaveOut(resource.Reason{Code: resource.ReasonPatchMatched, Cause: a.Object, Message: a.Field()})
		if err := validAdded(a.value); err != nil {
			v.LeaveOut(resource.Reason{
				Code: resource.ReasonPatchInvalid, Cause: a.Object,
				Message: fmt.Sprintf("%s is excluded: %v", a.Field(), err),
			})
			continue
		}
		return proto.Clone(a.value)
	}
	return nil
}

func validAdded(m proto.Message) error {
	if err := check.Resource(m); err != nil {
		return err
	}
	l, _ := m.(*listenerv3.Listener)
	for i, chain := range chainsOf(l) {
		if err := validChain(chain); err != nil {
			return fmt.Errorf("filter chain %d: %w", i, err)
		}
	}
	return nil
}

// addedTo are the patches of the facet that add a cluster or a listener.
func addedTo(v *facet.View) []*job {
	var found []*job
	for _, ref := range node.PatchesOf(v.Facet) {
		o, exists := v.Reader.Object(ref.Object)
		if !exists {
			continue
		}
		for _, j := range readAll(patchesOf(o, ref.Indexes)) {
			if j.op == add && typeOfAdded(j.value) != "" {
				found = append(found, j)
			}
		}
	}
	return found
}

func typeOfAdded(m proto.Message) resource.Type {
	switch m.(type) {
	case *clusterv3.Cluster:
		return resource.ClusterType
	case *listenerv3.Listener:
		return resource.ListenerType
	}
	return ""
}
