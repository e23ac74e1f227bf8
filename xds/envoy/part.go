package envoy

import (
	"fmt"
	"slices"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/check"
	"isthmus.dev/isthmus/xds/envoy/facet"
	"isthmus.dev/isthmus/xds/envoy/node"
	"isthmus.dev/isthmus/xds/envoy/resource"
	"isthmus.dev/isthmus/xds/envoy/route"
)

// Part is a virtual host, checked and serialised, with all that it was made of.
// It is never changed.
type Part struct {
	Deps     federation.Deps
	given    string   // what it was made of beside what it read
	clusters []string // to which it leads
	bytes    []byte   // empty: the host has no routes
	reasons  []resource.Reason
}

// Parts keeps the parts of one resource for one facet.
type Parts interface {
	// Part returns the part that was kept under the name, nil where there is none
	// or something that it read has changed.
	Part(name string) *Part
	Keep(name string, p *Part)
}

// Assembled is a resource made of serialised parts: equal to what Build makes.
type Assembled struct {
	Bytes    []byte
	Clusters []string // to which it leads, sorted
}

// AssembleRoutes is Build for routes, but of the virtual hosts only those are
// made that parts does not have. What was read for the whole is in r.Deps(), what
// was read for a part in the part's. A nil result means that the name does not
// exist.
func AssembleRoutes(name string, f node.Facet, r *federation.Reader, parts Parts) (*Assembled, []resource.Reason, error) {
	v, planned := facet.Open(f, r), contentOf(f)[resource.RouteType].plan
	if planned == nil || f.Extras().Patches != "" {
		return whole(v, name)
	}
	plan := planned(v, name)
	if plan == nil {
		return nil, v.Reasons, nil
	}
	if err := check.Resource(plan.Shell(nil)); err != nil {
		return nil, nil, err
	}
	made, reasons := make([]*Part, len(plan.Hosts)), len(v.Reasons)
	for i, h := range plan.Hosts {
		p, err := partOf(v, h, parts)
		if err != nil {
			return nil, nil, fmt.Errorf("building the virtual host %s: %w", h.Name(), err)
		}
		made[i] = p
		reasons += len(p.reasons)
	}
	v.Reasons = slices.Grow(v.Reasons, reasons-len(v.Reasons))
	for _, p := range made {
		v.Reasons = append(v.Reasons, p.reasons...)
	}
	a, err := joinParts(plan, made)
	return a, v.Reasons, err
}

// whole makes routes that have no parts.
func whole(v *facet.View, name string) (*Assembled, []resource.Reason, error) {
	c, _ := contentOf(v.Facet)[resource.RouteType].build.made(v, name).(*routev3.RouteConfiguration)
	if c == nil {
		return nil, v.Reasons, nil
	}
	if err := check.Resource(c); err != nil {
		return nil, nil, err
	}
	body, err := proto.MarshalOptions{Deterministic: true}.Marshal(c)
	a := &Assembled{Bytes: body}
	for _, host := range c.GetVirtualHosts() {
		a.Clusters = append(a.Clusters, clustersOf(host)...)
	}
	slices.Sort(a.Clusters)
	a.Clusters = slices.Clip(slices.Compact(a.Clusters))
	return a, v.Reasons, err
}

// joinParts puts serialised hosts where a whole configuration would have them.
func joinParts(p *route.Plan, parts []*Part) (*Assembled, error) {
	around := p.Shell(nil)
	around.Name = ""
	rest, err := proto.MarshalOptions{Deterministic: true}.Marshal(around)
	if err != nil {
		return nil, fmt.Errorf("serialising the routes %s: %w", p.Name, err)
	}
	head := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), p.Name)
	size := len(head) + len(rest)
	clusters := clustersOf(p.Last)
	for _, part := range parts {
		size += len(part.bytes)
		clusters = append(clusters, part.clusters...)
	}
	slices.Sort(clusters)
	a := &Assembled{Bytes: append(make([]byte, 0, size), head...), Clusters: slices.Clip(slices.Compact(clusters))}
	for _, part := range parts {
		a.Bytes = append(a.Bytes, part.bytes...)
	}
	a.Bytes = append(a.Bytes, rest...)
	return a, nil
}

// partOf makes the virtual host, or takes the one that is there.
func partOf(v *facet.View, h *route.Host, parts Parts) (*Part, error) {
	given := strings.Join(h.Domains, " ")
	if h.Service != nil {
		given += "\n" + h.Service.Key.String()
	}
	if p := parts.Part(h.Name()); p != nil && p.given == given {
		return p, nil
	}
	own := facet.Open(v.Facet, v.Reader.Apart())
	if h.Service != nil {
		own.Reader.Spec(h.Service.Key)
	}
	p := &Part{given: given}
	if host := route.VirtualHost(own, h); host != nil {
		if err := check.Part(host); err != nil {
			return nil, err
		}
		body, err := proto.MarshalOptions{Deterministic: true}.Marshal(host)
		if err != nil {
			return nil, err
		}
		p.bytes = protowire.AppendBytes(protowire.AppendTag(nil, 2, protowire.BytesType), body)
		p.clusters = clustersOf(host)
	}
	p.reasons, p.Deps = own.Reasons, own.Reader.Deps()
	parts.Keep(h.Name(), p)
	return p, nil
}

func clustersOf(host *routev3.VirtualHost) []string {
	var clusters []string
	for _, route := range host.GetRoutes() {
		action := route.GetRoute()
		if name := action.GetCluster(); name != "" {
			clusters = append(clusters, name)
		}
		for _, w := range action.GetWeightedClusters().GetClusters() {
			clusters = append(clusters, w.GetName())
		}
		for _, mirror := range action.GetRequestMirrorPolicies() {
			clusters = append(clusters, mirror.GetCluster())
		}
	}
	return clusters
}
