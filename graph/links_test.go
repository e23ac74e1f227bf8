package graph_test

import (
	"fmt"
	"testing"
)

// TestU59NetworksLeadToWhatIsInThem: the services and endpoints of a network are those that filters for the network find, in
// pages and filtered further.
func TestU59NetworksLeadToWhatIsInThem(t *testing.T) {
	h := hubOver(t, bridged(t), proxies())
	for _, id := range []string{"n1", "n2"} {
		for part, of := range map[string]string{"services": `, hasConflicts: false`, "endpoints": `, health: HEALTHY`} {
			for _, more := range []string{"", of} {
				for _, page := range []string{"first: 500", "last: 3"} {
					given := page
					if more != "" {
						given += ", filter: {" + more[2:] + "}"
					}
					data := h.answer(fmt.Sprintf(`{all: %[1]s(%[2]s, filter: {networkID: %[3]q%[4]s}) {totalCount nodes {id}}
					  network(networkID: %[3]q) {in: %[1]s(%[5]s) {totalCount nodes {id}}}}`, part, page, id, more, given), nil)
					if got, want := at(data, "network", "in"), at(data, "all"); fmt.Sprint(got) != fmt.Sprint(want) || at(got, "totalCount") == 0.0 && more == "" {
						t.Errorf("%s of %s, %s: %v, want %v", part, id, given, got, want)
					}
				}
			}
		}
	}
	l := list{"endpoints", `{network(networkID:"n2"){`, "}}", "id"}
	data := h.answer(`{network(networkID:"n2"){endpoints(first:2){totalCount nodes{address service{hostname} network{networkID}} pageInfo{endCursor}}}}`, nil)
	h.want(data, map[string]any{"address": "10.0.2.0", "service": map[string]any{"hostname": "s000.load.svc.cluster.local"}, "network": map[string]any{"networkID": "n2"}},
		"network", "endpoints", "nodes", 0)
	next := h.answer(l.open+fmt.Sprintf("endpoints(first:1,after:%q){nodes{address}}", at(data, "network", "endpoints", "pageInfo", "endCursor"))+l.shut, nil)
	h.want(next, []any{map[string]any{"address": "10.0.2.2"}}, "network", "endpoints", "nodes")
}

// TestU59ExplanationsLeadToProxyAndService: to the latest stream of the proxy, and to the service that the hostname means.
func TestU59ExplanationsLeadToProxyAndService(t *testing.T) {
	data := explaining(t).answer(`query($p:String!){explain(proxy:$p,hostname:"web.shop.svc.cluster.local",port:80){
	  proxy{nodeID cluster{clusterID}} service{hostname namespace endpoints{totalCount}}}}`, map[string]any{"p": sidecarID})
	h := hub{t: t}
	h.want(data, map[string]any{
		"proxy":   map[string]any{"nodeID": sidecarID, "cluster": map[string]any{"clusterID": "c1"}},
		"service": map[string]any{"hostname": "web.shop.svc.cluster.local", "namespace": "shop", "endpoints": map[string]any{"totalCount": 3.0}},
	}, "explain")
}
