package endpoint

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/facet"
	"isthmus.dev/isthmus/xds/envoy/facettest"
	"isthmus.dev/isthmus/xds/envoy/node"
)

const (
	webHost = "web.shop.svc.cluster.local"
	webName = "outbound|80||" + webHost
)

// shop has the service web in the cluster c1, with these endpoints, and these fields of its DestinationRule; empty: it has none.
func shop(t *testing.T, policy string, endpoints ...string) facettest.Mesh {
	t.Helper()
	port := facettest.Port(80, federation.HTTP)
	s := facettest.Service{Name: "shop/" + webHost, Cluster: "c1", Shard: federation.Shard{Ports: []federation.Port{port}}}
	for _, text := range endpoints {
		s.Endpoints = append(s.Endpoints, endpointOf(t, port, text))
	}
	m := facettest.Mesh{Services: []facettest.Service{s}}
	if policy != "" {
		m.Rules = []string{`shop/web ` + webHost + ` {"trafficPolicy": {` + policy + `}}`}
	}
	return m
}

// endpointOf reads ADDRESS and what differs: *WEIGHT, REGION/ZONE/SUBZONE, LABEL=VALUE, @NETWORK, draining or plain.
func endpointOf(t *testing.T, port federation.Port, text string) federation.Endpoint {
	t.Helper()
	words := strings.Fields(text)
	e := facettest.Endpoint(words[0], port)
	e.TLSMode, e.Labels = federation.MutualTLS, map[string]string{}
	for _, word := range words[1:] {
		key, value, isLabel := strings.Cut(word, "=")
		switch {
		case isLabel:
			e.Labels[key] = value
		case word == "draining":
			e.Health = federation.Draining
		case word == "plain":
			e.TLSMode = ""
		case word[0] == '@':
			e.Network = federation.NetworkID(word[1:])
		case word[0] == '*':
			weight, err := strconv.ParseUint(word[1:], 10, 32)
			if err != nil {
				t.Fatal(err)
			}
			e.Weight = uint32(weight)
		default:
			e.Locality = federation.ParseLocality(word)
		}
	}
	return e
}

// near are proxies in the locality, of c1 in the default network.
func near(locality string) node.Facet {
	return node.Facet{
		Scope: node.ScopePublic, Place: node.Near, Cluster: "c1", Network: federation.DefaultNetwork,
		Locality: federation.ParseLocality(locality), Identity: true,
	}
}

// assigned is [PRIORITY] LOCALITY WEIGHT: ADDRESS*WEIGHT for each group of the endpoints of web.
func assigned(t *testing.T, v *facet.View) string {
	t.Helper()
	a, ok := Assignment(v, webName).(*endpointv3.ClusterLoadAssignment)
	if !ok {
		return "none"
	}
	var groups []string
	for _, g := range a.GetEndpoints() {
		l := g.GetLocality()
		at := strings.TrimRight(strings.Join([]string{l.GetRegion(), l.GetZone(), l.GetSubZone()}, "/"), "/")
		words := []string{strings.TrimSpace(fmt.Sprintf("[%d] %s", g.GetPriority(), at)), fmt.Sprint(g.GetLoadBalancingWeight().GetValue(), ":")}
		for _, e := range g.GetLbEndpoints() {
			word := e.GetEndpoint().GetAddress().GetSocketAddress().GetAddress()
			if weight := e.GetLoadBalancingWeight(); weight != nil {
				word += fmt.Sprint("*", weight.GetValue())
			}
			if e.GetHealthStatus().String() != "HEALTHY" {
				word += " " + strings.ToLower(e.GetHealthStatus().String())
			}
			words = append(words, word)
		}
		groups = append(groups, strings.ReplaceAll(strings.Join(words, " "), " :", ":"))
	}
	return strings.Join(groups, "; ")
}

// noted are the messages of all that is excluded.
func noted(v *facet.View) string {
	var all []string
	for _, reason := range v.Reasons {
		all = append(all, reason.Message)
	}
	return strings.Join(all, "; ")
}
