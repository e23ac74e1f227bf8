package external

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"isthmus.dev/isthmus/federation"
	networking "istio.io/api/networking/v1"
)

// Labels of a workload that say more of it.
const (
	labelTLSMode = "security.istio.io/tlsMode"
	labelNetwork = "topology.istio.io/network"
)

var errNoAddress = errors.New("is not an IP address in its usual form, DNS name or unix:// socket with an absolute path")

func at(field string, i int) string { return field + "[" + strconv.Itoa(i) + "]" }

// parseAddress reads an IP address, a DNS name, or a socket: unix:///PATH,
// unix:/PATH, or unix://@NAME for an abstract one.
func parseAddress(text string) (federation.Address, error) {
	if path, isSocket := strings.CutPrefix(text, "unix:"); isSocket {
		path = strings.TrimPrefix(path, "//")
		if len(path) < 2 || path[0] != '/' && path[0] != '@' || strings.HasSuffix(path, "/") || strings.ContainsRune(path, 0) {
			return federation.Address{}, errNoAddress
		}
		return federation.UnixAddress(path), nil
	}
	if ip, err := federation.ParseIP(text); err == nil {
		return federation.IPAddress(ip), nil
	}
	if !dnsName(text) {
		return federation.Address{}, errNoAddress
	}
	return federation.HostAddress(text), nil
}

// dnsName accepts underscores, as resolvers do, and no wildcard. A name whose
// last label is a number would be an address to some resolvers.
func dnsName(s string) bool {
	s = strings.TrimSuffix(s, ".")
	if s == "" || len(s) > 253 {
		return false
	}
	last := ""
	for label := range strings.SplitSeq(s, ".") {
		if label == "" || len(label) > 63 || strings.Trim(label, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") != "" {
			return false
		}
		last = label
	}
	return strings.Trim(last, "0123456789") != ""
}

func network(in *networking.WorkloadEntry, labels map[string]string) federation.NetworkID {
	if in.GetNetwork() != "" {
		return federation.NetworkID(in.GetNetwork())
	}
	return federation.NetworkID(labels[labelNetwork])
}

// tlsMode is what the workload's label says; one that runs under an account
// takes mutual TLS unless it says otherwise.
func tlsMode(in *networking.WorkloadEntry, labels map[string]string) string {
	switch mode := labels[labelTLSMode]; {
	case mode == "istio", mode == "disabled":
		return mode
	case mode == "" && in.GetServiceAccount() != "":
		return "istio"
	}
	return ""
}

// account is NAMESPACE/NAME, as of pods.
func account(in *networking.WorkloadEntry, namespace string) string {
	if in.GetServiceAccount() == "" {
		return ""
	}
	return namespace + "/" + in.GetServiceAccount()
}

func (r *Reading) readEndpoint(in *networking.WorkloadEntry, field string, n *objectProblems) (federation.Endpoint, bool) {
	address, ok := readAddress(in, field, n)
	if !ok {
		return federation.Endpoint{}, false
	}
	_, isName := address.Host()
	_, isSocket := address.Unix()
	switch {
	case isName && !r.isDNS():
		n.Add(codeEndpoint, field+".address", "the DNS name %s needs the resolution DNS or DNS_ROUND_ROBIN; the endpoint is not used",
			federation.Quote(in.GetAddress()))
		return federation.Endpoint{}, false
	case isSocket && len(r.ports) != 1:
		n.Add(codeEndpoint, field+".address", "a unix socket serves one port and the entry has %d; the endpoint is not used", len(r.ports))
		return federation.Endpoint{}, false
	}
	return federation.Endpoint{
		Address: address, Ports: r.endpointPorts(in, field, n), Network: network(in, in.GetLabels()),
		Locality: federation.ParseLocality(in.GetLocality()),
		Weight:   in.GetWeight(), Health: federation.Healthy, Labels: in.GetLabels(),
		ServiceAccount: account(in, r.key.Namespace), TLSMode: tlsMode(in, in.GetLabels()),
	}, true
}

func readAddress(in *networking.WorkloadEntry, field string, n *objectProblems) (federation.Address, bool) {
	if in.GetAddress() == "" {
		n.Add(federation.CodeNotHonoured, field+".address",
			"a workload without an address, reached through its network's gateway, is not supported; give it an address")
		return federation.Address{}, false
	}
	address, err := parseAddress(in.GetAddress())
	if err != nil {
		n.Add(codeAddress, field+".address", "%s %v; the workload is not used", federation.Quote(in.GetAddress()), err)
	}
	return address, err == nil
}

// endpointPorts is where the endpoint listens for each port of the service: its
// own word, else the port's target, else the port's number.
func (r *Reading) endpointPorts(in *networking.WorkloadEntry, field string, n *objectProblems) []federation.EndpointPort {
	own := workloadPorts(in, field, n)
	if len(own) == 0 {
		return r.served
	}
	ports := slices.Clone(r.served)
	for i := range ports {
		for _, o := range own {
			if o.Name == ports[i].Name {
				ports[i].Number = o.Number
			}
		}
	}
	for _, o := range own {
		if _, known := r.target(o.Name); !known {
			n.Add(codePortUnknown, field+".ports."+o.Name, "the entry has no port named %s", federation.Quote(o.Name))
		}
	}
	return ports
}

// workloadPorts are the ports that the workload names itself, by name.
func workloadPorts(in *networking.WorkloadEntry, field string, n *objectProblems) []federation.EndpointPort {
	var ports []federation.EndpointPort
	for _, name := range slices.Sorted(maps.Keys(in.GetPorts())) {
		number, ok := federation.PortNumber(in.GetPorts()[name])
		if !ok {
			n.Add(codePort, field+".ports."+name, "%d is not a port number; it is excluded, use 1 to 65535", in.GetPorts()[name])
			continue
		}
		ports = append(ports, federation.EndpointPort{Name: name, Number: number})
	}
	return ports
}
