package graph_test

import "testing"

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
