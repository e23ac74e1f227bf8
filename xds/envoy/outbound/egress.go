package outbound

import (
	"fmt"
	"iter"
	"net/netip"
	"slices"
	"strings"

	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/check"
	"isthmus.dev/isthmus/xds/envoy/facet"
	"isthmus.dev/isthmus/xds/envoy/node"
	"isthmus.dev/isthmus/xds/envoy/resource"
	"isthmus.dev/isthmus/xds/envoy/service"
)

// egress is an egress listener of a Sidecar that is at an address of its own.
type egress struct {
	by     *federation.Object
	index  int
	spec   *networking.IstioEgressListener
	number uint16     // 0: a socket
	at     netip.Addr // invalid: a socket
	path   string     // of the socket; empty: there is none
	dialed bool       // callers dial it themselves; else connections to the address are redirected to it
}

// egressOf are those of the facet's Sidecar, in its order.
func egressOf(v *facet.View) []egress {
	o := node.SidecarIn(v.Facet, v.Reader)
	if o == nil {
		return nil
	}
	spec, _ := o.Spec.(*networking.Sidecar)
	var all []egress
	for i, l := range spec.GetEgress() {
		if node.IsBound(l, v.Facet.Uncaptured) {
			all = append(all, readEgress(o, i, l, node.AtRealPort(l, v.Facet.Uncaptured)))
		}
	}
	return all
}

func readEgress(o *federation.Object, i int, l *networking.IstioEgressListener, dialed bool) egress {
	e := egress{by: o, index: i, spec: l, dialed: dialed}
	if number := l.GetPort().GetNumber(); number == uint32(uint16(number)) {
		e.number = uint16(number)
	}
	path, isSocket := strings.CutPrefix(l.GetBind(), "unix://")
	switch {
	case isSocket:
		e.path, e.number = path, 0
	case l.GetBind() == "":
		e.at = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	default:
		e.at, _ = netip.ParseAddr(l.GetBind())
	}
	return e
}

// egressNamed finds the listener that the proxies have under the name.
func egressNamed(v *facet.View, name string) (egress, bool) {
	all := egressOf(v)
	i := slices.IndexFunc(all, func(e egress) bool { return e.refusal(v.Facet) == "" && e.name() == name })
	if i < 0 {
		return egress{}, false
	}
	return all[i], true
}

func (e egress) name() string {
	if e.path != "" {
		return e.path
	}
	return resource.VIPListener(e.at, e.number)
}

func (e egress) title() string { return fmt.Sprintf("%s egress[%d]", e.by.Key.Title(), e.index) }

func (e egress) ignored(what string) resource.Reason {
	return resource.Reason{Code: resource.ReasonRuleIgnored, Cause: e.by.Key, Message: e.title() + " " + what}
}

// The ports that the proxies themselves listen at.
const (
	firstOwn = 15000
	lastOwn  = 15099
)

// refusal says why the proxies cannot listen as the Sidecar says; empty: they can.
func (e egress) refusal(f node.Facet) string {
	isSocket := strings.HasPrefix(e.spec.GetBind(), "unix:")
	switch {
	case isSocket && (e.path == "" || resource.ValidateName(e.path) != nil || len(e.path) > check.MaxSocketPath):
		return fmt.Sprintf("%q is not a socket: write unix:///PATH or unix://@NAME, with at most %d bytes", e.spec.GetBind(), check.MaxSocketPath)
	case isSocket && !e.dialed:
		return "what goes to a socket cannot be captured: write captureMode NONE"
	case isSocket:
		return ""
	case !e.at.IsValid() || e.at.Zone() != "":
		return fmt.Sprintf("%q is not an address: write an IP address or unix:///PATH", e.spec.GetBind())
	case e.number == 0:
		return "it has no port"
	case e.number >= firstOwn && e.number <= lastOwn:
		return fmt.Sprintf("the proxy has ports %d to %d itself; write another port", firstOwn, lastOwn)
	case e.number == f.Port && (e.at.IsLoopback() || e.at.IsUnspecified()):
		return "the proxy has its explicit HTTP proxy at this port; write another port"
	case e.dialed && e.takenByIngress(f):
		return "an ingress listener has the same address and port; write another port"
	}
	return ""
}

// takenByIngress reports whether the Sidecar has the proxies listen there for callers. Without a bind these
// listen at the addresses of the workload.
func (e egress) takenByIngress(f node.Facet) bool {
	spec, _ := e.by.Spec.(*networking.Sidecar)
	return slices.ContainsFunc(spec.GetIngress(), func(in *networking.IstioIngressListener) bool {
		bound := in.GetCaptureMode() == networking.CaptureMode_NONE || in.GetCaptureMode() == networking.CaptureMode_DEFAULT && f.Uncaptured
		at, err := netip.ParseAddr(in.GetBind())
		same := at == e.at || err != nil && !e.at.IsLoopback()
		return bound && in.GetPort().GetNumber() == uint32(e.number) && same
	})
}

// anyPort reports whether the requests tell which port of their host they want.
func (e egress) anyPort() bool { return e.number == 0 || e.isProxy() }

func (e egress) isProxy() bool {
	return strings.EqualFold(e.spec.GetPort().GetProtocol(), "HTTP_PROXY")
}

// requests reports whether the listener routes requests, not connections. Without a protocol that depends on its hosts.
func (e egress) requests(v *facet.View) bool {
	name := e.spec.GetPort().GetProtocol()
	if name != "" {
		return e.isProxy() || federation.ParseProtocol(name).IsHTTP()
	}
	for p := range e.served(e.view(v)) {
		if p.Port.Protocol.IsHTTP() {
			return true
		}
	}
	return false
}

// web reports whether the listener translates gRPC-Web.
func (e egress) web(v *facet.View) bool {
	if name := e.spec.GetPort().GetProtocol(); name != "" {
		return federation.ParseProtocol(name) == federation.GRPCWeb
	}
	for p := range e.served(v) {
		if p.Port.Protocol == federation.GRPCWeb {
			return true
		}
	}
	return false
}

// served are the ports to which the listener may lead, in the order of hostnames: those of its number, or the lowest
// one of each host if it has none. Who dials the listener cannot say which instance of a service they want.
func (e egress) served(v *facet.View) iter.Seq[service.ServedPort] {
	services := v.Reader.Specs()
	if e.number != 0 {
		services = v.Reader.SpecsOnPort(e.number)
	}
	return func(yield func(service.ServedPort) bool) {
		for group := range service.ByHostname(services) {
			numbers := []uint16{e.number}
			if e.number == 0 {
				numbers = service.PortNumbers(group)
			}
			if len(numbers) == 0 {
				continue
			}
			owner, _ := service.OwnerAmong(v, v.Reader.ByHostname(group[0].Key.Hostname), slices.Min(numbers))
			if owner.Service == nil || !v.Exposes(owner.Service, owner.Port.Number) || service.IsAlias(v, owner.Service) {
				continue
			}
			if e.dialed && owner.Service.Resolution == federation.Passthrough {
				v.LeaveOut(e.ignored("does not lead to " + owner.Service.Key.String() +
					": its callers choose the instance by address; call it directly"))
				continue
			}
			if !yield(owner) {
				return
			}
		}
	}
}
