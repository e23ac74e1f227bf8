package node

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/federation"
)

// atNoPort is the port of hosts that are imported and that captured connections do not reach.
const atNoPort = "0"

// IsBound reports whether an egress listener is one at an address of its own: it has a bind, or connections are
// not redirected to it.
func IsBound(l *networking.IstioEgressListener, uncaptured bool) bool {
	if l.GetPort() == nil {
		return false
	}
	at, err := netip.ParseAddr(l.GetBind())
	return AtRealPort(l, uncaptured) || l.GetBind() != "" && (err != nil || !at.IsUnspecified())
}

// AtRealPort reports whether the workload dials the listener itself: no redirection leads to it.
func AtRealPort(l *networking.IstioEgressListener, uncaptured bool) bool {
	switch l.GetCaptureMode() {
	case networking.CaptureMode_NONE:
		return true
	case networking.CaptureMode_IPTABLES:
		return false
	}
	return uncaptured || strings.HasPrefix(l.GetBind(), "unix:")
}

// boundOf names the Sidecar that has such listeners: NAMESPACE/NAME; empty: it has none.
func boundOf(n Node, o *federation.Object) string {
	bound := func(l *networking.IstioEgressListener) bool { return IsBound(l, !n.Capture) }
	if n.GRPC || !slices.ContainsFunc(o.Spec.(*networking.Sidecar).GetEgress(), bound) {
		return ""
	}
	return o.Key.Namespace + "/" + o.Key.Name
}

// Narrowed is the facet of one egress listener: of what the Sidecar imports, its hosts alone are exposed,
// at each port. The others can be destinations of routes.
func (f Facet) Narrowed(l *networking.IstioEgressListener) Facet {
	included, excluded := egressHosts(l.GetHosts(), f.Namespace)
	lists := []string{egressList(append(included, excluded...))}
	others := f.Egress
	if others == "" {
		others = "*/*"
	}
	for list := range strings.SplitSeq(others, ";") {
		if !strings.HasPrefix(list, throughRoutes+":") {
			_, hosts, _ := portOfList(list)
			list = atNoPort + ":" + hosts
		}
		lists = append(lists, list)
	}
	f.Egress = strings.Join(lists, ";")
	return f
}

// egressOf is what the Sidecar imports for a proxy of the namespace. A Sidecar
// without egress imports everything. What a listener excludes is not imported by
// that listener; another one may import it.
func egressOf(n Node, o *federation.Object) string {
	spec := o.Spec.(*networking.Sidecar)
	if len(spec.GetEgress()) == 0 {
		return ""
	}
	var plain, lists, ofPorts, hidden []string
	if proxy := spec.GetOutboundTrafficPolicy().GetEgressProxy(); proxy != nil {
		hidden = append(hidden, atNoPort+":*/"+string(federation.ResolveHost(proxy.GetHost(), o.Key.Namespace)))
	}
	for _, listener := range spec.GetEgress() {
		included, excluded := egressHosts(listener.GetHosts(), n.Namespace)
		switch port := exposedPort(listener); {
		case IsBound(listener, !n.Capture) && !n.GRPC:
			hidden = append(hidden, atNoPort+":"+egressList(append(included, excluded...)))
		case port != 0:
			ofPorts = append(ofPorts, fmt.Sprintf("%d:%s", port, egressList(append(included, excluded...))))
		case len(included) == 0:
		case len(excluded) == 0:
			plain = append(plain, included...)
		default:
			lists = append(lists, egressList(append(included, excluded...)))
		}
	}
	if slices.Contains(plain, "*/*") {
		if len(ofPorts) == 0 {
			return ""
		}
		plain, hidden = []string{"*/*"}, nil
	}
	if len(plain) > 0 {
		lists = append([]string{egressList(plain)}, lists...)
	}
	lists = append(append(lists, ofPorts...), hidden...)
	if len(lists) == 0 {
		return "~*/*" // nothing
	}
	return strings.Join(lists, ";")
}

// exposedPort is the port for which the listener is; 0: it is for all that have none of their own.
// Services have nothing to do with the port of an explicit HTTP proxy.
func exposedPort(listener *networking.IstioEgressListener) uint16 {
	number := listener.GetPort().GetNumber()
	if strings.EqualFold(listener.GetPort().GetProtocol(), "HTTP_PROXY") || number != uint32(uint16(number)) {
		return 0
	}
	return uint16(number)
}

// egressHosts reads NAMESPACE/HOST; a namespace after ~ excludes, ~ alone from all of
// them.
func egressHosts(hosts []string, own string) (included, excluded []string) {
	for _, text := range hosts {
		namespace, name, ok := strings.Cut(text, "/")
		if !ok {
			namespace, name = "*", text
		}
		namespace, excludes := strings.CutPrefix(namespace, "~")
		switch namespace {
		case ".":
			namespace = own
		case "":
			namespace = "*"
		}
		if host := namespace + "/" + strings.ToLower(name); excludes {
			excluded = append(excluded, "~"+host)
		} else {
			included = append(included, host)
		}
	}
	return included, excluded
}

func egressList(hosts []string) string {
	slices.Sort(hosts)
	return strings.Join(slices.Compact(hosts), ",")
}
