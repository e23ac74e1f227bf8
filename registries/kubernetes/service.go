package kubernetes

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"isthmus.dev/isthmus/federation"
)

const (
	annotationExportTo     = "networking.istio.io/exportTo"
	annotationDistribution = "networking.istio.io/traffic-distribution"
	// mostExportTo bounds the annotation, in bytes.
	mostExportTo = 16 << 10
)

type key = types.NamespacedName

// service is what the registry keeps of a Service.
type service struct {
	record
	service  federation.ServiceKey
	shard    federation.Shard // without endpoints, but for ExternalName
	notReady bool             // publishNotReadyAddresses
	// byNamespace: the service says nothing of the distribution of its traffic.
	byNamespace bool
}

// parseService translates all that the Service says itself. domain is the
// cluster's DNS suffix.
func parseService(in *corev1.Service, domain string) *service {
	k := key{Namespace: in.Namespace, Name: in.Name}
	n := problemsOf("Service", k)
	host := strings.ToLower(in.Name + "." + in.Namespace + ".svc." + domain)
	out := &service{
		service:  federation.ServiceKey{Hostname: federation.Hostname(host), Namespace: in.Namespace},
		notReady: in.Spec.PublishNotReadyAddresses,
		shard: federation.Shard{
			Ports:           servicePorts(in.Spec.Ports, &n),
			ExportTo:        exportTo(in.Annotations[annotationExportTo], &n),
			ServiceAccounts: accounts(in.Namespace, in.Annotations, &n),
			Created:         in.CreationTimestamp.UTC(),
			UID:             string(in.UID),
			Labels:          in.Labels,
		},
	}
	switch {
	case value(in.Spec.TrafficDistribution, "") != "":
		out.shard.TrafficDistribution = distribution(*in.Spec.TrafficDistribution, "spec.trafficDistribution", &n)
	case in.Annotations[annotationDistribution] != "":
		out.shard.TrafficDistribution = annotated(in.Annotations, &n)
	default:
		out.byNamespace = true
	}
	if in.Spec.Type == corev1.ServiceTypeExternalName {
		out.external(in.Spec.ExternalName, &n)
	} else {
		out.addresses(in, &n)
		out.fromOutside(in, &n)
		out.selects(in)
	}
	out.shard.Affinity = affinity(&in.Spec)
	noteUnsupported(in, &n)
	out.record = record{k: k, version: in.ResourceVersion, problems: n.All()}
	return out
}

// noteUnsupported reports what the Service wants and does not get. Callers do not stay on their
// own node, as nodes are not told apart. That a client stays with an endpoint is for
// DestinationRules to say, as in Istio.
func noteUnsupported(in *corev1.Service, n *objectProblems) {
	if policy := in.Spec.InternalTrafficPolicy; policy != nil && *policy == corev1.ServiceInternalTrafficPolicyLocal {
		n.Add(codeInternalPolicy, "spec.internalTrafficPolicy",
			"%s is not supported: callers on every node are sent to the endpoints of all nodes; trafficDistribution keeps them in a zone", *policy)
	}
	if in.Spec.SessionAffinity == corev1.ServiceAffinityClientIP {
		n.Add(codeAffinity, "spec.sessionAffinity",
			"%s is not supported: proxies choose an endpoint for each request or connection; a DestinationRule with consistentHash.useSourceIp keeps clients", in.Spec.SessionAffinity)
	}
}

// defaultAffinity is what Kubernetes means where a Service does not say how long clients stay.
const defaultAffinity = corev1.DefaultClientIPServiceAffinitySeconds

// affinity is for how long clients of the Service stay with an endpoint.
func affinity(in *corev1.ServiceSpec) federation.ClientAffinity {
	if in.SessionAffinity != corev1.ServiceAffinityClientIP {
		return federation.ClientAffinity{}
	}
	seconds := defaultAffinity
	if c := in.SessionAffinityConfig; c != nil && c.ClientIP != nil && value(c.ClientIP.TimeoutSeconds, 0) > 0 {
		seconds = *c.ClientIP.TimeoutSeconds
	}
	return federation.ClientAffinity{Seconds: uint32(seconds)}
}

// distribution is how near the endpoints are to be to their callers.
func distribution(wish, field string, n *objectProblems) string {
	switch wish {
	case "", corev1.ServiceTrafficDistributionPreferClose, corev1.ServiceTrafficDistributionPreferSameZone:
	case corev1.ServiceTrafficDistributionPreferSameNode:
		n.Add(codeDistribute, field, "nodes are not told apart: %s is taken as PreferSameZone", wish)
	default:
		n.Add(codeDistribute, field, "%s is not known: use PreferSameZone", federation.Quote(wish))
	}
	return wish
}

// annotated is the distribution that an annotation of a Service or Namespace names.
func annotated(annotations map[string]string, n *objectProblems) string {
	return distribution(distributionNamed(annotations[annotationDistribution]), "metadata.annotations["+annotationDistribution+"]", n)
}

// distributionNamed is the value that an annotation means: Istio ignores its case.
func distributionNamed(text string) string {
	for _, known := range []string{
		corev1.ServiceTrafficDistributionPreferClose, corev1.ServiceTrafficDistributionPreferSameZone,
		corev1.ServiceTrafficDistributionPreferSameNode,
	} {
		if strings.EqualFold(text, known) {
			return known
		}
	}
	return text
}

// addresses takes the service's own addresses. External IPs and the status of a
// load balancer are not VIPs and no endpoints: anyone may write anything there
// (B-O7); see fromOutside.
func (s *service) addresses(in *corev1.Service, n *objectProblems) {
	ips, field := in.Spec.ClusterIPs, "spec.clusterIPs"
	if len(ips) == 0 && in.Spec.ClusterIP != "" {
		ips, field = []string{in.Spec.ClusterIP}, "spec.clusterIP"
	}
	for i, text := range ips {
		if text == corev1.ClusterIPNone {
			s.shard.Resolution = federation.Passthrough
			continue
		}
		ip, err := federation.ParseIP(text)
		if err != nil {
			n.Add(codeAddress, index(field, i), "%s is %v; the service is offered without it", federation.Quote(text), err)
			continue
		}
		s.shard.VIPs = append(s.shard.VIPs, netip.PrefixFrom(ip, ip.BitLen()))
	}
	if s.shard.Resolution == federation.Passthrough {
		s.shard.VIPs = nil
	}
}

// mostExternal bounds the addresses from outside of one service.
const mostExternal = 64

// fromOutside returns where, as the cluster reports, the service is reached from
// outside, which is of use for gateways of networks only; Next applies the
// address policy. What load balancers do with virtual IPs inside is their own
// business.
func (s *service) fromOutside(in *corev1.Service, n *objectProblems) {
	add := func(text, field string) {
		ip, err := federation.ParseIP(text)
		switch {
		case len(s.shard.External) >= mostExternal:
			n.Add(codeAddress, field, "a service has at most %d addresses from outside; this one is excluded", mostExternal)
		case err != nil:
			n.Add(codeAddress, field, "%s is %v; it is excluded", federation.Quote(text), err)
		default:
			s.shard.External = append(s.shard.External, federation.IPAddress(ip))
		}
	}
	for i, text := range in.Spec.ExternalIPs {
		add(text, index("spec.externalIPs", i))
	}
	if in.Spec.Type != corev1.ServiceTypeLoadBalancer {
		return
	}
	for i, ingress := range in.Status.LoadBalancer.Ingress {
		field := index("status.loadBalancer.ingress", i)
		switch name := strings.TrimSuffix(strings.ToLower(ingress.Hostname), "."); {
		case ingress.IP != "":
			add(ingress.IP, field+".ip")
		case name == "":
		case !dnsName(name) || len(s.shard.External) >= mostExternal:
			n.Add(codeAddress, field+".hostname", "%s is not a DNS name, or one too many; it is excluded", federation.Quote(ingress.Hostname))
		default:
			s.shard.External = append(s.shard.External, federation.HostAddress(name))
		}
	}
}

// selects makes WorkloadEntries endpoints of the service; those of pods come from
// EndpointSlices. A WorkloadEntry says where it listens under the name of the
// service port, or under that of a named targetPort, which only it can resolve:
// where it does not, it does not serve that port.
func (s *service) selects(in *corev1.Service) {
	if len(in.Spec.Selector) == 0 {
		return
	}
	selector := &federation.Selector{Labels: in.Spec.Selector, Providers: []federation.Provider{federation.External}}
	for _, p := range in.Spec.Ports {
		if !slices.ContainsFunc(s.shard.Ports, func(o federation.Port) bool { return o.Name == p.Name && int32(o.Number) == p.Port }) {
			continue // excluded
		}
		if p.TargetPort.Type == intstr.String && p.TargetPort.StrVal != "" {
			if selector.TargetNames == nil {
				selector.TargetNames = map[string]string{}
			}
			selector.TargetNames[p.Name] = p.TargetPort.StrVal
		} else if number, ok := federation.PortNumber(p.TargetPort.IntVal); ok && p.TargetPort.IntVal != p.Port {
			if selector.TargetPorts == nil {
				selector.TargetPorts = map[string]uint16{}
			}
			selector.TargetPorts[p.Name] = number
		}
	}
	s.shard.Selector = selector
}

// external makes the service an alias of a name outside of the cluster.
func (s *service) external(name string, n *objectProblems) {
	s.shard.Resolution = federation.DNSLB
	s.shard.MeshExternal = true
	name = strings.TrimSuffix(strings.ToLower(name), ".")
	const field = "spec.externalName"
	switch _, err := netip.ParseAddr(name); {
	case name == "":
		n.Add(codeExternal, field, "it is empty; write the DNS name of which the service is an alias")
		return
	case err == nil:
		n.Add(codeExternal, field, "%s is an IP address; write a DNS name, or use a Service without selector and an EndpointSlice",
			federation.Quote(name))
		return
	case name == string(s.service.Hostname):
		n.Add(codeExternal, field, "the service names itself; write the name of something else")
		return
	case !dnsName(name):
		n.Add(codeExternal, field, "%s is not a DNS name", federation.Quote(name))
		return
	}
	s.shard.ExternalName = federation.Hostname(name)
	if _, _, inMesh := strings.Cut(name, ".svc."); len(s.shard.Ports) == 0 && !inMesh {
		n.Add(codeNoPorts, "spec.ports", "it has none, so that connections to %s are those to an unknown host; declare its ports",
			federation.Quote(name))
	}
	e := federation.Endpoint{Address: federation.HostAddress(name), Health: federation.Healthy}
	for _, p := range s.shard.Ports {
		e.Ports = append(e.Ports, federation.EndpointPort{Name: p.Name, Number: p.Number})
	}
	s.shard.Endpoints = []federation.Endpoint{e}
}

func servicePorts(in []corev1.ServicePort, n *objectProblems) []federation.Port {
	type socket struct {
		transport federation.Transport
		number    uint16
	}
	seen := map[socket]bool{}
	var out []federation.Port
	for i, p := range in {
		field := index("spec.ports", i)
		number, ok := federation.PortNumber(p.Port)
		protocol, supported := protocolOf(p.Protocol, p.AppProtocol, p.Name)
		this := socket{protocol.Transport(), number}
		switch {
		case !ok:
			n.Add(codePort, field+".port", "%d is not a port number (1 to 65535); this port is excluded", p.Port)
		case !supported:
			n.Add(codeProtocol, field+".protocol", "%s is not supported; this port is excluded", federation.Quote(string(p.Protocol)))
		case p.Name == "" && len(in) > 1:
			n.Add(codePort, field+".name", "a service with several ports must name each; this port is excluded")
		case seen[this] || slices.ContainsFunc(out, func(o federation.Port) bool { return o.Name == p.Name }):
			n.Add(codePort, field, "number or name was used before in this service; this port is excluded")
		default:
			if p.AppProtocol != nil && !fits(*p.AppProtocol, protocol) {
				n.Add(codeAppProtocol, field+".appProtocol", "%s is not known for a port of this protocol; the port is treated as %s",
					federation.Quote(*p.AppProtocol), protocol)
			}
			seen[this] = true
			out = append(out, federation.Port{Name: p.Name, Number: number, Protocol: protocol, Undeclared: undeclared(protocol, p, number)})
		}
	}
	return out
}

// undeclared reports whether the port is taken for TCP because neither its appProtocol nor its
// name says what it speaks.
func undeclared(protocol federation.Protocol, p corev1.ServicePort, number uint16) bool {
	app := value(p.AppProtocol, "")
	saysTCP := strings.EqualFold(app, string(federation.TCP)) || strings.EqualFold(prefixOf(p.Name), string(federation.TCP))
	return protocol == federation.TCP && !saysTCP && federation.MayDetect(number)
}

// fits reports whether the appProtocol can be that of a port which turned out to speak
// the protocol.
func fits(app string, protocol federation.Protocol) bool {
	named := federation.ParseProtocol(app)
	return named != federation.Unsupported && (named != federation.UDP || protocol == federation.UDP)
}

// protocolOf decides by transport, then appProtocol, then the port name's
// prefix; without any of them it is TCP (seed 3). False means that the
// transport is not supported.
func protocolOf(transport corev1.Protocol, app *string, name string) (federation.Protocol, bool) {
	switch transport {
	case corev1.ProtocolUDP:
		return federation.UDP, true
	case corev1.ProtocolTCP, "":
	default:
		return federation.Unsupported, false
	}
	if app != nil && *app != "" {
		if p := federation.ParseProtocol(*app); p != federation.Unsupported && p != federation.UDP {
			return p, true
		}
	}
	return namedProtocol(name), true
}

// namedProtocol reads "PROTOCOL" or "PROTOCOL-SUFFIX".
func namedProtocol(name string) federation.Protocol {
	name = strings.ToLower(name)
	if name == "grpc-web" || strings.HasPrefix(name, "grpc-web-") {
		return federation.GRPCWeb
	}
	if p := federation.ParseProtocol(prefixOf(name)); p != federation.Unsupported && p != federation.UDP {
		return p
	}
	return federation.TCP
}

// prefixOf is the part of a port's name that says the protocol.
func prefixOf(name string) string {
	prefix, _, _ := strings.Cut(name, "-")
	return prefix
}

// exportTo reads a comma list of namespaces, "." and "*" ("~": nowhere). Where
// the annotation holds nothing usable the service stays in its own namespace.
func exportTo(annotation string, n *objectProblems) []string {
	const field = "metadata.annotations[" + annotationExportTo + "]"
	if strings.TrimSpace(annotation) == "" {
		return nil
	}
	if len(annotation) > mostExportTo {
		n.Add(codeExport, field, "it is longer than %d bytes; the service is visible in its own namespace only", mostExportTo)
		return []string{"."}
	}
	var out []string
	for text := range strings.SplitSeq(annotation, ",") {
		text = strings.TrimSpace(text)
		switch {
		case text == "*" || text == "." || text == "~" || dnsLabel(text):
			if !slices.Contains(out, text) {
				out = append(out, text)
			}
		case text != "":
			n.Add(codeExport, field, "%s is not a namespace, %q, %q or %q; it is excluded", federation.Quote(text), ".", "*", "~")
		}
	}
	if len(out) == 0 {
		n.Add(codeExport, field, "it names no namespace; the service is visible in its own namespace only")
		return []string{"."}
	}
	return out
}

func index(field string, i int) string { return field + "[" + strconv.Itoa(i) + "]" }
