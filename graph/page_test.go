package graph_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/fleet"
)

// list is a connection as a query reaches it, with a field that names a node.
type list struct{ name, open, shut, node string }

var lists = []list{
	{"clusters", "{", "}", "clusterID"},
	{"services", "{", "}", "hostname namespace"},
	{"proxies", "{", "}", "id"},
	{"services", `{cluster(clusterID:"c2"){`, "}}", "hostname namespace"},
	{"endpoints", `{cluster(clusterID:"c2"){`, "}}", "address weight"},
	{"endpoints", `{service(hostname:"web.shop.svc.cluster.local",namespace:"shop"){`, "}}", "address"},
	{"problems", `{cluster(clusterID:"c2"){`, "}}", "object"},
}

// configLists are those of a hub with a configuration.
var configLists = []list{
	{"configObjects", "{", "}", "namespace name revision"},
	{"history", "{", "}", "revision"},
	{"history", `{configObject(group:"networking.istio.io",kind:"VirtualService",namespace:"shop",name:"a"){`, "}}", "revision"},
}

// page asks for one page of the list.
func (l list) page(h hub, arguments string) map[string]any {
	h.t.Helper()
	data := h.answer("query "+l.open+l.name+"("+arguments+
		"){totalCount pageInfo{hasNextPage hasPreviousPage startCursor endCursor} edges{cursor node{"+l.node+"}}}"+l.shut, nil)
	for _, outer := range []string{"cluster", "service", "configObject"} {
		if inner, ok := data[outer].(map[string]any); ok {
			data = inner
		}
	}
	return data[l.name].(map[string]any)
}

// walk goes from page to page until there is none and returns every node.
// between is called after each page.
func (l list) walk(h hub, forward bool, size int, between func()) []string {
	h.t.Helper()
	way, behind := "first", "after"
	more, next := "hasNextPage", "endCursor"
	if !forward {
		way, behind = "last", "before"
		more, next = "hasPreviousPage", "startCursor"
	}
	var seen []string
	for arguments := fmt.Sprintf("%s:%d", way, size); ; {
		page := l.page(h, arguments)
		var nodes []string
		for _, edge := range page["edges"].([]any) {
			nodes = append(nodes, fmt.Sprint(at(edge, "node")))
		}
		if !forward {
			slices.Reverse(nodes)
		}
		seen = append(seen, nodes...)
		if at(page, "pageInfo", more) == false || len(nodes) == 0 {
			return seen
		}
		between()
		arguments = fmt.Sprintf("%s:%d,%s:%q", way, size, behind, at(page, "pageInfo", next))
	}
}

func TestPagesShowEveryNodeOnce(t *testing.T) {
	h := newHub(t)
	for _, l := range lists {
		l.showsEveryNodeOnce(h)
	}
	c := newConfigured(t, nil)
	for i := range 12 {
		c.apply(routes(route("shop", "a", fmt.Sprint(i)), route("shop", fmt.Sprint("r", i), "x")))
	}
	for _, l := range configLists {
		l.showsEveryNodeOnce(c.hub)
	}
}

func (l list) showsEveryNodeOnce(h hub) {
	for _, size := range []int{1, 2, 25, 500} {
		total := int(l.page(h, "first:1")["totalCount"].(float64))
		there, back := l.walk(h, true, size, func() {}), l.walk(h, false, size, func() {})
		slices.Reverse(back)
		if len(there) != total || !slices.Equal(there, back) {
			h.t.Errorf("%s%s by %d: %d nodes forward, %d back, %d counted", l.open, l.name, size, len(there), len(back), total)
		}
	}
}

// TestPagesOfHistoryHoldTheirPlace: new entries come before the front.
func TestPagesOfHistoryHoldTheirPlace(t *testing.T) {
	c := newConfigured(t, nil)
	for i := range 5 {
		c.apply(route("shop", "a", fmt.Sprint(i)))
	}
	for _, l := range configLists[1:] {
		before := l.walk(c.hub, true, 500, func() {})
		seen := l.walk(c.hub, true, 1, func() { c.apply(route("shop", "a", fmt.Sprint("v", c.engine.objects.Latest().Revision()))) })
		if !slices.Equal(seen, before) {
			t.Errorf("%s shows %v, not %v", l.open, seen, before)
		}
	}
}

// TestPagesHoldTheirPlaceWhileTheListChanges: what stays is shown once, however
// much is put before it or taken away, and whichever cluster wins conflicts.
func TestPagesHoldTheirPlaceWhileTheListChanges(t *testing.T) {
	for _, l := range lists {
		h := newHub(t)
		before := l.walk(h, true, 500, func() {})
		step := 0
		seen := l.walk(h, true, 1, func() {
			step++
			if step == 1 {
				grow(h)
			}
		})
		for _, node := range before {
			if n := count(seen, node); n != 1 {
				t.Errorf("%s%s shows %s %d times", l.open, l.name, node, n)
			}
		}
	}
}

func count(all []string, one string) (n int) {
	for _, other := range all {
		if other == one {
			n++
		}
	}
	return n
}

// grow puts something before the front of every list, and turns the precedence
// of the clusters round.
func grow(h hub) {
	h.source.next(federation.Edit{Clusters: federation.Delta[federation.ClusterID, federation.ClusterSpec]{
		Set: map[federation.ClusterID]federation.ClusterSpec{
			"c0": {Provider: federation.Kubernetes}, "c1": {Provider: federation.Kubernetes, Network: "n1", Precedence: 900},
		},
	}})
	ofFirst, ofSecond := services()
	ofFirst[web].Endpoints = append(ofFirst[web].Endpoints, endpoint("n1", "9.0.0.1"), endpoint("n1", "9.0.0.2"))
	ofSecond[web].Endpoints = append(ofSecond[web].Endpoints, endpoint("n2", "9.0.0.3"))
	a := federation.ServiceKey{Hostname: "a.shop.svc.cluster.local", Namespace: "shop"}
	ofSecond[a] = shard("10.2.0.77/32", endpoint("n2", "9.0.0.4"))
	h.source.next(federation.Edit{Source: first, Services: federation.Delta[federation.ServiceKey, *federation.Shard]{Set: ofFirst}})
	h.source.next(federation.Edit{
		Source: second, Services: federation.Delta[federation.ServiceKey, *federation.Shard]{Set: ofSecond},
		Problems: federation.Delta[string, federation.Problem]{Set: map[string]federation.Problem{"b": {Code: "A", Object: "Service a/a"}}},
	})
	h.fleet.Connect(fleet.Proxy{NodeID: "ingress~1", Type: "ingress"})
}

func TestWalkGoesOnBehindWhatIsGone(t *testing.T) {
	h := newHub(t)
	l := lists[5]
	cursor := at(l.page(h, "first:1"), "pageInfo", "endCursor")
	rest, _ := services()
	rest[web].Endpoints = rest[web].Endpoints[1:]
	h.source.next(federation.Edit{Source: first, Services: federation.Delta[federation.ServiceKey, *federation.Shard]{Set: rest}})
	page := l.page(h, fmt.Sprintf("first:1,after:%q", cursor))
	h.want(page, "10.0.0.2", "edges", 0, "node", "address")
	h.want(page, 2.0, "totalCount")
}

func TestBG08ForeignCursorsAreRefused(t *testing.T) {
	h := newHub(t)
	own := at(h.answer("{services(first:1){pageInfo{endCursor}}}", nil), "services", "pageInfo", "endCursor").(string)
	endpoints := at(lists[4].page(h, "first:1"), "pageInfo", "endCursor")
	refused := map[string]any{
		"empty": "", "text": "x", "short": "AAAA", "long": strings.Repeat("A", 9000), "NUL": "\x00", "not ASCII": "ä",
		"cut": own[:len(own)-2], "with more": own + "AA", "changed": "B" + own[1:], "padded": own + "==",
		"of clusters":              at(h.answer("{clusters(first:1){pageInfo{endCursor}}}", nil), "clusters", "pageInfo", "endCursor"),
		"of a cluster's services":  at(lists[3].page(h, "first:1"), "pageInfo", "endCursor"),
		"of a cluster's endpoints": endpoints,
	}
	for _, side := range []string{"after", "before"} {
		query := "query($c:String){services(" + side + ":$c){totalCount}}"
		for name, cursor := range refused {
			if _, errs := h.ask(query, map[string]any{"c": cursor}); !strings.Contains(errs, `"BAD_USER_INPUT"`) {
				t.Errorf("the cursor %s is answered with %s", name, errs)
			}
		}
		h.answer(query, map[string]any{"c": own})
		h.answer(query, map[string]any{"c": nil})
	}
	other := `query($c:String){cluster(clusterID:"c1"){endpoints(after:$c){totalCount}}}`
	if _, errs := h.ask(other, map[string]any{"c": endpoints}); !strings.Contains(errs, `"BAD_USER_INPUT"`) {
		t.Errorf("a cursor of another cluster's endpoints is answered with %s", errs)
	}
}

func TestBG07SizesOutOfBoundsAreRefused(t *testing.T) {
	h := newHub(t)
	for _, l := range lists {
		for _, arguments := range []string{"first:0", "first:501", "last:-1", "first:1,last:1"} {
			if _, errs := h.ask("query "+l.open+l.name+"("+arguments+"){totalCount}"+l.shut, nil); !strings.Contains(errs, `"BAD_USER_INPUT"`) {
				t.Errorf("%s%s(%s) is answered with %s", l.open, l.name, arguments, errs)
			}
		}
		if got := len(l.walk(h, true, 500, func() {})); got > 50 {
			if shown := len(l.page(h, "first:null")["edges"].([]any)); shown != 50 {
				t.Errorf("a page of %s that names no size has %d", l.name, shown)
			}
		}
	}
}
