package envoy

import (
	"slices"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/destinationrule"
	"isthmus.dev/isthmus/xds/envoy/node"
	"isthmus.dev/isthmus/xds/envoy/resource"
	"isthmus.dev/isthmus/xds/envoy/transport"
)

// podNames are the names that stand for pods of other clusters, for proxies that
// have an identity and resolve names.
func podNames(t resource.Type, f node.Facet, r *federation.Reader) []string {
	b := &builder{facet: f, reader: r}
	var names []string
	taken := map[string]bool{} // address and port
	for _, p := range b.allPods(true) {
		for _, port := range p.service.Ports {
			at := resource.VIPListener(p.vip(), port.Number)
			switch {
			case t != resource.ListenerType:
				names = append(names, resource.ClusterName(p.service.Key.Hostname, port.Number))
			case !taken[at] && !b.vipInUse(p, port.Number):
				taken[at] = true
				names = append(names, resource.PodListener(p.service.Key.Hostname, port.Number))
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// vipInUse tells that a service has the pod's VIP and port: Envoy refuses two
// listeners of one address.
func (b *builder) vipInUse(p pod, number uint16) bool {
	return len(b.reader.SelectAtVIP(p.vip(), func(s *federation.Service) bool {
		_, has := tcpPort(s, number)
		return has
	})) > 0
}

// podCluster speaks mutual TLS with the one pod.
func (b *builder) podCluster(name string) proto.Message {
	d, ok := b.podNamed(name)
	if !ok {
		return nil
	}
	c := newCluster(name)
	c.ClusterDiscoveryType = &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS}
	c.EdsClusterConfig = &clusterv3.Cluster_EdsClusterConfig{EdsConfig: resource.ADSSource()}
	c.CommonLbConfig = &clusterv3.Cluster_CommonLbConfig{HealthyPanicThreshold: &typev3.Percent{Value: destinationrule.PanicThreshold(d.policy)}}
	destinationrule.SetLimits(c, d.policy)
	if d.mutual() {
		c.TransportSocketMatches = []*clusterv3.Cluster_TransportSocketMatch{transport.SocketMatch("", "", transport.MeshTLS(d.client(), transport.Identities(d.service.Peers, d.service, b.reader), nil))}
	}
	return c
}

// podAssignment is the pod, or the gateways of its network.
func (b *builder) podAssignment(name string) proto.Message {
	d, ok := b.podNamed(name)
	if !ok {
		return nil
	}
	h := b.horizonOf(d, b.offers(d))
	return b.assignMembers(d, h.members(d.service))
}

func (b *builder) podNamed(name string) (destination, bool) {
	id, ok := resource.ParseClusterName(name)
	if !ok || id.Subset != "" {
		return destination{}, false
	}
	p, ok := b.podAt(id.Host)
	if !ok || p.cluster == b.facet.Cluster {
		return destination{}, false
	}
	return b.podDestination(p, id.Port, name)
}

// podsListener catches connections to the VIP of a pod.
func (b *builder) podsListener(name string) *listenerv3.Listener {
	rest, isPod := strings.CutPrefix(name, "pod_")
	at := strings.LastIndexByte(rest, '_')
	if !isPod || at < 0 {
		return nil
	}
	number, _ := resource.ParsePort(rest[at+1:])
	cluster := resource.ClusterName(federation.Hostname(rest[:at]), number)
	d, ok := b.podNamed(cluster)
	if !ok {
		return nil
	}
	p, _ := b.podAt(d.service.Key.Hostname)
	l := newListener(name, p.vip().String(), number)
	l.TrafficDirection = corev3.TrafficDirection_OUTBOUND
	l.BindToPort = wrapperspb.Bool(false)
	l.FilterChains = []*listenerv3.FilterChain{{Filters: []*listenerv3.Filter{resource.TCPProxy(cluster)}}}
	return l
}

// podAnswers are the names of pods: those of the own cluster, and of those of other
// clusters with their VIPs POD.CLUSTER.HOST, POD.HOST unless a pod of the own
// cluster or of one that comes before has that name, and HOST where the own cluster
// has none of it.
func (b *builder) podAnswers(known map[string]bool) map[string][]string {
	answers := b.ownPodAnswers(known)
	if !b.facet.Identity {
		return answers
	}
	all := b.allPods(false)
	for _, p := range all {
		if p.cluster == b.facet.Cluster {
			known[p.name+"."+string(p.of.Key.Hostname)] = true
		}
	}
	for _, p := range all {
		if p.cluster == b.facet.Cluster {
			continue
		}
		vip := p.vip().String()
		for _, name := range []string{string(p.service.Key.Hostname), p.name + "." + string(p.of.Key.Hostname)} {
			if !known[name] && answers[name] == nil {
				answers[name] = []string{vip}
			}
		}
		if name := string(p.of.Key.Hostname); !hasShard(p.of, b.facet.Cluster) && !known[name] {
			answers[name] = append(answers[name], vip)
		}
	}
	return answers
}
