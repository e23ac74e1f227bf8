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
	"isthmus.dev/isthmus/xds/envoy/node"
	"isthmus.dev/isthmus/xds/envoy/resource"
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
	b := &builder{facet: f, reader: r}
	if f.Scope == node.ScopeGateway || f.GRPC {
		return b.whole(name)
	}
	plan := b.planRoutes(name)
	if plan == nil {
		return nil, b.reasons, nil
	}
	if err := check.Resource(plan.shell(nil)); err != nil {
		return nil, nil, err
	}
	made, reasons := make([]*Part, len(plan.hosts)), len(b.reasons)
	for i, h := range plan.hosts {
		p, err := b.part(h, parts)
		if err != nil {
			return nil, nil, fmt.Errorf("building the virtual host %s: %w", h.name(), err)
		}
		made[i] = p
		reasons += len(p.reasons)
	}
	b.reasons = slices.Grow(b.reasons, reasons-len(b.reasons))
	for _, p := range made {
		b.reasons = append(b.reasons, p.reasons...)
	}
	a, err := plan.join(made)
	return a, b.reasons, err
}

// whole makes routes that have no parts.
func (b *builder) whole(name string) (*Assembled, []resource.Reason, error) {
	c, _ := b.routes(name).(*routev3.RouteConfiguration)
	if c == nil {
		return nil, b.reasons, nil
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
	return a, b.reasons, err
}

// join puts serialised hosts where a whole configuration would have them.
func (p *routePlan) join(parts []*Part) (*Assembled, error) {
	around := p.shell(nil)
	around.Name = ""
	rest, err := proto.MarshalOptions{Deterministic: true}.Marshal(around)
	if err != nil {
		return nil, fmt.Errorf("serialising the routes %s: %w", p.name, err)
	}
	head := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), p.name)
	size := len(head) + len(rest)
	clusters := clustersOf(p.last)
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

// part makes the virtual host, or takes the one that is there.
func (b *builder) part(h *httpHost, parts Parts) (*Part, error) {
	given := strings.Join(h.domains, " ")
	if h.service != nil {
		given += "\n" + h.service.Key.String()
	}
	if p := parts.Part(h.name()); p != nil && p.given == given {
		return p, nil
	}
	own := &builder{facet: b.facet, reader: b.reader.Apart()}
	if h.service != nil {
		own.reader.Spec(h.service.Key)
	}
	p := &Part{given: given}
	if host := own.virtualHost(h); host != nil {
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
	p.reasons, p.Deps = own.reasons, own.reader.Deps()
	parts.Keep(h.name(), p)
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
