// Package external turns ServiceEntries and WorkloadEntries into services and
// workloads: it is the registry of what runs outside of every attached cluster
// (seeds 1.14). All of it is pure, so that a dry run and its publication are the
// same functions. Objects come validated; what is unusable all the same is a
// problem and never half applied.
package external

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"
	"time"

	"isthmus.dev/isthmus/federation"
	networking "istio.io/api/networking/v1"
)

// labelAllocate with the value "false" keeps an entry from automatic VIPs.
const labelAllocate = "networking.istio.io/enable-autoallocate-ip"

// Entry is a ServiceEntry as it is stored. It is only read.
type Entry struct {
	Key     federation.ObjectKey
	Created time.Time
	Labels  map[string]string
	Spec    *networking.ServiceEntry
}

// Reading is a ServiceEntry as it was understood, for all of its hosts. It is
// never changed.
type Reading struct {
	key        federation.ObjectKey
	created    time.Time
	labels     map[string]string
	hosts      []federation.Hostname
	resolution federation.Resolution
	internal   bool
	exportTo   []string
	accounts   []string
	vips       []netip.Prefix
	automatic  bool // wants VIPs from allocations
	ports      []federation.Port
	served     []federation.EndpointPort // where workloads listen for the ports unless they say so themselves
	endpoints  []federation.Endpoint
	itself     bool // each host is its own endpoint
	selector   map[string]string
}

// Services are the keys of the services to which the entry contributes.
func (r *Reading) Services() []federation.ServiceKey {
	keys := make([]federation.ServiceKey, len(r.hosts))
	for i, host := range r.hosts {
		keys[i] = federation.ServiceKey{Hostname: host, Namespace: r.key.Namespace}
	}
	return keys
}

func (r *Reading) isDNS() bool {
	return r.resolution == federation.DNSLB || r.resolution == federation.DNSRoundRobinLB
}

// compare orders the older entry first; its word holds where two disagree.
func (r *Reading) compare(o *Reading) int {
	return cmp.Or(r.created.Compare(o.created), r.key.Compare(o.key))
}

// Read understands an entry, apart from what it says about a single host. Without
// a Reading nothing of the entry can be used.
func Read(e Entry) (*Reading, []federation.Problem) {
	n := problemsOf(e.Key)
	if e.Spec == nil {
		n.Add(federation.CodeNotHonoured, "spec", "the entry has no spec; give it hosts")
		return nil, n.All()
	}
	r := &Reading{
		key: e.Key, created: e.Created, labels: e.Labels, hosts: readHosts(e.Spec.GetHosts()),
		internal: e.Spec.GetLocation() == networking.ServiceEntry_MESH_INTERNAL,
		exportTo: e.Spec.GetExportTo(), accounts: e.Spec.GetSubjectAltNames(),
	}
	if !r.readResolution(e.Spec.GetResolution(), n) {
		return nil, n.All()
	}
	r.readAddresses(e, n)
	r.readPorts(e.Spec.GetPorts(), n)
	r.readMembers(e.Spec, n)
	return r, n.All()
}

func readHosts(in []string) []federation.Hostname {
	var hosts []federation.Hostname
	for _, h := range in {
		if host := federation.Hostname(strings.ToLower(h)); !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
	}
	return hosts
}

func (r *Reading) readResolution(in networking.ServiceEntry_Resolution, n *objectProblems) bool {
	switch in {
	case networking.ServiceEntry_NONE:
		r.resolution = federation.Passthrough
	case networking.ServiceEntry_STATIC:
		r.resolution = federation.ClientSideLB
	case networking.ServiceEntry_DNS:
		r.resolution = federation.DNSLB
	case networking.ServiceEntry_DNS_ROUND_ROBIN:
		r.resolution = federation.DNSRoundRobinLB
	case networking.ServiceEntry_DYNAMIC_DNS:
		r.resolution = federation.DynamicDNS
	default:
		n.Add(federation.CodeNotHonoured, "spec.resolution",
			"the resolution %s is not supported and the entry is ignored; use NONE, STATIC, DNS, DNS_ROUND_ROBIN or DYNAMIC_DNS", in)
		return false
	}
	return true
}

func (r *Reading) readAddresses(e Entry, n *objectProblems) {
	if r.isDynamic() {
		r.ignoreAddresses(e, n)
		return
	}
	for i, text := range e.Spec.GetAddresses() {
		prefix, err := parsePrefix(text)
		switch {
		case err != nil:
			n.Add(codeAddress, at("spec.addresses", i), "%s is not an IP address or CIDR block; it is excluded", federation.Quote(text))
		case !prefix.IsSingleIP() && r.isDNS():
			n.Add(codeAddress, at("spec.addresses", i), "a CIDR block needs the resolution NONE or STATIC; %s is excluded", prefix)
		case !slices.Contains(r.vips, prefix):
			r.vips = append(r.vips, prefix)
		}
	}
	r.automatic = len(e.Spec.GetAddresses()) == 0 && r.resolution != federation.Passthrough && e.Labels[labelAllocate] != "false"
}

// parsePrefix reads an address as a prefix of full length.
func parsePrefix(text string) (netip.Prefix, error) {
	if !strings.Contains(text, "/") {
		ip, err := federation.ParseIP(text)
		return netip.PrefixFrom(ip, ip.BitLen()), err
	}
	prefix, err := netip.ParsePrefix(text)
	if err != nil {
		return netip.Prefix{}, err
	}
	return prefix.Masked(), nil
}

func (r *Reading) readPorts(in []*networking.ServicePort, n *objectProblems) {
	for i, p := range in {
		number, ok := federation.PortNumber(p.GetNumber())
		if !ok {
			n.Add(codePort, at("spec.ports", i)+".number", "%d is not a port number; the port is excluded, use 1 to 65535", p.GetNumber())
			continue
		}
		if r.isDynamic() && !r.takesDynamic(at("spec.ports", i), p, n) {
			continue
		}
		protocol := federation.ParseProtocol(p.GetProtocol())
		if protocol == federation.Unsupported {
			n.Add(codeProtocol, at("spec.ports", i)+".protocol",
				"protocol %s is not known and the port is treated as TCP; use HTTP, HTTPS, GRPC, HTTP2, MONGO, TCP, TLS or UDP",
				federation.Quote(p.GetProtocol()))
			protocol = federation.TCP
		}
		undeclared := p.GetProtocol() == "" && federation.MayDetect(number)
		if r.isTaken(number, protocol, undeclared) {
			n.Add(codeReserved, at("spec.ports", i)+".number", "sidecars, or Istio's agents beside them, listen at port %d themselves: "+
				"what is sent to it there is not routed; use another port", number)
		}
		target, ok := federation.PortNumber(cmp.Or(r.targetOf(p), p.GetNumber()))
		if !ok {
			target = number
			n.Add(codePort, at("spec.ports", i)+".targetPort", "%d is not a port number; %d is used", p.GetTargetPort(), number)
		}
		port := federation.Port{Name: p.GetName(), Number: number, Protocol: protocol, Undeclared: undeclared}
		if r.resolution == federation.Passthrough && p.GetTargetPort() != 0 {
			port.Target = target // also if it is the number: a route of another port may lead here
		}
		r.ports = append(r.ports, port)
		r.served = append(r.served, federation.EndpointPort{Name: p.GetName(), Number: target})
	}
}

// isTaken reports whether sidecars would need a listener for the port at every address, where they have one of their own.
func (r *Reading) isTaken(number uint16, protocol federation.Protocol, undeclared bool) bool {
	ranges := func(vip netip.Prefix) bool { return !vip.IsSingleIP() }
	everywhere := len(r.vips) == 0 || slices.ContainsFunc(r.vips, ranges) // an automatic VIP is for proxies that capture DNS
	return federation.TakenBySidecars(number, true) && protocol.Transport() == federation.TransportTCP &&
		(protocol.IsHTTP() || undeclared || everywhere)
}

// target is where a workload listens for the port of that name unless it says so
// itself.
func (r *Reading) target(name string) (uint16, bool) {
	e := federation.Endpoint{Ports: r.served}
	return e.Port(name)
}

// targetPorts are the targets by the names of ports.
func (r *Reading) targetPorts() map[string]uint16 {
	all := make(map[string]uint16, len(r.served))
	for _, p := range r.served {
		all[p.Name] = p.Number
	}
	return all
}

// readMembers reads who serves: endpoints, a selector, or each host itself.
func (r *Reading) readMembers(spec *networking.ServiceEntry, n *objectProblems) {
	if r.isDynamic() {
		ignoreMembers(spec, n)
		return
	}
	inline, selector := spec.GetEndpoints(), spec.GetWorkloadSelector().GetLabels()
	switch {
	case len(inline) > 0 && spec.GetWorkloadSelector() != nil:
		n.Add(codeEndpoint, "spec.workloadSelector", "an entry has either endpoints or a workloadSelector; the endpoints are used")
	case len(selector) > 0:
		r.selector = selector
	case spec.GetWorkloadSelector() != nil:
		n.Add(codeEndpoint, "spec.workloadSelector.labels", "a workloadSelector without labels selects nothing; name at least one label")
	}
	if len(inline) > 0 && r.resolution == federation.Passthrough {
		n.Add(codeEndpoint, "spec.endpoints",
			"with the resolution NONE callers go to the address that they asked for; the endpoints are not used")
		return
	}
	r.itself = r.isDNS() && len(inline) == 0 && spec.GetWorkloadSelector() == nil
	for i, in := range inline {
		e, ok := r.readEndpoint(in, at("spec.endpoints", i), n)
		if !ok {
			continue
		}
		if r.resolution == federation.DNSRoundRobinLB && len(r.endpoints) == 1 {
			n.Add(codeEndpoint, at("spec.endpoints", i), "the resolution DNS_ROUND_ROBIN takes one endpoint; this one is not used")
			continue
		}
		r.endpoints = append(r.endpoints, e)
	}
	r.endpoints = federation.NormalEndpoints(slices.Clip(r.endpoints))
}
