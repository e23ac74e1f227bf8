package xds

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/xds/envoy"
	"isthmus.dev/isthmus/xds/xdstest"
)

// previewed is a preview as "ACTION name" of each resource.
func previewed(p Preview) []string {
	var all []string
	for _, r := range p.Resources {
		action := "update"
		switch {
		case r.Before == nil:
			action = "create"
		case r.After == nil:
			action = "delete"
		}
		all = append(all, fmt.Sprintf("%s %s", action, r.Name))
	}
	slices.Sort(all)
	return all
}

// What a preview says is what the proxy gets when the change is made.
func TestPreviewIsWhatTheProxyGets(t *testing.T) {
	h := newHub(t)
	h.set(service("web", 1), service("other", 2))
	c := h.client(xdstest.Options{Delta: true, Node: node("web-1")})
	c.get(xdstest.Request{Type: xdstest.CDS})
	c.get(xdstest.Request{Type: xdstest.LDS})
	dns := httpShard(3)
	dns.Resolution = federation.DNSLB
	edit := federation.Edit{Source: source1, Services: serviceDelta{
		Set:  map[federation.ServiceKey]*federation.Shard{key("web"): dns, key("new"): httpShard(4)},
		Gone: []federation.ServiceKey{key("other")},
	}}
	before := h.aggregate.Latest()
	after, _ := federation.Next(before, edit)
	p, err := h.server.Preview(t.Context(), before, after)
	want := []string{
		"create " + cluster("new"), "create " + cluster("new"), "delete " + cluster("other"), "delete " + cluster("other"),
		"delete " + cluster("web"), "update 80", "update " + cluster("web"),
	}
	if got := previewed(p); err != nil || !slices.Equal(got, want) {
		t.Errorf("%v:\n%s\nwant\n%s", err, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if len(p.Proxies) != 1 || p.Proxies[0].NodeID != node("web-1").Id {
		t.Errorf("the proxies are %q", p.Proxies)
	}
	h.writer.Update(edit)
	r := c.accept(xdstest.CDS)
	if got := r.Names(); !slices.Equal(got, []string{cluster("new"), cluster("web")}) {
		t.Errorf("the proxy gets the clusters %q", got)
	}
}

func TestPreviewOfASidecarComparesWholeFacets(t *testing.T) {
	h := newHub(t)
	h.set(service("web", 1))
	c := h.client(xdstest.Options{Delta: true, Node: node("web-1")})
	c.get(xdstest.Request{Type: xdstest.CDS})
	o := &federation.Object{
		Key:  federation.ObjectKey{Group: "networking.istio.io", Kind: "Sidecar", Namespace: "shop", Name: "none"},
		Spec: &networking.Sidecar{Egress: []*networking.IstioEgressListener{{Hosts: []string{"~/*"}}}},
	}
	before := h.aggregate.Latest()
	after, _ := federation.Next(before, federation.Edit{Objects: federation.Delta[federation.ObjectKey, *federation.Object]{
		Set: map[federation.ObjectKey]*federation.Object{o.Key: o},
	}})
	p, err := h.server.Preview(t.Context(), before, after)
	if got := previewed(p); err != nil || !slices.Contains(got, "delete "+cluster("web")) || len(p.Proxies) != 1 {
		t.Errorf("%v: %q for %q", err, got, p.Proxies)
	}
}

func TestPreviewOfNothing(t *testing.T) {
	h := newHub(t)
	h.set(service("web", 1))
	c := h.client(xdstest.Options{Delta: true, Node: node("web-1")})
	c.get(xdstest.Request{Type: xdstest.CDS})
	before := h.aggregate.Latest()
	if p, err := h.server.Preview(t.Context(), before, before); err != nil || len(p.Resources)+len(p.Proxies) > 0 {
		t.Errorf("%v: %+v", err, p)
	}
}

// TestPreviewReadsTheFleet: who is connected, and as which node, is a value that no stream is asked for.
func TestPreviewReadsTheFleet(t *testing.T) {
	h := newHub(t)
	h.set(service("web", 1))
	web, err := envoy.ParseNode(node("web-1"))
	if err != nil {
		t.Fatal(err)
	}
	h.fleet.Connect(fleet.Proxy{NodeID: "of another kind"})
	stream := h.fleet.Connect(proxyOf(&web, true))
	before := h.aggregate.Latest()
	after, _ := federation.Next(before, federation.Edit{Source: source1, Services: serviceDelta{Gone: []federation.ServiceKey{key("web")}}})
	if p, err := h.server.Preview(t.Context(), before, after); err != nil || len(p.Proxies) != 1 || p.Proxies[0].NodeID != web.ID {
		t.Errorf("%v: the proxies are %q", err, p.Proxies)
	}
	stream.Close()
	if p, err := h.server.Preview(t.Context(), before, after); err != nil || len(p.Proxies) != 0 {
		t.Errorf("%v: after its end the proxies are %q", err, p.Proxies)
	}
}

// A route configuration is built of parts: what a VirtualService changes in one
// of them is foreseen, sent, and shown to be with the proxy.
func TestAVirtualServiceIsForeseenAndFollowed(t *testing.T) {
	bothVariants(t, func(t *testing.T, delta bool) {
		h := newHub(t)
		set := map[federation.ServiceKey]*federation.Shard{key("web"): httpShard(1), key("other"): httpShard(2)}
		for _, shard := range set {
			shard.Ports[0].Number = 8080 // on port 80 hosts come and go that are not services
		}
		h.set(serviceDelta{Set: set})
		c := h.client(xdstest.Options{Delta: delta, Node: node("web-1")})
		c.get(xdstest.Request{Type: xdstest.CDS})
		c.get(xdstest.Request{Type: xdstest.RDS, Names: []string{"8080"}})
		web, other := string(key("web").Hostname), string(key("other").Hostname)
		o := routed(ruleKey(1), web, other)
		for _, to := range []string{other, web} { // made, and changed
			o = routed(o.Key, web, to)
			edit := federation.Edit{Objects: federation.Delta[federation.ObjectKey,
				*federation.Object]{Set: map[federation.ObjectKey]*federation.Object{o.Key: o}}}
			before := h.aggregate.Latest()
			after, _ := federation.Next(before, edit)
			p, err := h.server.Preview(t.Context(), before, after)
			if got := previewed(p); err != nil || !slices.Equal(got, []string{"update 8080"}) || len(p.Proxies) != 1 {
				t.Errorf("%v: %q for %q", err, got, p.Proxies)
			}
			h.writer.Update(edit)
			c.accept(xdstest.RDS)
			h.becomes("accepted", h.objectProgress(o.Key), fleet.Accepted)
		}
	})
}
