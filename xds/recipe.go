package xds

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy"
	"isthmus.dev/isthmus/xds/envoy/check"
)

// builder makes resources; xds/envoy in the product.
type builder struct {
	view  func(envoy.Node, *federation.Reader) envoy.View
	fixed func(envoy.Type, envoy.Facet, *federation.Reader) []string
	// contributed reports whether services contribute names at all.
	contributed func(envoy.Type, envoy.Facet) bool
	contributes func(envoy.Type, envoy.Facet, *federation.Service, *federation.Reader) []string
	build       func(envoy.Type, string, envoy.Facet, *federation.Reader) (proto.Message, []envoy.Reason, error)
	validate    func(proto.Message) error
	// assemble is build and validate for routes, out of parts.
	assemble func(string, envoy.Facet, *federation.Reader, envoy.Parts) (*envoy.Assembled, []envoy.Reason, error)
	causes   func(envoy.Type, string, envoy.Facet, *federation.Reader, []string) map[string][]federation.ObjectKey
}

var envoyBuilder = builder{
	envoy.ViewOf, envoy.Fixed, envoy.Contributed, envoy.Contributes, envoy.Build, check.Resource, envoy.AssembleRoutes, envoy.Causes,
}

// recipe is how the resources of one type for one facet are made: pure functions of a
// snapshot.
type recipe struct {
	kind  envoy.Type
	facet envoy.Facet
	make  builder
}

// message builds a resource and validates it; nil: it does not exist.
func (r *recipe) message(name string, reader *federation.Reader) (proto.Message, []envoy.Reason, error) {
	m, reasons, err := r.make.build(r.kind, name, r.facet, reader)
	if err != nil || m == nil {
		return nil, reasons, err
	}
	if got := nameOf(m); got != name && got != "" {
		return nil, nil, fmt.Errorf("building %s %q: the resource calls itself %q", r.kind, name, got)
	}
	if err := r.make.validate(m); err != nil {
		return nil, nil, fmt.Errorf("validating %s %q: %w", r.kind, name, err)
	}
	return m, reasons, nil
}

// render builds the resource as text; nil: it does not exist, or cannot be built, which
// is reported where it is built to be sent.
func (r *recipe) render(name string, s *federation.Snapshot) (text []byte) {
	defer func() {
		if recover() != nil {
			text = nil
		}
	}()
	if r.facet == (envoy.Facet{}) {
		return nil
	}
	m, _, err := r.make.build(r.kind, name, r.facet, s.Read())
	if err != nil || m == nil {
		return nil
	}
	return indented(m)
}
