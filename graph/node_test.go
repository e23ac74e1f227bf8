package graph_test

import (
	"testing"

	"isthmus.dev/isthmus/graph/model"
)

func TestNodesAreFoundAgain(t *testing.T) {
	h := newHub(t)
	data := h.answer("{clusters{nodes{id}} services{nodes{id}} proxies{nodes{id}}}", nil)
	for list, kind := range map[string]string{"clusters": "Cluster", "services": "Service", "proxies": "Proxy"} {
		for i := range at(data, list, "nodes").([]any) {
			id := at(data, list, "nodes", i, "id")
			found := h.answer("query($id:ID!){node(id:$id){__typename id}}", map[string]any{"id": id})
			h.want(found, map[string]any{"__typename": kind, "id": id}, "node")
		}
	}
}

func TestConfigObjectsAreFoundAgain(t *testing.T) {
	c := newConfigured(t, nil)
	c.apply(routes(route("shop", "a", "x"), route("edge", "a", "x")))
	for _, node := range at(c.answer("{configObjects{nodes{id namespace name}}}", nil), "configObjects", "nodes").([]any) {
		found := c.answer("query($id:ID!){node(id:$id){__typename id ...on ConfigObject{namespace name}}}", map[string]any{"id": at(node, "id")})
		c.want(found, map[string]any{
			"__typename": "ConfigObject", "id": at(node, "id"), "namespace": at(node, "namespace"),
			"name": at(node, "name"),
		}, "node")
	}
	for _, name := range []string{
		"", "a", networking + "\x00VirtualService\x00shop\x00gone",
		networking + "\x00VirtualService\x00shop\x00a\x00b",
	} {
		c.want(c.answer("query($id:ID!){node(id:$id){id}}", map[string]any{"id": model.ID("ConfigObject", name)}), nil, "node")
	}
}

func TestBG21OtherIDsAreNobodys(t *testing.T) {
	h := newHub(t)
	for _, id := range []string{
		"", "x", "ä", model.ID("Secret", "a"), model.ID("Service", "a"), model.ID("Cluster", "c9"), model.ID("Cluster", "c1") + "=",
		model.ID("Service", string(web.Hostname)), model.ID("Service", string(web.Hostname)+"\x00shop\x00more"),
		model.ID("Proxy", sidecarID), model.ID("Proxy", ""),
	} {
		h.want(h.answer("query($id:ID!){node(id:$id){id}}", map[string]any{"id": id}), nil, "node")
	}
}
