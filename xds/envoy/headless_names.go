package envoy

import (
	"strings"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

// mostAnswers is how many addresses Envoy answers a DNS request with. It would
// choose among more, and peers that find each other by DNS need all of them.
const mostAnswers = 8

// ownPodAnswers are the names of pods of headless services in the proxy's own
// cluster, with the addresses that it can reach: POD.HOST, and HOST with those that
// are ready. A name without a ready pod, or with more of them than Envoy answers
// with, is left to the servers that the proxy's system asks.
func (b *builder) ownPodAnswers(known map[string]bool) map[string][]string {
	answers := map[string][]string{}
	own, networks := b.network(), b.networks()
	for s := range b.reader.Specs() {
		host := string(s.Key.Hostname)
		if !headless(s) || !b.facet.Covers(s) || !hasShard(s, b.facet.Cluster) || !hasPods(s) || known[host] || !resource.IsDomain(host) {
			continue
		}
		known[host] = true
		s, _ = b.reader.Endpoints(s.Key)
		found := map[string][]string{}
		for _, group := range s.Endpoints {
			for i := range group.Endpoints {
				e := &group.Endpoints[i]
				if group.ClusterOf(e) != b.facet.Cluster || e.Health != federation.Healthy {
					continue
				}
				if n := networks(e.Network); e.Network == own || n != nil && !n.Gated {
					b.addAnswer(found, host, e)
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

// addAnswer has the names of the pod lead to it.
func (b *builder) addAnswer(answers map[string][]string, host string, e *federation.Endpoint) {
	ip, isIP := e.Address.IP()
	if !isIP || ip.Is6() && !b.facet.IPv6 {
		return
	}
	answers[host] = append(answers[host], ip.String())
	if name := strings.ToLower(e.Hostname + "." + host); e.Hostname != "" && resource.IsDomain(name) {
		answers[name] = append(answers[name], ip.String())
	}
}
