// Package destination says which destination the name of a cluster means: a port of a service
// or of a subset, with the policy, the TLS and the server name of connections to it.
package destination

import (
	"slices"

	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/destinationrule"
	"isthmus.dev/isthmus/xds/envoy/facet"
	"isthmus.dev/isthmus/xds/envoy/node"
	"isthmus.dev/isthmus/xds/envoy/resource"
	"isthmus.dev/isthmus/xds/envoy/service"
)

// Destination is what the name of a cluster means.
type Destination struct {
	service.ServedPort
	Name   string
	Subset string
	Labels map[string]string // of its endpoints
	Policy *networking.TrafficPolicy
	Rules  []*federation.Object // that made the policy
	// Identity reports whether callers have an identity of the mesh; SNI is what mutual
	// TLS asks for, and Taken whose name that is, if not the destination's.
	Identity   bool
	Agent      bool // it comes from Istio's agent
	Stats      bool // the callers have Istio's filters for the exchange of metadata
	SNI, Taken string
	// certificate is the secret with the certificate that gateways present; empty: none.
	certificate string
	balanced    bool // Envoy chooses the endpoint, whatever the service and the rules say
	detected    bool // nothing says what the port speaks
}

// Of finds the destination that the name means; false where it is not this facet's business, or
// there is no such subset.
func Of(v *facet.View, name string) (Destination, bool) {
	id, ok := resource.ParseClusterName(name)
	if !ok {
		return Destination{}, false
	}
	p, ok := service.OwnerOf(v, id)
	if !ok || !ruledHere(v, p.Service) || service.IsAlias(v, p.Service) || v.Facet.Balanced && !Differs(v.Facet, p.Service, v.Reader) {
		return Destination{}, false
	}
	r := v.DestinationRule(p.Service)
	subset, ok := r.Subset(id.Subset)
	if !ok && id.Subset != "" {
		return Destination{}, false
	}
	d := Destination{
		ServedPort: p, Name: name, Subset: id.Subset, Labels: subset.GetLabels(),
		Policy: r.PolicyOf(p.Port.Number, subset), Rules: r.Rules, Identity: v.Facet.Identity, Agent: v.Facet.Agent, Stats: v.Facet.Stats,
		balanced: v.Facet.Balanced, detected: service.Detected(v, p.Port),
	}
	if tls := d.backendTLS(v); tls != nil {
		d.Policy.Tls, d.certificate = tls, v.Facet.Extras().Certificate
	}
	if d.Mutual() {
		d.SNI, d.Taken = serverNameOf(v, d, r.Subsets)
	}
	if d.Passthrough() {
		d.Taken = "" // the address decides where connections end, not the name that they ask for
	}
	return d, true
}

// ruledHere reports whether the facet is the one that makes the service's clusters.
func ruledHere(v *facet.View, s *federation.Service) bool {
	return !v.Facet.Has(node.RulesDiffer) || destinationrule.Differ(s, v.Callers(), v.Reader)
}

// EDS reports whether the destination's endpoints come by EDS.
func (d Destination) EDS() bool {
	known := d.Service.Resolution == federation.ClientSideLB || d.Service.Resolution == federation.Passthrough
	return known && !d.Passthrough() && d.Refusal() == "" && d.Taken == ""
}

// Passthrough reports whether callers choose the endpoint.
func (d Destination) Passthrough() bool {
	return !d.balanced && (d.Service.Resolution == federation.Passthrough ||
		d.Policy.GetLoadBalancer().GetSimple() == networking.LoadBalancerSettings_PASSTHROUGH)
}

// Requests are in which protocol requests go to the destination, and whether they go in that of
// the caller. Nothing says what a detected port speaks: a sidecar passes on what the workload
// speaks, and gateways, whose callers chose the protocol for the gateway, speak HTTP/1.1. A rule
// that upgrades requests says that the port speaks HTTP/2.
func (d Destination) Requests() (speaks federation.Protocol, asCaller bool) {
	if d.detected {
		return federation.HTTP, !d.balanced && !destinationrule.SpeaksHTTP2(federation.HTTP, d.Policy)
	}
	return d.Port.Protocol, false
}

// http2 reports whether requests go in HTTP/2 whatever the caller speaks.
func (d Destination) http2() bool {
	speaks, _ := d.Requests()
	return destinationrule.SpeaksHTTP2(speaks, d.Policy)
}

// Differs reports whether the gateways of the facet have other resources of the service than
// sidecars. Endpoints, whose facets have a place, do not depend on what a port speaks.
func Differs(f node.Facet, s *federation.Service, r *federation.Reader) bool {
	undeclared := f.Place == "" && slices.ContainsFunc(s.Ports, func(p federation.ServicePort) bool { return p.Undeclared })
	return CallersChoose(s, r) || destinationrule.HasBackendTLS(s.Key.Hostname, r) ||
		destinationrule.Any(s.Key.Hostname, r, destinationrule.NeedsCredential) || undeclared && r.Mesh().DetectsOutbound()
}

// CallersChoose reports whether sidecars send to where the caller wanted, because the
// service or a rule about it says so. Connections of a gateway were meant for the
// gateway: it balances over the endpoints.
func CallersChoose(s *federation.Service, r *federation.Reader) bool {
	if s.Resolution == federation.Passthrough {
		return true
	}
	return s.Resolution == federation.ClientSideLB && destinationrule.Any(s.Key.Hostname, r, destinationrule.LetsChoose)
}
