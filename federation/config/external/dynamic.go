package external

import (
	"strings"

	"isthmus.dev/isthmus/federation"
	networking "istio.io/api/networking/v1"
)

// isDynamic reports whether proxies resolve the names for which callers ask. The entry then says
// nothing but which names and ports these may be.
func (r *Reading) isDynamic() bool { return r.resolution == federation.DynamicDNS }

// ignoreAddresses says that the addresses have no effect: callers are told apart by the names.
func (r *Reading) ignoreAddresses(e Entry, n *objectProblems) {
	if len(e.Spec.GetAddresses()) > 0 {
		n.Add(federation.CodeNotHonoured, "spec.addresses",
			"with the resolution DYNAMIC_DNS the name that callers ask for decides, not the address; the addresses are not used")
	}
}

// takesDynamic reports whether connections to the port say for which name they are.
func (r *Reading) takesDynamic(field string, p *networking.ServicePort, n *objectProblems) bool {
	protocol := federation.ParseProtocol(p.GetProtocol())
	if p.GetProtocol() == "" || !protocol.IsHTTP() && protocol != federation.TLS && protocol != federation.HTTPS {
		n.Add(federation.CodeNotHonoured, field+".protocol",
			"DYNAMIC_DNS resolves the host of requests and the server name of TLS, which connections to a port with the protocol %s do not have; "+
				"the port is excluded, use HTTP, HTTP2, GRPC, HTTPS or TLS", federation.Quote(p.GetProtocol()))
		return false
	}
	if target := p.GetTargetPort(); target != 0 && target != p.GetNumber() {
		n.Add(federation.CodeNotHonoured, field+".targetPort", "with the resolution DYNAMIC_DNS connections go to the port %d; targetPort is not used",
			p.GetNumber())
	}
	return true
}

// targetOf is the port of endpoints that the entry's port names; 0: none.
func (r *Reading) targetOf(p *networking.ServicePort) uint32 {
	if r.isDynamic() {
		return 0
	}
	return p.GetTargetPort()
}

func ignoreMembers(spec *networking.ServiceEntry, n *objectProblems) {
	if len(spec.GetEndpoints()) > 0 {
		n.Add(codeEndpoint, "spec.endpoints",
			"with the resolution DYNAMIC_DNS connections go to the name that callers ask for; the endpoints are not used")
	}
	if spec.GetWorkloadSelector() != nil {
		n.Add(codeEndpoint, "spec.workloadSelector",
			"with the resolution DYNAMIC_DNS connections go to the name that callers ask for; no workload is selected")
	}
}

// usableFor reports whether the host is of the kind that the resolution takes: DNS needs a name to
// resolve, and DYNAMIC_DNS a wildcard that says which names callers may ask for.
func (r *Reading) usableFor(host federation.Hostname, n *objectProblems) bool {
	switch {
	case r.itself && isWildcard(host):
		n.Add(codeWildcard, "spec.hosts",
			"the wildcard %s cannot be resolved and is excluded; name endpoints, or use the resolution NONE or DYNAMIC_DNS",
			federation.Quote(string(host)))
		return false
	case r.isDynamic() && !strings.HasPrefix(string(host), "*."):
		n.Add(federation.CodeNotHonoured, "spec.hosts",
			"the resolution DYNAMIC_DNS is for wildcards such as *.example.com; %s is excluded, use the resolution DNS",
			federation.Quote(string(host)))
		return false
	}
	return true
}
