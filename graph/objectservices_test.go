package graph_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// boundRoute has hosts of its own and, by a wildcard, those of others; both are exposed by the Gateway.
const (
	frontGateway = "apiVersion: networking.istio.io/v1\nkind: Gateway\nmetadata: {name: front, namespace: edge}\n" +
		"spec: {selector: {istio: ingress}, servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: ['*']}]}"
	boundRoute = "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: bound, namespace: edge}\n" +
		"spec: {hosts: ['*.load.svc.cluster.local', s001.load.svc.cluster.local, gw.istio-system.svc.cluster.local], gateways: [edge/front]}"
)

// TestR103ObjectsAndServicesLeadToEachOther: the objects of a service have it among their services, and no others do. A Drain leads to
// the services that it drains.
func TestR103ObjectsAndServicesLeadToEachOther(t *testing.T) {
	c := linked(t)
	c.apply(routes(frontGateway, boundRoute))
	data := c.answer(`{
	  services(first:130){nodes{id hostname configObjects(first:10){nodes{id kind name}}}}
	  configObjects(first:12){totalCount nodes{id kind name services(first:130){totalCount nodes{id hostname}}}}}`, nil)
	list := func(of any, path ...any) (all []map[string]any) {
		for _, item := range at(of, append(path, "nodes")...).([]any) {
			all = append(all, item.(map[string]any))
		}
		return all
	}
	var forth, back []string
	for _, service := range list(data, "services") {
		for _, object := range list(service, "configObjects") {
			forth = append(forth, fmt.Sprint(object["kind"], " ", object["name"], " ", service["hostname"], " ", service["id"]))
		}
	}
	counts := map[string]float64{}
	for _, object := range list(data, "configObjects") {
		var hostnames []string
		for _, service := range list(object, "services") {
			hostnames = append(hostnames, service["hostname"].(string))
			if object["kind"] != "Drain" {
				back = append(back, fmt.Sprint(object["kind"], " ", object["name"], " ", service["hostname"], " ", service["id"]))
			}
		}
		if !slices.IsSorted(hostnames) {
			t.Errorf("the services of %s are %s", object["name"], hostnames)
		}
		counts[fmt.Sprint(object["kind"], " ", object["name"])] = at(object, "services", "totalCount").(float64)
	}
	slices.Sort(forth)
	slices.Sort(back)
	if diff := cmp.Diff(forth, back); diff != "" {
		t.Errorf("the objects of services differ from the services of objects (-objects +services):\n%s", diff)
	}
	for object, want := range map[string]float64{
		"VirtualService web": 2, "VirtualService all": 123, "VirtualService bound": 121, "Gateway front": 121, "Drain c2": 121, "Cluster c1": 0,
	} {
		if counts[object] != want {
			t.Errorf("%s has %g services, want %g", object, counts[object], want)
		}
	}
	const drain = `configObject(group:"isthmus.dev",kind:"Drain",name:"c2"){status{drain{services}} services(first:2){pageInfo{endCursor} nodes{hostname}}}`
	page := c.answer("{"+drain+"}", nil)
	c.want(page, counts["Drain c2"], "configObject", "status", "drain", "services")
	cursor := at(page, "configObject", "services", "pageInfo", "endCursor")
	next := c.answer(fmt.Sprintf(`{configObject(group:"isthmus.dev",kind:"Drain",name:"c2"){services(first:1,after:%q){nodes{hostname}}}}`, cursor), nil)
	c.want(next, "s002.load.svc.cluster.local", "configObject", "services", "nodes", 0, "hostname")
}
