package dns

import (
	"strings"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/facet"
	"isthmus.dev/isthmus/xds/envoy/pods"
	"isthmus.dev/isthmus/xds/envoy/resource"
	"isthmus.dev/isthmus/xds/envoy/service"
)

// mostAnswers is how many addresses Envoy answers a DNS request with. It would
// choose among more, and peers that find each other by DNS need all of them.
const mostAnswers = 8

// ownPodAnswers are the names of pods of headless services in the proxy's own
// cluster, with the addresses that it can reach: POD.HOST, and HOST with those that
// are ready. A name without a ready pod, or with more of them than Envoy answers
// with, is left to the servers that the proxy's system asks.
func ownPodAnswers(v *facet.View, known map[string]bool) map[string][]string {
	answers := map[string][]string{}
	own, networks := v.Network(), v.Networks()
	for s := range v.Reader.Specs() {
		host := string(s.Key.Hostname)
		if !service.IsHeadless(s) || !v.Facet.Covers(s) || !service.HasShard(s, v.Facet.Cluster) || !service.HasPods(s) ||
			known[host] || !resource.IsDomain(host) {
			continue
		}
		known[host] = true
		s, _ = v.Reader.Endpoints(s.Key)
		found := map[string][]string{}
		for _, group := range s.Endpoints {
			for i := range group.Endpoints {
				e := &group.Endpoints[i]
				if group.ClusterOf(e) != v.Facet.Cluster || e.Health != federation.Healthy {
					continue
				}
				if n := networks(e.Network); e.Network == own || n != nil && !n.Gated {
					addAnswer(v, found, s.Key.Hostname, e)
				}
			}
		}
		for name, addresses := range found {
			if len(addresses) <= mostAnswers {
				answers[name] = addresses
			}
		}
	}
	return answers
}

// addAnswer has the names of the pod lead to it. That of an exported service also has the
// name that callers of other clusters use.
func addAnswer(v *facet.View, answers map[string][]string, host federation.Hostname, e *federation.Endpoint) {
	ip, isIP := e.Address.IP()
	if !isIP || ip.Is6() && !v.Facet.IPv6 {
		return
	}
	answers[string(host)] = append(answers[string(host)], ip.String())
	if e.Hostname == "" {
		return
	}
	names := []string{e.Hostname + "." + string(host)}
	if host.IsClusterSet() {
		names = append(names, e.Hostname+"."+string(v.Facet.Cluster)+"."+string(host))
	}
	for _, name := range names {
		name = strings.ToLower(name)
		if resource.IsDomain(name) {
			answers[name] = append(answers[name], ip.String())
		}
	}
}

// podAnswers are the names of pods: those of the own cluster, and of those of other
// clusters with their VIPs POD.CLUSTER.HOST, POD.HOST unless a pod of the own
// cluster or of one that comes before has that name, and HOST where the own cluster
// has none of it. The HOST of an exported service is all of its pods.
func podAnswers(v *facet.View, known map[string]bool) map[string][]string {
	answers := ownPodAnswers(v, known)
	if !v.Facet.Identity {
		return answers
	}
	all := pods.All(v, false)
	for _, p := range all {
		if p.Cluster == v.Facet.Cluster {
			known[p.Name+"."+string(p.Of.Key.Hostname)] = true
		}
	}
	for _, p := range all {
		if p.Cluster == v.Facet.Cluster {
			continue
		}
		vip := p.VIP().String()
		for _, name := range []string{string(p.Service.Key.Hostname), p.Name + "." + string(p.Of.Key.Hostname)} {
			if !known[name] && answers[name] == nil {
				answers[name] = []string{vip}
			}
		}
		if host := p.Of.Key.Hostname; host.IsClusterSet() || !service.HasShard(p.Of, v.Facet.Cluster) && !known[string(host)] {
			answers[string(host)] = append(answers[string(host)], vip)
		}
	}
	return answers
}
