package kubernetes

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"isthmus.dev/isthmus/federation"
)

const labelNetwork = "topology.istio.io/network"

// slice is what the registry keeps of an EndpointSlice. A slice of no service
// keeps nothing but its name.
type slice struct {
	record
	service   string // in the slice's own namespace; "" is an orphan
	network   federation.NetworkID
	ports     []federation.EndpointPort
	endpoints []sliceEndpoint
}

// sliceEndpoint is an endpoint whose address is valid.
type sliceEndpoint struct {
	ip          netip.Addr
	place       int // in the slice, for messages
	ready       bool
	serving     bool
	terminating bool
	hostname    string
	pod         string // name of the pod in the slice's own namespace
	podUID      string
	node        string
	zone        string
}

func (s *slice) owner() key { return key{Namespace: s.k.Namespace, Name: s.service} }

// parseSlice translates all that the EndpointSlice says itself.
func parseSlice(in *discoveryv1.EndpointSlice) *slice {
	out := &slice{service: in.Labels[discoveryv1.LabelServiceName]}
	out.record = record{k: key{Namespace: in.Namespace, Name: in.Name}, version: in.ResourceVersion}
	if out.service == "" {
		return out
	}
	n := problemsOf("EndpointSlice", out.k)
	if in.AddressType != discoveryv1.AddressTypeIPv4 && in.AddressType != discoveryv1.AddressTypeIPv6 {
		n.Add(codeAddressType, "addressType", "%s is not used; write IPv4 or IPv6 addresses, or a Service of type ExternalName",
			federation.Quote(string(in.AddressType)))
		out.problems = n.All()
		return out
	}
	out.network = network(in.Labels[labelNetwork], "metadata.labels["+labelNetwork+"]", &n)
	out.ports = slicePorts(in.Ports, &n)
	for i := range in.Endpoints {
		if e, ok := out.endpoint(&in.Endpoints[i], index("endpoints", i), in.AddressType, &n); ok {
			e.place = i
			out.endpoints = append(out.endpoints, e)
		}
	}
	out.problems = n.All()
	return out
}

// endpoint takes the first address, as kube-proxy does; all of one entry are
// the same endpoint.
func (s *slice) endpoint(in *discoveryv1.Endpoint, field string, family discoveryv1.AddressType, n *objectProblems) (sliceEndpoint, bool) {
	if len(in.Addresses) == 0 {
		n.Add(codeAddress, field+".addresses", "it is empty; this endpoint is excluded")
		return sliceEndpoint{}, false
	}
	ip, err := federation.ParseIP(in.Addresses[0])
	switch {
	case err != nil:
		n.Add(codeAddress, field+".addresses[0]", "%s is %v; this endpoint is excluded", federation.Quote(in.Addresses[0]), err)
		return sliceEndpoint{}, false
	case ip.Is4() != (family == discoveryv1.AddressTypeIPv4):
		n.Add(codeAddress, field+".addresses[0]", "%s is no %s address; this endpoint is excluded", ip, family)
		return sliceEndpoint{}, false
	}
	ready := value(in.Conditions.Ready, true)
	e := sliceEndpoint{
		ip:          ip,
		ready:       ready,
		serving:     value(in.Conditions.Serving, ready),
		terminating: value(in.Conditions.Terminating, false),
		hostname:    value(in.Hostname, ""),
		node:        value(in.NodeName, ""),
		zone:        place(value(in.Zone, ""), field+".zone", n),
	}
	e.target(in.TargetRef, s.k.Namespace, field, n)
	return e, true
}

func (e *sliceEndpoint) target(ref *corev1.ObjectReference, namespace, field string, n *objectProblems) {
	if ref == nil || ref.Kind != "Pod" || ref.Name == "" {
		return
	}
	if ref.Namespace != "" && ref.Namespace != namespace {
		n.Add(codeTarget, field+".targetRef.namespace",
			"%s is not the slice's own namespace; labels and service account of that pod are not used", federation.Quote(ref.Namespace))
		return
	}
	e.pod, e.podUID = ref.Name, string(ref.UID)
}

func (e *sliceEndpoint) health(publishNotReady bool) federation.Health {
	switch {
	case e.ready, publishNotReady && !e.terminating:
		return federation.Healthy
	case e.serving && e.terminating:
		return federation.Draining
	}
	return federation.Unhealthy
}

// slicePorts keeps the usable ports; the others are quarantined one by one
// (B-O1).
func slicePorts(in []discoveryv1.EndpointPort, n *objectProblems) []federation.EndpointPort {
	var out []federation.EndpointPort
	seen := map[string]bool{}
	for i, p := range in {
		field := index("ports", i)
		name := value(p.Name, "")
		transport := value(p.Protocol, corev1.ProtocolTCP)
		if transport != corev1.ProtocolTCP && transport != corev1.ProtocolUDP {
			continue // the service's port says it
		}
		if p.Port == nil {
			n.Add(codePort, field+".port", "it has no number; this port is excluded")
			continue
		}
		number, ok := federation.PortNumber(*p.Port)
		switch {
		case !ok:
			n.Add(codePort, field+".port", "%d is not a port number (1 to 65535); this port is excluded", *p.Port)
		case name == "" && len(in) > 1:
			n.Add(codePort, field+".name", "a slice with several ports must name each; this port is excluded")
		case seen[name]:
			n.Add(codePort, field+".name", "%s was used before in this slice; this port is excluded", federation.Quote(name))
		default:
			seen[name] = true
			out = append(out, federation.EndpointPort{Name: name, Number: number})
		}
	}
	return out
}

func value[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}
