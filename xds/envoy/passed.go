package envoy

import (
	"fmt"
	"slices"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/proto"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/destinationrule"
	"isthmus.dev/isthmus/xds/envoy/node"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

// A router in sni-dnat mode passes TLS connections on to endpoints of its own
// network that take mutual TLS, by the name that they ask for, and ends none. It
// has a cluster for each name, beside those that every router has.

// passes tells that a router in sni-dnat mode has clusters for the port: what is
// outside of the mesh, found by DNS or without balancing, and UDP have none.
func passes(s *federation.Service, p federation.ServicePort) bool {
	return !s.MeshExternal && s.Resolution == federation.ClientSideLB && p.Protocol.Transport() == federation.TransportTCP
}

// passedNames are the names for the service's ports and the subsets of them.
func passedNames(t resource.Type, s *federation.Service, subsets []string) []string {
	if t != resource.ClusterType && t != resource.EndpointType {
		return nil
	}
	var names []string
	for _, p := range s.Ports {
		if !passes(s, p) {
			continue
		}
		for _, subset := range append([]string{""}, subsets...) {
			names = append(names, resource.ServerName(s.Key.Hostname, p.Number, subset))
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// passedPodNames are the names for pods of headless services.
func passedPodNames(f node.Facet, r *federation.Reader) []string {
	b := &builder{facet: f, reader: r}
	var names []string
	for _, p := range b.allPods(false) {
		names = append(names, p.passedNames()...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (p pod) passedNames() []string {
	var names []string
	for _, port := range p.service.Ports {
		names = append(names, resource.ServerName(p.service.Key.Hostname, port.Number, ""))
	}
	return names
}

// passedTo finds what the name stands for: of hosts and subsets whose names are
// the same, the first.
func (b *builder) passedTo(name string) (destination, bool) {
	id, ok := resource.ParseServerName(name)
	if !ok {
		return destination{}, false
	}
	owner, _ := firstOwner(b.reader.ByHostname(id.Host), id.Port, b.facet.OwnNamespace(), b.facet.Covers)
	all := b.destinationsOf(owner, name)
	if strings.HasSuffix(string(id.Host), resource.Shortened) {
		all = append(all, b.shortenedTo(id.Port, name)...)
	}
	if len(all) == 0 {
		p, found := b.podAt(id.Host)
		if !found || id.Subset != "" {
			return destination{}, false
		}
		return b.podDestination(p, id.Port, name)
	}
	for _, d := range all[1:] {
		b.leaveOut(d.sniConflict(name, all[0].title(), all[0].rule()))
	}
	return all[0], true
}

// destinationsOf are those of a port whose connections ask for the name.
func (b *builder) destinationsOf(p servedPort, name string) []destination {
	if p.service == nil || !passes(p.service, p.port) {
		return nil
	}
	r := b.ruling(p.service)
	var all []destination
	add := func(subset string, labels map[string]string) {
		if resource.ServerName(p.service.Key.Hostname, p.port.Number, subset) != name {
			return
		}
		part, _ := r.Subset(subset)
		all = append(all, destination{
			servedPort: p, name: name, subset: subset, labels: labels, policy: r.PolicyOf(p.port.Number, part), rules: r.Rules,
		})
	}
	add("", nil)
	for _, subset := range r.Subsets {
		add(subset.GetName(), subset.GetLabels())
	}
	return all
}

// shortenedTo looks through the services for those whose names are replaced by
// digests.
func (b *builder) shortenedTo(port uint16, name string) []destination {
	b.reader.SpecsOnPort(port) // such a service may come
	services := b.reader.Select(func(s *federation.Service) bool {
		_, has := tcpPort(s, port)
		return has && resource.MayBeShortened(s.Key.Hostname) && b.facet.Covers(s)
	})
	var all []destination
	for group := range byHostname(slices.Values(services)) {
		owner, _ := firstOwner(group, port, b.facet.OwnNamespace(), b.facet.Covers)
		all = append(all, b.destinationsOf(owner, name)...)
	}
	return all
}

func (d destination) title() string {
	if d.subset == "" {
		return "the service " + d.service.Key.String()
	}
	return fmt.Sprintf("the subset %q of %s", d.subset, d.service.Key)
}

// passedCluster sends bytes as they come.
func (b *builder) passedCluster(name string) proto.Message {
	d, ok := b.passedTo(name)
	if !ok {
		return nil
	}
	c := newCluster(name)
	c.ClusterDiscoveryType = &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS}
	c.EdsClusterConfig = &clusterv3.Cluster_EdsClusterConfig{EdsConfig: resource.ADSSource()}
	c.CommonLbConfig = &clusterv3.Cluster_CommonLbConfig{HealthyPanicThreshold: &typev3.Percent{Value: destinationrule.PanicThreshold(d.policy)}}
	b.balance(c, d)
	destinationrule.SetLimits(c, d.policy)
	destinationrule.SetOutlierDetection(c, d.policy.GetOutlierDetection())
	return c
}

// passedAssignment has the endpoints of the router's own network that take mutual
// TLS, and no gateway: what comes from another network never goes to a third.
func (b *builder) passedAssignment(name string) proto.Message {
	d, ok := b.passedTo(name)
	if !ok {
		return nil
	}
	if s, known := b.reader.Endpoints(d.service.Key); known {
		d.service = s // what is not known is a pod, with its endpoint
	}
	own := b.network()
	kept := slices.DeleteFunc(b.offers(d), func(o offer) bool {
		_, isName := o.endpoint.Address.Host()
		_, isSocket := o.endpoint.Address.Unix()
		switch {
		case o.endpoint.Network != own:
			b.leaveOutEndpoint(o, resource.ReasonOtherNetwork, fmt.Sprintf("%s is in network %s, the router in %s", o.endpoint.Address, o.endpoint.Network, own))
		case !o.endpoint.TakesMutualTLS():
			b.leaveOutEndpoint(o, resource.ReasonNoMutualTLS, fmt.Sprintf("%s does not take mutual TLS: it needs a sidecar, and the label security.istio.io/tlsMode: istio", o.endpoint.Address))
		case isName:
			b.leaveOutEndpoint(o, resource.ReasonHostname, fmt.Sprintf("%s is a DNS name; give the endpoint an IP address", o.endpoint.Address))
		case isSocket:
			b.leaveOutEndpoint(o, resource.ReasonSocket, fmt.Sprintf("%s is a socket, which a router cannot reach", o.endpoint.Address))
		default:
			return false
		}
		return true
	})
	return assign(name, b.withoutDuplicates(kept))
}
