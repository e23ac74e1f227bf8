// Package envoy makes Envoy's resources out of a snapshot. Everything in it is
// a pure function of its arguments: equal arguments give equal bytes.
//
// A proxy is split into facets, the smallest parts on which a set of resources
// depends. Proxies with equal facets share one build and one serialisation,
// whatever else differs between them.
package envoy

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/facet"
	"isthmus.dev/isthmus/xds/envoy/node"
	"isthmus.dev/isthmus/xds/envoy/resource"
	"isthmus.dev/isthmus/xds/envoy/service"
)

// Build makes the resource of that name for a facet. A nil message means that
// the name does not exist (any more). What was read is in r.Deps() afterwards.
// The message is new and not yet validated; it may hold one part in several places, so
// that it is for reading only. An error means that the name or the type is not one that
// Facets and Names give.
func Build(t resource.Type, name string, f node.Facet, r *federation.Reader) (proto.Message, []resource.Reason, error) {
	of := contentOf(f)[t].build
	if of == nil {
		return nil, nil, fmt.Errorf("building %s %q: facet %s has no resources of this type", t, name, f)
	}
	v := facet.Open(f, r)
	m := of.made(v, name)
	return m, v.Reasons, nil
}

// StandsFor reports whether proxies of the facet get the resource, a cluster or its
// endpoints, for the service and not for another one of its hostname.
func StandsFor(name string, f node.Facet, s *federation.Service, in *federation.Snapshot) bool {
	id, ok := resource.ParseClusterName(name)
	if !ok {
		id, ok = resource.ParseServerName(name)
	}
	if !ok {
		return true // it has a name of its own, and was built from the service
	}
	v := facet.Open(f, in.Read())
	owner, _ := service.OwnerAmong(v, in.ByHostname(s.Key.Hostname), id.Port)
	return strings.EqualFold(string(id.Host), string(s.Key.Hostname)) && owner.Service == s
}
