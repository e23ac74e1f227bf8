package graph_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"isthmus.dev/isthmus/federation"
)

func TestServiceFilters(t *testing.T) {
	h := newHub(t)
	for filter, want := range map[string]float64{
		`{}`: 122, `{clusterID:"c1"}`: 1, `{clusterID:"c2"}`: 122, `{networkID:"n1"}`: 1, `{networkID:"n2"}`: 121, `{networkID:"default"}`: 0,
		`{namespace:""}`: 1, `{namespace:"load"}`: 120, `{hostnameContains:"s01"}`: 10, `{hostnameContains:"S01"}`: 10, `{provider:CONSUL}`: 0,
		`{provider:KUBERNETES,clusterID:"c1"}`: 1, `{hasConflicts:true}`: 1, `{hasConflicts:false}`: 121,
		`{namespace:null,hasConflicts:null}`: 122, `{clusterID:"c1",namespace:"load"}`: 0,
	} {
		for _, list := range []string{"services(filter:" + filter + ")", "services(first:1,filter:" + filter + ")"} {
			data := h.answer("{"+list+"{totalCount pageInfo{hasNextPage} nodes{hostname}}}", nil)
			h.want(data, want, "services", "totalCount")
		}
		byCluster := h.answer(`{cluster(clusterID:"c2"){services(filter:`+filter+`){totalCount}}}`, nil)
		if filter != `{networkID:"n1"}` && at(byCluster, "cluster", "services", "totalCount") != want {
			t.Errorf("%s finds %v in the cluster, want %v", filter, byCluster, want)
		}
	}
}

func TestEndpointFilters(t *testing.T) {
	h := newHub(t)
	for filter, want := range map[string]float64{
		`{}`: 3, `{clusterID:"c2"}`: 1, `{networkID:"n1"}`: 2, `{networkID:"default"}`: 0, `{locality:{zone:"z1"}}`: 2, `{locality:{}}`: 3,
		`{locality:{region:"r1",zone:"z2",subZone:""}}`: 1, `{locality:{subZone:"s"}}`: 0, `{labels:[]}`: 3,
		`{labels:[{key:"v",value:"1"}]}`: 2, `{labels:[{key:"v",value:"1"},{key:"w",value:"1"}]}`: 0,
		`{labels:[{key:"v",value:"1"},{key:"app",value:"web"}]}`: 2,
		`{health:HEALTHY}`: 2, `{health:DRAINING}`: 1, `{health:UNHEALTHY}`: 0, `{health:DRAINING,clusterID:"c1"}`: 0,
	} {
		data := h.answer(`{service(hostname:"web.shop.svc.cluster.local",namespace:"shop"){endpoints(filter:`+filter+
			`){totalCount nodes{address}}}}`, nil)
		h.want(data, want, "service", "endpoints", "totalCount")
		if nodes := at(data, "service", "endpoints", "nodes").([]any); float64(len(nodes)) != want {
			t.Errorf("%s shows %v", filter, nodes)
		}
	}
	data := h.answer(`{cluster(clusterID:"c2"){endpoints(first:3,filter:{labels:[{key:"app",value:"web"}]}){totalCount nodes{address}}}}`, nil)
	h.want(data, map[string]any{"totalCount": 1.0, "nodes": []any{map[string]any{"address": "10.0.1.1"}}}, "cluster", "endpoints")
}

// TestU93NetworksAndGatewaysOfACluster: a network has the clusters that it shows, and a gateway the cluster whose service declares it.
func TestU93NetworksAndGatewaysOfACluster(t *testing.T) {
	c := linked(t) // the gateway of n1 is of a service of c1, and that of n2 of a Network object
	shows := `{totalCount nodes{networkID}}`
	for query, want := range map[string]string{
		`networks(filter:{clusterID:"c1"})`:                             "n1",
		`networks(filter:{clusterID:"c2"})`:                             "n2",
		`networks(filter:{clusterID:"c2",hasUnreachableGateway:false})`: "n2",
		`networks(filter:{clusterID:"c2",hasUnreachableGateway:true})`:  "",
		`networks(filter:{clusterID:"c3"})`:                             "",
		`networks(filter:{clusterID:null})`:                             "default n1 n2",
		`gateways(filter:{clusterID:"c1"})`:                             "n1",
		`gateways(filter:{clusterID:"c1",networkID:"n2"})`:              "",
		`gateways(filter:{clusterID:"c1",unreachable:true})`:            "",
		`gateways(filter:{clusterID:"c2"})`:                             "",
		`gateways(filter:{clusterID:""})`:                               "n2",
		`gateways(filter:{clusterID:null})`:                             "n1 n2",
	} {
		name, _, _ := strings.Cut(query, "(")
		shown := at(c.answer("{"+query+shows+"}", nil), name)
		var got []string
		for _, one := range at(shown, "nodes").([]any) {
			got = append(got, fmt.Sprint(at(one, "networkID")))
		}
		if strings.Join(got, " ") != want || at(shown, "totalCount") != float64(len(got)) {
			t.Errorf("%s: %v, want %q", query, shown, want)
		}
	}
}

// TestU93EndpointsOfAnAddress: every list of endpoints finds those of an IP address, in whatever form it is written.
func TestU93EndpointsOfAnAddress(t *testing.T) {
	h := newHub(t)
	named := endpoint("n2", "10.0.1.3")
	named.Address = federation.HostAddress("db.example.com")
	elsewhere := endpoint("n2", "10.0.1.4") // as a ServiceBinding makes it
	elsewhere.Cluster = "c1"
	h.source.next(federation.Edit{Source: second, Services: federation.Delta[federation.ServiceKey, *federation.Shard]{
		Set: map[federation.ServiceKey]*federation.Shard{
			{Hostname: "six.shop.svc.cluster.local", Namespace: "shop"}:  shard("10.2.0.6/32", endpoint("n2", "fd00::a:1"), named, elsewhere),
			{Hostname: "also.shop.svc.cluster.local", Namespace: "shop"}: shard("10.2.0.7/32", endpoint("n2", "10.0.1.1")),
		},
	}})
	lists := map[string]func(list string) string{
		"mesh":    func(list string) string { return "{" + list + "}" },
		"cluster": func(list string) string { return `{cluster(clusterID:"c2"){` + list + "}}" },
		"network": func(list string) string { return `{network(networkID:"n2"){` + list + "}}" },
		"service": func(list string) string {
			return `{service(hostname:"six.shop.svc.cluster.local",namespace:"shop"){` + list + "}}"
		},
	}
	for address, want := range map[string]int{
		"10.0.1.1": 2, "::ffff:10.0.1.1": 2, "10.0.1.9": 0, "fd00::a:1": 1, "FD00:0:0:0:0:0:A:1": 1, "fd00::a:2": 0,
	} {
		for name, list := range lists {
			data := h.answer(list(fmt.Sprintf("endpoints(filter:{address:%q}){totalCount nodes{address}}", address)), nil)
			found, expected := at(data, "endpoints"), want
			if name != "mesh" {
				found = at(data, name, "endpoints")
			}
			shown := netip.MustParseAddr(address).Unmap()
			if name == "service" && shown.Is4() {
				expected = 0 // they are of other services
			}
			nodes := at(found, "nodes").([]any)
			if len(nodes) != expected || at(found, "totalCount") != float64(expected) {
				t.Errorf("%s of the %s: %v, want %d", address, name, found, expected)
			}
			for _, node := range nodes {
				h.want(node.(map[string]any), shown.String(), "address")
			}
		}
	}
	data := h.answer(`{endpoints(filter:{address:"10.0.1.1",health:DRAINING}){totalCount}}`, nil)
	h.want(data, 1.0, "endpoints", "totalCount")
	data = h.answer(`{cluster(clusterID:"c1"){endpoints(filter:{address:"10.0.1.1"}){totalCount}}}`, nil)
	h.want(data, 0.0, "cluster", "endpoints", "totalCount")
	data = h.answer(`{endpoints(filter:{address:"10.0.1.4",clusterID:"c1"}){nodes{clusterID}}}`, nil)
	h.want(data, "c1", "endpoints", "nodes", 0, "clusterID")
	data = h.answer(`{endpoints(filter:{address:"10.0.1.4",clusterID:"c2"}){totalCount}}`, nil)
	h.want(data, 0.0, "endpoints", "totalCount")
	for address, why := range map[string]string{
		"db.example.com": "not an IP address in its usual form", "": "not an IP address in its usual form",
		"10.0.1.1/32": "not an IP address in its usual form", "10.0.01.1": "not an IP address in its usual form",
		"fe80::1%eth0": "an IP address with a zone",
	} {
		for name, list := range lists {
			_, errs := h.ask(list(fmt.Sprintf("endpoints(filter:{address:%q}){totalCount}", address)), nil)
			if !strings.Contains(errs, "BAD_USER_INPUT") || !strings.Contains(errs, fmt.Sprintf(`"filter.address: \"%s\" is %s`, address, why)) {
				t.Errorf("%q in the %s: %s", address, name, errs)
			}
		}
	}
}
