package kind

import (
	"slices"
	"strings"

	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/analysis"
	"isthmus.dev/isthmus/federation/config/validation"
)

var _ = add(of[networking.VirtualService]{
	kind: federation.VirtualServiceKind,
	names: func(d Decoded, s *networking.VirtualService) []string {
		found := append(d.hosts(s.GetHosts()...), d.gateways(s.GetGateways())...)
		if hasOwnConnections(s) {
			found = append(found, OwnConnections)
		} else if len(s.GetExportTo()) == 0 && len(s.GetTls())+len(s.GetTcp()) > 0 {
			found = append(found, DefaultConnections)
		}
		if leadsElsewhere(d.Key.Namespace, s) {
			found = append(found, Elsewhere+d.Key.Namespace)
		}
		return found
	},
	proxyLabels: sourceLabels,
	check:       validation.VirtualService,
	references:  analysis.VirtualService,
	columns:     []Column{{"GATEWAYS", "spec.gateways"}, {"HOSTS", "spec.hosts"}},
	expressions: []string{"regex", "uriRegexRewrite.match"},
})

// OwnConnections is the name under which VirtualServices are found with routes
// for TLS or TCP that not every proxy has.
const OwnConnections = "connections:own"

// DefaultConnections is the name under which other VirtualServices with such routes are found that
// do not say where they are exported to: not every proxy has them if the mesh's default says so.
const DefaultConnections = "connections:default"

// Elsewhere and its namespace are the name under which VirtualServices are found that may lead sidecars to services of
// other namespaces: who imports the VirtualServices of its namespace does not import these services by that.
const Elsewhere = "elsewhere:"

// leadsElsewhere reports whether a destination may be a service of another namespace.
func leadsElsewhere(namespace string, s *networking.VirtualService) bool {
	if len(s.GetGateways()) > 0 && !slices.Contains(s.GetGateways(), "mesh") {
		return false
	}
	for host := range analysis.Hosts(namespace, s) {
		if of, named := host.Namespace(); !named || of != namespace {
			return true
		}
	}
	return slices.ContainsFunc(s.GetHttp(), func(r *networking.HTTPRoute) bool { return r.GetDelegate() != nil })
}

// hasOwnConnections reports whether routes for TLS or TCP are not exported to
// everyone, or look at the source.
func hasOwnConnections(s *networking.VirtualService) bool {
	own := len(s.GetExportTo()) > 0 && !slices.Contains(s.GetExportTo(), "*")
	for _, route := range s.GetTls() {
		for _, m := range route.GetMatch() {
			own = own || len(m.GetSourceLabels()) > 0 || m.GetSourceNamespace() != ""
		}
	}
	for _, route := range s.GetTcp() {
		for _, m := range route.GetMatch() {
			own = own || len(m.GetSourceLabels()) > 0 || m.GetSourceNamespace() != ""
		}
	}
	return own && len(s.GetTls())+len(s.GetTcp()) > 0
}

// gateways names gateways other than the mesh itself: NAMESPACE/NAME, or NAME of
// the object's own namespace.
func (d Decoded) gateways(in []string) []string {
	var out []string
	for _, ref := range in {
		namespace, name, found := strings.Cut(ref, "/")
		if !found {
			namespace, name = d.Key.Namespace, ref
		}
		if namespace == "." {
			namespace = d.Key.Namespace
		}
		if ref != "mesh" {
			out = append(out, GatewayName(namespace, name))
		}
	}
	return out
}

func sourceLabels(s *networking.VirtualService, add func(map[string]string)) {
	for _, route := range s.GetHttp() {
		for _, m := range route.GetMatch() {
			add(m.GetSourceLabels())
		}
	}
	for _, route := range s.GetTls() {
		for _, m := range route.GetMatch() {
			add(m.GetSourceLabels())
		}
	}
	for _, route := range s.GetTcp() {
		for _, m := range route.GetMatch() {
			add(m.GetSourceLabels())
		}
	}
}
