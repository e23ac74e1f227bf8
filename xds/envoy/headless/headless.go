// Package headless makes what leads to pods of headless services in other clusters: a cluster,
// endpoints and a listener for each.
package headless

import (
	"slices"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/cluster"
	"isthmus.dev/isthmus/xds/envoy/destination"
	"isthmus.dev/isthmus/xds/envoy/endpoint"
	"isthmus.dev/isthmus/xds/envoy/facet"
	"isthmus.dev/isthmus/xds/envoy/listener"
	"isthmus.dev/isthmus/xds/envoy/node"
	"isthmus.dev/isthmus/xds/envoy/pods"
	"isthmus.dev/isthmus/xds/envoy/resource"
	"isthmus.dev/isthmus/xds/envoy/service"
	"isthmus.dev/isthmus/xds/envoy/transport"
)

// Names are the names of pods of other clusters, for proxies that
// have an identity and resolve names. Their clusters and endpoints have them.
func Names(f node.Facet, r *federation.Reader) []string {
	return perPort(facet.Open(f, r), func(p pods.Pod, number uint16) string {
		return resource.ClusterName(p.Service.Key.Hostname, number)
	})
}

// ListenerNames are the names of the listeners at the addresses of the pods.
func ListenerNames(f node.Facet, r *federation.Reader) []string {
	v, taken := facet.Open(f, r), map[string]bool{} // address and port
	return perPort(v, func(p pods.Pod, number uint16) string {
		at := resource.VIPListener(p.VIP(), number)
		if taken[at] || vipInUse(v, p, number) {
			return ""
		}
		taken[at] = true
		return resource.PodListener(p.Service.Key.Hostname, number)
	})
}

// perPort are the names for the ports of the pods; an empty name is none.
func perPort(v *facet.View, name func(pods.Pod, uint16) string) []string {
	var names []string
	for _, p := range pods.All(v, true) {
		for _, port := range p.Service.Ports {
			if of := name(p, port.Number); of != "" {
				names = append(names, of)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// vipInUse reports whether a service has the pod's VIP and port: Envoy refuses two
// listeners of one address.
func vipInUse(v *facet.View, p pods.Pod, number uint16) bool {
	return len(v.Reader.SelectAtVIP(p.VIP(), func(s *federation.Service) bool {
		_, has := service.TCPPort(s, number)
		return has
	})) > 0
}

// Cluster speaks mutual TLS with the one pod.
func Cluster(v *facet.View, name string) proto.Message {
	d, ok := podNamed(v, name)
	if !ok {
		return nil
	}
	c := cluster.OfEndpoints(name, d)
	if d.Mutual() {
		c.TransportSocketMatches = []*clusterv3.Cluster_TransportSocketMatch{
			transport.SocketMatch("", "", transport.MeshTLS(d.Client(), transport.Identities(d.Service.Peers, d.Service, v.Reader), nil)),
		}
	}
	return c
}

// Assignment is the pod, or the gateways of its network.
func Assignment(v *facet.View, name string) proto.Message {
	d, ok := podNamed(v, name)
	if !ok {
		return nil
	}
	h := endpoint.SplitHorizon(v, d, endpoint.Offers(v, d))
	return endpoint.AssignMembers(v, d, h.Members(d.Service))
}

func podNamed(v *facet.View, name string) (destination.Destination, bool) {
	id, ok := resource.ParseClusterName(name)
	if !ok || id.Subset != "" {
		return destination.Destination{}, false
	}
	p, ok := pods.Named(v, id.Host)
	if !ok || p.Cluster == v.Facet.Cluster {
		return destination.Destination{}, false
	}
	return pods.Destination(v, p, id.Port, name)
}

// Listener catches connections to the VIP of a pod.
func Listener(v *facet.View, name string) *listenerv3.Listener {
	rest, isPod := strings.CutPrefix(name, "pod_")
	at := strings.LastIndexByte(rest, '_')
	if !isPod || at < 0 {
		return nil
	}
	number, _ := resource.ParsePort(rest[at+1:])
	cluster := resource.ClusterName(federation.Hostname(rest[:at]), number)
	d, ok := podNamed(v, cluster)
	if !ok {
		return nil
	}
	p, _ := pods.Named(v, d.Service.Key.Hostname)
	l := listener.New(name, p.VIP().String(), number)
	l.TrafficDirection = corev3.TrafficDirection_OUTBOUND
	l.BindToPort = wrapperspb.Bool(false)
	l.FilterChains = []*listenerv3.FilterChain{{Filters: []*listenerv3.Filter{resource.TCPProxy(cluster)}}}
	return l
}
