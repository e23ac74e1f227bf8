package kubernetes

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"isthmus.dev/isthmus/federation"
)

const (
	labelTLSMode = "security.istio.io/tlsMode"
	// labelLocality takes the place of the node's locality. Its parts are separated by
	// dots: a label's value has no slashes.
	labelLocality = "istio-locality"
)

// pod is what the registry keeps of a Pod.
type pod struct {
	record
	uid         string
	ips         []netip.Addr
	hostNetwork bool
	over        bool // succeeded or failed
	labels      map[string]string
	account     string // NAMESPACE/NAME
	node        string
	locality    federation.Locality // of its own; else it is the node's
	network     federation.NetworkID
	tlsMode     string
	health      federation.Health
	probes      []federation.Probe
	management  []federation.Port
}

// parsePod translates all that the Pod says itself.
func parsePod(in *corev1.Pod) *pod {
	k := key{Namespace: in.Namespace, Name: in.Name}
	n := problemsOf("Pod", k)
	out := &pod{
		uid:         string(in.UID),
		hostNetwork: in.Spec.HostNetwork,
		over:        in.Status.Phase == corev1.PodSucceeded || in.Status.Phase == corev1.PodFailed,
		labels:      in.Labels,
		node:        in.Spec.NodeName,
		health:      podHealth(in),
		network:     network(in.Labels[labelNetwork], "metadata.labels["+labelNetwork+"]", &n),
	}
	if text := in.Labels[labelLocality]; text != "" {
		out.locality = podLocality(text, &n)
	}
	if in.Spec.ServiceAccountName != "" {
		out.account = in.Namespace + "/" + in.Spec.ServiceAccountName
	}
	if mode := in.Labels[labelTLSMode]; mode == "istio" || mode == "disabled" {
		out.tlsMode = mode
	}
	out.addresses(in, &n)
	out.probes = podProbes(in, &n)
	out.management = managementPorts(out.probes)
	out.record = record{k: k, version: in.ResourceVersion, problems: n.All()}
	return out
}

// podLocality reads "REGION.ZONE.SUBZONE", of which the end may be missing.
func podLocality(text string, n *objectProblems) federation.Locality {
	const field = "metadata.labels[" + labelLocality + "]"
	parts := append(strings.SplitN(text, ".", 3), "", "")
	return federation.Locality{Region: place(parts[0], field, n), Zone: place(parts[1], field, n), SubZone: place(parts[2], field, n)}
}

// locatedBy is the pod's locality: its own, else its node's.
func (p *pod) locatedBy(in endpointContext) federation.Locality {
	if p.locality != (federation.Locality{}) {
		return p.locality
	}
	return in.locality(p.node)
}

func (p *pod) addresses(in *corev1.Pod, n *objectProblems) {
	add := func(text, field string) {
		ip, err := federation.ParseIP(text)
		switch {
		case err != nil:
			n.Add(codeAddress, field, "%s is %v; it is excluded", federation.Quote(text), err)
		case !slices.Contains(p.ips, ip):
			p.ips = append(p.ips, ip)
		}
	}
	for i, a := range in.Status.PodIPs {
		add(a.IP, index("status.podIPs", i))
	}
	if len(in.Status.PodIPs) == 0 && in.Status.PodIP != "" {
		add(in.Status.PodIP, "status.podIP")
	}
}

// podHealth is that of a pod that a ServiceEntry selects, for which there is no
// EndpointSlice. A pod that says nothing of its readiness is not ready.
func podHealth(in *corev1.Pod) federation.Health {
	ready := slices.ContainsFunc(in.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
	switch {
	case !ready:
		return federation.Unhealthy
	case in.DeletionTimestamp != nil:
		return federation.Draining
	}
	return federation.Healthy
}

// workload is the pod as the federation shows it, or nil: a pod that is over or
// has no address is none. A pod on its host's network has no addresses of its
// own, because several pods share them and none could be told apart by them; a
// selector finds it at its host's all the same.
func (p *pod) workload(place federation.Locality, network federation.NetworkID) *federation.Workload {
	if p.over || len(p.ips) == 0 {
		return nil
	}
	w := &federation.Workload{
		Network: network, Locality: place, Labels: p.labels, ServiceAccount: p.account,
		TLSMode: p.tlsMode, Health: p.health, Probes: p.probes, ManagementPorts: p.management,
	}
	if p.hostNetwork {
		w.Host = federation.IPAddress(p.ips[0])
	} else {
		w.Addresses = p.ips
	}
	return w
}

// podProbes reads the probes of the containers, and of those init containers
// that go on running beside them.
func podProbes(in *corev1.Pod, n *objectProblems) []federation.Probe {
	var out []federation.Probe
	for i := range in.Spec.InitContainers {
		c := &in.Spec.InitContainers[i]
		if value(c.RestartPolicy, "") == corev1.ContainerRestartPolicyAlways {
			out = append(out, containerProbes(c, index("spec.initContainers", i), n)...)
		}
	}
	for i := range in.Spec.Containers {
		out = append(out, containerProbes(&in.Spec.Containers[i], index("spec.containers", i), n)...)
	}
	return out
}

func containerProbes(c *corev1.Container, field string, n *objectProblems) []federation.Probe {
	var out []federation.Probe
	for _, p := range []struct {
		kind  string
		probe *corev1.Probe
	}{{"readiness", c.ReadinessProbe}, {"liveness", c.LivenessProbe}, {"startup", c.StartupProbe}} {
		if p.probe == nil {
			continue
		}
		read := probeReader{container: c, field: field + "." + p.kind + "Probe", notes: n}
		if probe, ok := read.probe(p.probe); ok {
			probe.Kind, probe.Container = p.kind, c.Name
			out = append(out, probe)
		}
	}
	return out
}

// probeReader reads the probes of one container.
type probeReader struct {
	container *corev1.Container
	field     string
	notes     *objectProblems
}

// probe returns false for a probe that sends nothing to a port.
func (r probeReader) probe(in *corev1.Probe) (federation.Probe, bool) {
	switch {
	case in.HTTPGet != nil:
		protocol := "HTTP"
		if in.HTTPGet.Scheme == corev1.URISchemeHTTPS {
			protocol = "HTTPS"
		}
		number, ok := r.port(in.HTTPGet.Port, ".httpGet.port")
		return federation.Probe{Protocol: protocol, Port: number, Path: in.HTTPGet.Path}, ok
	case in.TCPSocket != nil:
		number, ok := r.port(in.TCPSocket.Port, ".tcpSocket.port")
		return federation.Probe{Protocol: "TCP", Port: number}, ok
	case in.GRPC != nil:
		number, ok := r.port(intstr.FromInt32(in.GRPC.Port), ".grpc.port")
		return federation.Probe{Protocol: "GRPC", Port: number, Service: value(in.GRPC.Service, "")}, ok
	}
	return federation.Probe{}, false
}

func (r probeReader) port(p intstr.IntOrString, field string) (uint16, bool) {
	number := p.IntVal
	if p.Type == intstr.String {
		i := slices.IndexFunc(r.container.Ports, func(c corev1.ContainerPort) bool { return c.Name == p.StrVal })
		if i < 0 {
			r.notes.Add(codeProbe, r.field+field, "the container has no port named %s; the probe is excluded", federation.Quote(p.StrVal))
			return 0, false
		}
		number = r.container.Ports[i].ContainerPort
	}
	out, ok := federation.PortNumber(number)
	if !ok {
		r.notes.Add(codeProbe, r.field+field, "%d is not a port number (1 to 65535); the probe is excluded", number)
	}
	return out, ok
}

// managementPorts are the ports that probes are sent to.
func managementPorts(probes []federation.Probe) []federation.Port {
	var out []federation.Port
	for _, p := range probes {
		if !slices.ContainsFunc(out, func(o federation.Port) bool { return o.Number == p.Port }) {
			out = append(out, federation.Port{
				Name: "mgmt-" + strconv.Itoa(int(p.Port)), Number: p.Port,
				Protocol: federation.ParseProtocol(p.Protocol),
			})
		}
	}
	return out
}
