package inbound

import (
	"fmt"

	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/facet"
	"isthmus.dev/isthmus/xds/envoy/node"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

// port is one of the workload's: what it speaks, and how the proxy deals with what arrives.
type port struct {
	protocol portProtocol
	by       *federation.Object                 // the Sidecar that says so; nil: it follows from services alone
	ingress  *networking.IstioIngressListener   // of the Sidecar; nil: the port of a service
	limits   *networking.ConnectionPoolSettings // nil: none
	bound    bool                               // it has a listener of its own, bound to it
	services []federation.ServiceKey            // those of the workload at the port, for proxies that count
}

// plainly reports whether what arrives passes as on a port of which nothing is known.
func (p port) plainly() bool {
	return p.protocol == bytes && p.cluster(0) == resource.InboundPassthroughCluster && p.ingress.GetTls() == nil
}

// cluster is where requests and connections to the port go. Istio's filters know by the cluster which service was called.
func (p port) cluster(number uint16) string {
	if p.limits == nil && !p.bound && p.ingress.GetDefaultEndpoint() == "" && len(p.services) == 0 {
		return resource.InboundPassthroughCluster
	}
	return resource.InboundClusterName(number)
}

// workload is what is behind the proxies.
type workload struct {
	ports map[uint16]port
	vain  []resource.Reason // what a Sidecar says in vain
}

// workloadOf has the ports of the workload's services, or those that a Sidecar lists.
func workloadOf(v *facet.View) workload {
	o := node.SidecarIn(v.Facet, v.Reader)
	if o == nil {
		return workload{ports: portsOfServices(v)}
	}
	spec, _ := o.Spec.(*networking.Sidecar)
	if len(spec.GetIngress()) > 0 {
		return listed(v, o, spec)
	}
	if v.Facet.Uncaptured {
		return workload{}
	}
	ports := portsOfServices(v)
	for number, p := range ports {
		p.by, p.limits = o, spec.GetInboundConnectionPool()
		ports[number] = p
	}
	return workload{ports: ports}
}

// listed has the ports of the Sidecar; on others everything passes as it is.
func listed(v *facet.View, o *federation.Object, spec *networking.Sidecar) workload {
	w := workload{ports: map[uint16]port{}}
	var ofServices map[uint16]port
	if v.Facet.Stats {
		ofServices = portsOfServices(v)
	}
	for i, in := range spec.GetIngress() {
		p := port{protocol: listenerProtocol(v, in), by: o, ingress: in, limits: in.GetConnectionPool(), bound: bound(v.Facet, in)}
		if p.limits == nil {
			p.limits = spec.GetInboundConnectionPool()
		}
		say := func(what string) {
			w.vain = append(w.vain, resource.Reason{
				Code: resource.ReasonRuleIgnored, Cause: o.Key,
				Message: fmt.Sprintf("%s ingress[%d] %s", o.Key.Title(), i, what),
			})
		}
		number := uint16(in.GetPort().GetNumber())
		if uint32(number) != in.GetPort().GetNumber() {
			number = 0
		}
		why := p.refusal(v.Facet, number)
		if why != "" {
			say("is excluded: " + why)
			continue
		}
		if in.GetBind() != "" && !p.bound {
			say("has no bind where connections are redirected to the proxy: they come to every address")
		}
		p.services = ofServices[number].services
		w.ports[number] = p
	}
	return w
}

// listenerProtocol is what the Sidecar says. HTTPS is TLS, until the listener ends it.
func listenerProtocol(v *facet.View, in *networking.IstioIngressListener) portProtocol {
	name := in.GetPort().GetProtocol()
	return protocolOf(v, federation.ServicePort{Protocol: federation.ParseProtocol(name), Undeclared: name == ""})
}

// bound reports whether the proxies listen at the port themselves.
func bound(f node.Facet, in *networking.IstioIngressListener) bool {
	switch in.GetCaptureMode() {
	case networking.CaptureMode_NONE:
		return true
	case networking.CaptureMode_IPTABLES:
		return false
	}
	return f.Uncaptured
}
