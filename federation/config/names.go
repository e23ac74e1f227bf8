package config

import (
	"maps"
	"slices"
	"strings"

	"isthmus.dev/isthmus/federation"
	networking "istio.io/api/networking/v1"
	networkingalpha "istio.io/api/networking/v1alpha3"
	selection "istio.io/api/type/v1beta1"
	gateway "sigs.k8s.io/gateway-api/apis/v1"
)

// GatewayName is the name under which routes that attach to a gateway are
// found.
func GatewayName(namespace, name string) string { return "gateway:" + namespace + "/" + name }

// ParseGatewayName reads what GatewayName writes; ok is false for other names.
func ParseGatewayName(text string) (key federation.ObjectKey, ok bool) {
	text, ok = strings.CutPrefix(text, "gateway:")
	namespace, name, _ := strings.Cut(text, "/")
	return federation.ObjectKey{Group: "networking.istio.io", Kind: "Gateway", Namespace: namespace, Name: name}, ok
}

// ExportName is the name under which DestinationRules are found that are
// exported to the namespace by its name.
func ExportName(namespace string) string { return "export:" + namespace }

func exports(to []string) []string {
	var out []string
	for _, namespace := range to {
		if namespace != "*" && namespace != "." && namespace != "~" {
			out = append(out, ExportName(namespace))
		}
	}
	return out
}

// OwnConnections is the name under which VirtualServices are found with routes
// for TLS or TCP that not every proxy has.
const OwnConnections = "connections:own"

// hasOwnConnections tells that routes for TLS or TCP are not exported to
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

// names finds the names under which readers look for an object.
type names struct {
	key    federation.ObjectKey
	domain string
}

// of returns each name once.
func (n names) of(spec any) []string {
	var found []string
	switch s := spec.(type) {
	case *networking.VirtualService:
		found = append(n.hosts(s.GetHosts()), n.gateways(s.GetGateways())...)
		if hasOwnConnections(s) {
			found = append(found, OwnConnections)
		}
	case *networking.DestinationRule:
		found = append(n.hosts([]string{s.GetHost()}), exports(s.GetExportTo())...)
	case *networking.ServiceEntry:
		for _, host := range s.GetHosts() {
			found = append(found, strings.ToLower(host))
		}
	case *federation.ServiceBinding:
		found = n.hosts([]string{string(s.Hostname)})
	case *gateway.HTTPRouteSpec:
		found = n.route(s.Hostnames, s.ParentRefs)
	case *gateway.GRPCRouteSpec:
		found = n.route(s.Hostnames, s.ParentRefs)
	case *gateway.TLSRouteSpec:
		found = n.route(s.Hostnames, s.ParentRefs)
	case *gateway.TCPRouteSpec:
		found = n.route(nil, s.ParentRefs)
	case *gateway.UDPRouteSpec:
		found = n.route(nil, s.ParentRefs)
	}
	var once []string
	for _, name := range found {
		if name != "" && !slices.Contains(once, name) {
			once = append(once, name)
		}
	}
	return once
}

func (n names) hosts(in []string) []string {
	out := make([]string, len(in))
	for i, host := range in {
		out[i] = string(federation.ResolveHostIn(n.domain, host, n.key.Namespace))
	}
	return out
}

// gateways names gateways other than the mesh itself: NAMESPACE/NAME, or NAME of
// the object's own namespace.
func (n names) gateways(in []string) []string {
	var out []string
	for _, ref := range in {
		namespace, name, found := strings.Cut(ref, "/")
		if !found {
			namespace, name = n.key.Namespace, ref
		}
		if namespace == "." {
			namespace = n.key.Namespace
		}
		if ref != "mesh" {
			out = append(out, GatewayName(namespace, name))
		}
	}
	return out
}

// route names the hosts of a route, the gateways that it attaches to, and the
// services for which it speaks.
func (n names) route(hosts []gateway.Hostname, parents []gateway.ParentReference) []string {
	var out []string
	for _, host := range hosts {
		out = append(out, strings.ToLower(string(host)))
	}
	for _, p := range parents {
		namespace := n.key.Namespace
		if p.Namespace != nil {
			namespace = string(*p.Namespace)
		}
		switch {
		case p.Kind == nil || *p.Kind == "Gateway":
			out = append(out, GatewayName(namespace, string(p.Name)))
		case *p.Kind == "Service":
			out = append(out, string(federation.ResolveHostIn(n.domain, string(p.Name), namespace)))
		}
	}
	return out
}

// selecting are the policies that choose workloads by labels.
type selecting interface {
	GetSelector() *selection.WorkloadSelector
}

// proxyLabels are the keys of a proxy's labels that decide about the object,
// sorted.
func proxyLabels(spec any) []string {
	keys := map[string]bool{}
	add := func(labels map[string]string) {
		for key := range labels {
			keys[key] = true
		}
	}
	switch s := spec.(type) {
	case *networking.VirtualService:
		sourceLabels(s, add)
	case *networking.Gateway:
		add(s.GetSelector())
	case *networking.Sidecar:
		add(s.GetWorkloadSelector().GetLabels())
	case *networkingalpha.EnvoyFilter:
		add(s.GetWorkloadSelector().GetLabels())
	case *networking.DestinationRule:
		add(s.GetWorkloadSelector().GetMatchLabels())
	case selecting:
		add(s.GetSelector().GetMatchLabels())
	}
	return slices.Sorted(maps.Keys(keys))
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
