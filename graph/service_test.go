package graph_test

import (
	"strings"
	"testing"

	"isthmus.dev/isthmus/federation"
)

const webQuery = `{service(hostname:"web.shop.svc.cluster.local",namespace:"shop"){contentHash}}`

func TestEqualContentHasAnEqualHash(t *testing.T) {
	h := newHub(t)
	version := at(h.answer(webQuery, nil), "service", "contentHash")
	if again := at(newHub(t).answer(webQuery, nil), "service", "contentHash"); version == "" || again != version {
		t.Errorf("equal content has the hashes %v and %v", version, again)
	}
	h.source.next(federation.Edit{Source: first, Status: &federation.RegistryStatus{Phase: federation.Stale}})
	h.want(h.answer(webQuery, nil), version, "service", "contentHash")
	changed, _ := services()
	changed[web].Endpoints = changed[web].Endpoints[:1]
	h.source.next(federation.Edit{Source: first, Services: federation.Delta[federation.ServiceKey, *federation.Shard]{Set: changed}})
	if now := at(h.answer(webQuery, nil), "service", "contentHash"); now == version {
		t.Error("other content has the same hash")
	}
}

func TestServiceByHostnameAlone(t *testing.T) {
	h := newHub(t)
	for _, hostname := range []string{"s001.load.svc.cluster.local", "S001.load.SVC.cluster.local."} {
		h.want(h.answer("query($h:String!){service(hostname:$h){namespace}}", map[string]any{"h": hostname}), "load", "service", "namespace")
	}
	for _, query := range []string{
		`{service(hostname:"no.such"){id}}`, `{service(hostname:""){id}}`,
		`{service(hostname:"s001.load.svc.cluster.local",namespace:"shop"){id}}`,
	} {
		h.want(h.answer(query, nil), nil, "service")
	}
	h.want(h.answer(`{service(hostname:"web.shop.svc.cluster.local",namespace:""){namespace}}`, nil), "", "service", "namespace")
}

func TestHostnameOfSeveralNamespacesIsRefused(t *testing.T) {
	data, errs := newHub(t).ask(`{service(hostname:"web.shop.svc.cluster.local"){id} hub{version}}`, nil)
	for _, part := range []string{`"BAD_USER_INPUT"`, `\"\"`, `\"shop\"`, `["service"]`} {
		if !strings.Contains(errs, part) {
			t.Errorf("the error %s lacks %s", errs, part)
		}
	}
	if at(data, "hub", "version") != "test" || data["service"] != nil {
		t.Errorf("beside the error stands %v", data)
	}
}

func TestServiceShowsWhatEachSourceSays(t *testing.T) {
	h := newHub(t)
	data := h.answer(`{service(hostname:"web.shop.svc.cluster.local",namespace:"shop"){exportTo serviceAccounts createdAt
	  shards{clusterID provider resolution meshExternal uid createdAt labels{key} endpointCount}}}`, nil)
	source := func(id string, endpoints float64) map[string]any {
		return map[string]any{
			"clusterID": id, "provider": "KUBERNETES", "resolution": "CLIENT_SIDE_LB", "meshExternal": false,
			"uid": nil, "createdAt": nil, "labels": []any{}, "endpointCount": endpoints,
		}
	}
	h.want(data, map[string]any{
		"exportTo": []any{}, "serviceAccounts": []any{"spiffe://shop/web"}, "createdAt": nil, "shards": []any{source("c1", 2), source("c2", 1)},
	}, "service")
}
