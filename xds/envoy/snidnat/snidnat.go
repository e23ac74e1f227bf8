// Package snidnat makes the clusters and endpoints of routers in sni-dnat mode.
package snidnat

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/cluster"
	"isthmus.dev/isthmus/xds/envoy/destination"
	"isthmus.dev/isthmus/xds/envoy/destinationrule"
	"isthmus.dev/isthmus/xds/envoy/endpoint"
	"isthmus.dev/isthmus/xds/envoy/facet"
	"isthmus.dev/isthmus/xds/envoy/node"
	"isthmus.dev/isthmus/xds/envoy/pods"
	"isthmus.dev/isthmus/xds/envoy/resource"
	"isthmus.dev/isthmus/xds/envoy/service"
)

// A router in sni-dnat mode passes TLS connections on to endpoints of its own
// network that take mutual TLS, by the name that they ask for, and ends none. It
// has a cluster for each name, beside those that every router has.

// PodNames are the names for pods of headless services.
func PodNames(f node.Facet, r *federation.Reader) []string {
	v := facet.Open(f, r)
	var names []string
	for _, p := range pods.All(v, false) {
		names = append(names, p.ServerNames()...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// passedTo finds the destination of the name: of hosts and subsets whose names are
// the same, the first.
func passedTo(v *facet.View, name string) (destination.Destination, bool) {
	id, ok := resource.ParseServerName(name)
	if !ok {
		return destination.Destination{}, false
	}
	owner, _ := service.FirstOwner(v.Reader.ByHostname(id.Host), id.Port, v.Facet.OwnNamespace(), v.Facet.Covers)
	all := destinationsOf(v, owner, name)
	if strings.HasSuffix(string(id.Host), resource.Shortened) {
		all = append(all, shortenedTo(v, id.Port, name)...)
	}
	if len(all) == 0 {
		p, found := pods.Named(v, id.Host)
		if !found || id.Subset != "" {
			return destination.Destination{}, false
		}
		return pods.Destination(v, p, id.Port, name)
	}
	for _, d := range all[1:] {
		v.LeaveOut(d.SNIConflict(name, all[0].Title(), all[0].Rule()))
	}
	return all[0], true
}

// destinationsOf are those of a port whose connections ask for the name.
func destinationsOf(v *facet.View, p service.ServedPort, name string) []destination.Destination {
	if p.Service == nil || !destination.Passes(p.Service, p.Port) {
		return nil
	}
	r := v.DestinationRule(p.Service)
	var all []destination.Destination
	add := func(subset string, labels map[string]string) {
		if resource.ServerName(p.Service.Key.Hostname, p.Port.Number, subset) != name {
			return
		}
		part, _ := r.Subset(subset)
		all = append(all, destination.Destination{
			ServedPort: p, Name: name, Subset: subset, Labels: labels, Policy: r.PolicyOf(p.Port.Number, part), Rules: r.Rules,
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
func shortenedTo(v *facet.View, port uint16, name string) []destination.Destination {
	services := v.Reader.SelectOnPort(port, func(s *federation.Service) bool {
		_, has := service.TCPPort(s, port)
		return has && resource.MayBeShortened(s.Key.Hostname) && v.Facet.Covers(s)
	})
	var all []destination.Destination
	for group := range service.ByHostname(slices.Values(services)) {
		owner, _ := service.FirstOwner(group, port, v.Facet.OwnNamespace(), v.Facet.Covers)
		all = append(all, destinationsOf(v, owner, name)...)
	}
	return all
}

// Cluster sends bytes as they come.
func Cluster(v *facet.View, name string) proto.Message {
	d, ok := passedTo(v, name)
	if !ok {
		return nil
	}
	c := cluster.OfEndpoints(name, d)
	cluster.Balance(v, c, d)
	destinationrule.SetOutlierDetection(c, d.Policy.GetOutlierDetection())
	return c
}

// Assignment has the endpoints of the router's own network that take mutual
// TLS, and no gateway: what comes from another network never goes to a third.
func Assignment(v *facet.View, name string) proto.Message {
	d, ok := passedTo(v, name)
	if !ok {
		return nil
	}
	if s, known := v.Reader.Endpoints(d.Service.Key); known {
		d.Service = s // what is not known is a pod, with its endpoint
	}
	own := v.Network()
	kept := slices.DeleteFunc(endpoint.Offers(v, d), func(o endpoint.Offer) bool {
		_, isName := o.Endpoint.Address.Host()
		_, isSocket := o.Endpoint.Address.Unix()
		switch {
		case o.Endpoint.Network != own:
			endpoint.LeaveOutEndpoint(v, o, resource.ReasonOtherNetwork, fmt.Sprintf("%s is in network %s, the router in %s",
				o.Endpoint.Address, o.Endpoint.Network, own))
		case !o.TakesMutualTLS():
			endpoint.LeaveOutPlain(v, o, fmt.Sprintf("%s does not take mutual TLS", o.Endpoint.Address))
		case isName:
			endpoint.LeaveOutEndpoint(v, o, resource.ReasonHostname,
				fmt.Sprintf("%s is a DNS name; give the endpoint an IP address", o.Endpoint.Address))
		case isSocket:
			endpoint.LeaveOutEndpoint(v, o, resource.ReasonSocket, fmt.Sprintf("%s is a socket, which a router cannot reach", o.Endpoint.Address))
		default:
			return false
		}
		return true
	})
	return endpoint.Assign(name, endpoint.WithoutDuplicates(v, kept))
}
