package status_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/internal/identity"
)

// subject is an object of the cluster, and specs that it may have.
type subject struct {
	key   federation.ObjectKey
	specs []string
}

const refusedHeader = `"headers":{"request":{"set":{"x-refused":"1"}}},`

var subjects = []subject{
	{federation.VirtualServiceKind.Key("shop", "web"), []string{
		`{"hosts":["web"],"http":[{"route":[{"destination":{"host":"web"}}]}]}`,
		`{"hosts":["web"],"http":[{` + refusedHeader + `"route":[{"destination":{"host":"web"}}]}]}`,
		`{"hosts":["web"],"http":[{"route":[{"destination":{"host":"nowhere"}}]}]}`,
		`{"hosts":["web.example"],"gateways":["first"],"http":[{"route":[{"destination":{"host":"web"}}]}]}`,
	}},
	{federation.VirtualServiceKind.Key("shop", "late"), []string{
		`{"hosts":["web"],"http":[{` + refusedHeader + `"route":[{"destination":{"host":"web"}}]}]}`,
		`{"hosts":["*"],"gateways":["first","second"],"http":[{` + refusedHeader + `"route":[{"destination":{"host":"web"}}]}]}`,
	}},
	{federation.GatewayKind.Key("shop", "first"), []string{gatewayOf("edge", 8080), gatewayOf("other", 8080), gatewayOf("edge", 8081)}},
	{federation.GatewayKind.Key("shop", "second"), []string{gatewayOf("edge", 8080), gatewayOf("edge", 8443)}},
	{federation.ServiceEntryKind.Key("shop", "outside"), []string{
		`{"hosts":["a.example"],"ports":[{"number":80,"name":"http","protocol":"HTTP"}],"resolution":"DNS"}`,
		`{"hosts":["web.shop.svc.cluster.local"],"ports":[{"number":80,"name":"http","protocol":"HTTP"}],"resolution":"STATIC",` +
			`"endpoints":[{"address":"10.9.0.1"}]}`,
	}},
	{federation.DestinationRuleKind.Key("shop", "web"), []string{
		`{"host":"web","trafficPolicy":{"loadBalancer":{"simple":"ROUND_ROBIN"}}}`, `{"host":"nowhere"}`,
	}},
	{federation.EnvoyFilterKind.Key("shop", "patch"), []string{
		`{"configPatches":[{"applyTo":"CLUSTER","patch":{"operation":"MERGE","value":{"alt_stat_name":"x-refused"}}}]}`,
		`{"configPatches":[{"applyTo":"LISTENER","match":{"context":"GATEWAY"},"patch":{"operation":"MERGE","value":{"stat_prefix":"x"}}}]}`,
	}},
	{federation.GatewayAPI.GatewayClass.Key("", "mesh"), []string{
		`{"controllerName":"isthmus.dev/gateway-controller"}`, `{"controllerName":"example.com/other"}`,
	}},
	{federation.GatewayAPI.Gateway.Key("shop", "edge"), []string{
		`{"gatewayClassName":"mesh","listeners":[{"name":"http","port":8080,"protocol":"HTTP"}]}`,
		`{"gatewayClassName":"mesh","listeners":[{"name":"http","port":8082,"protocol":"HTTP"},` +
			`{"name":"https","port":8443,"protocol":"HTTPS","tls":{"certificateRefs":[{"name":"cert"}]}}]}`,
	}},
	{federation.GatewayAPI.ListenerSet.Key("shop", "more"), []string{
		`{"parentRef":{"name":"edge"},"listeners":[{"name":"next","port":8083,"protocol":"HTTP"}]}`,
	}},
	{federation.GatewayAPI.HTTPRoute.Key("shop", "web"), []string{
		`{"parentRefs":[{"name":"edge"}],"rules":[{"backendRefs":[{"name":"web","port":80}]}]}`,
		`{"parentRefs":[{"name":"edge"}],"rules":[{"backendRefs":[{"name":"nowhere","port":80}]}]}`,
		`{"parentRefs":[{"name":"edge"}],"rules":[{"filters":[{"type":"RequestHeaderModifier","requestHeaderModifier":` +
			`{"set":[{"name":"x-refused","value":"1"}]}}],"backendRefs":[{"name":"web","port":80}]}]}`,
	}},
	{federation.GatewayAPI.HTTPRoute.Key("shop", "api"), []string{
		`{"parentRefs":[{"name":"edge"}],"rules":[{"matches":[{"path":{"value":"/api"}}],"backendRefs":[{"name":"web","port":80}]}]}`,
	}},
}

func gatewayOf(proxies string, port int) string {
	return fmt.Sprintf(`{"selector":{%q:%q},"servers":[{"port":{"number":%d,"name":"http","protocol":"HTTP"},"hosts":["*"]}]}`,
		federation.GatewayLabel, proxies, port)
}

// nodes are the proxies that may connect.
var nodes = map[string]map[string]any{
	"sidecar~10.1.0.1~web.shop~shop.svc.cluster.local": {
		"CLUSTER_ID": "c1", "NAMESPACE": "shop", "LABELS": map[string]any{"app": "web"},
	},
	"router~10.1.0.9~edge.shop~shop.svc.cluster.local": {
		"CLUSTER_ID": "c1", "NAMESPACE": "shop", "LABELS": map[string]any{federation.GatewayLabel: "edge"},
	},
	"router~10.1.0.8~edge2.shop~shop.svc.cluster.local": {
		"CLUSTER_ID": "c1", "NAMESPACE": "shop", "LABELS": map[string]any{federation.GatewayLabel: "edge"},
	},
}

var nodeIDs = []string{
	"sidecar~10.1.0.1~web.shop~shop.svc.cluster.local", "router~10.1.0.9~edge.shop~shop.svc.cluster.local",
	"router~10.1.0.8~edge2.shop~shop.svc.cluster.local",
}

var settings = []string{
	`{"sources":[{"cluster":"c1","namespaces":["*"],"status":true,"scope":"MESH"}]}`,
	`{"sources":[{"cluster":"c1","namespaces":["*"],"status":true,"scope":"MESH"}],"envoyFilters":{"namespaces":["*"]}}`,
	`{"sources":[{"cluster":"c1","namespaces":["*"],"scope":"MESH"}]}`,
}

// event is something that happens to a hub.
type event struct {
	name string
	do   func(h *hub)
}

// drawEvent draws what happens: half of it is about objects.
func drawEvent(t *rapid.T) event {
	switch rapid.IntRange(0, 15).Draw(t, "what") {
	case 0, 1, 2, 3, 4:
		return drawObject(t)
	case 5:
		return drawCopy(t)
	case 6, 7, 8:
		id, refuses := rapid.SampledFrom(nodeIDs).Draw(t, "proxy"), rapid.Bool().Draw(t, "refuses")
		return event{fmt.Sprintf("connects or leaves (refuses: %t): %s", refuses, id), func(h *hub) { h.connect(id, nodes[id], refuses) }}
	case 9, 10:
		id, waits := rapid.SampledFrom(nodeIDs).Draw(t, "proxy"), rapid.Bool().Draw(t, "waits")
		return event{fmt.Sprintf("answers later (%t): %s", waits, id), func(h *hub) {
			if p := h.proxies[id]; p != nil {
				p.wait(waits)
			}
		}}
	case 11:
		name, endpoints := rapid.SampledFrom([]string{"web", "edge", "nowhere"}).Draw(t, "service"), rapid.IntRange(-1, 2).Draw(t, "endpoints")
		external := rapid.SampledFrom([][]string{nil, {"192.0.2.1"}, {"192.0.2.2"}}).Draw(t, "external")
		return event{
			fmt.Sprintf("service %s has %d endpoints, %v", name, endpoints, external),
			func(h *hub) { h.service(name, endpoints, external...) },
		}
	case 12:
		return drawWorkload(t)
	case 13:
		return drawProblem(t)
	case 14:
		spec := rapid.SampledFrom(settings).Draw(t, "settings")
		return event{"settings " + spec, func(h *hub) {
			h.set(spec)
		}}
	}
	return drawHub(t)
}

// drawHub changes what hubs there are, and how the hub reaches the cluster.
func drawHub(t *rapid.T) event {
	is := rapid.Bool().Draw(t, "is")
	switch rapid.IntRange(0, 2).Draw(t, "hubs") {
	case 0:
		return event{fmt.Sprint("another hub runs: ", is), func(h *hub) {
			key := config.HubPresenceKey("other")
			if !is {
				h.etcd.put(h.t, key, nil)
				return
			}
			o, err := config.NewHubPresence("other")
			if err != nil {
				h.t.Fatal(err)
			}
			h.etcd.put(h.t, key, o)
		}}
	case 1:
		return event{fmt.Sprint("the hub leads: ", is), func(h *hub) { h.leader.set(is) }}
	}
	return event{fmt.Sprint("the cluster answers: ", is), func(h *hub) {
		phase := federation.Stale
		if is {
			phase = federation.Ready
		}
		h.ready(phase)
	}}
}

// drawObject has the cluster have an object, valid or not, or delete it.
func drawObject(t *rapid.T) event {
	of := rapid.SampledFrom(subjects).Draw(t, "object")
	spec := rapid.SampledFrom(append([]string{"gone", ""}, of.specs...)).Draw(t, "spec")
	if spec == "gone" {
		return event{of.key.String() + " is deleted", func(h *hub) { h.remove(of.key) }}
	}
	return event{of.key.String() + " " + spec, func(h *hub) { h.apply(of.key, spec) }}
}

// drawCopy has another source have an object of the same name, which counts instead.
func drawCopy(t *rapid.T) event {
	of := rapid.SampledFrom(subjects).Draw(t, "object")
	spec := rapid.SampledFrom(append([]string{""}, of.specs...)).Draw(t, "spec")
	return event{"etcd has " + of.key.String() + " " + spec, func(h *hub) {
		if spec == "" {
			h.etcd.put(h.t, of.key, nil)
			return
		}
		h.etcd.put(h.t, of.key, h.manifest(of.key, "", spec))
	}}
}

// drawWorkload has the registry know a gateway, by these labels.
func drawWorkload(t *rapid.T) event {
	label := rapid.SampledFrom([]string{"edge", "other", ""}).Draw(t, "workload of")
	return event{"the workload edge is of " + label, func(h *hub) {
		key := federation.WorkloadKey{Namespace: "shop", Name: "edge"}
		d := federation.Delta[federation.WorkloadKey, *federation.Workload]{Gone: []federation.WorkloadKey{key}}
		if label != "" {
			d = federation.Delta[federation.WorkloadKey, *federation.Workload]{Set: map[federation.WorkloadKey]*federation.Workload{
				key: {Labels: map[string]string{federation.GatewayLabel: label}},
			}}
		}
		h.registry.Update(federation.Edit{Workloads: d})
	}}
}

// drawProblem is one of the hub with a Secret or an object.
func drawProblem(t *rapid.T) event {
	of := rapid.SampledFrom([]string{"secret c1/shop/cert", "VirtualService shop/web", "Gateway shop/edge"}).Draw(t, "problem of")
	code := rapid.SampledFrom([]string{"", identity.ProblemMissing, "NOT_HONOURED", "INVALID"}).Draw(t, "code")
	return event{fmt.Sprintf("problem %q of %s", code, of), func(h *hub) {
		d := federation.Delta[string, federation.Problem]{Full: true}
		if code != "" {
			d.Set = map[string]federation.Problem{"one": {Object: of, Code: code, Field: "spec", Message: "it is wrong"}}
		}
		h.secretWriter.Update(federation.Edit{Problems: d})
	}}
}

// TestR99PropertyWrittenStatusesAreAsComputedFromNothing: after each event of a random history, the hub
// has written what a hub writes that computes the status of every object again.
func TestR99PropertyWrittenStatusesAreAsComputedFromNothing(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		history := rapid.SliceOfN(rapid.Custom(drawEvent), 1, 12).Draw(rt, "history")
		var done, wrong []string
		synctest.Test(t, func(t *testing.T) {
			h := startHub(t)
			for _, e := range append(usual(), history...) {
				done = append(done, e.name)
				e.do(h)
				settle()
				wrong = h.fromNothing()
				if len(wrong) > 0 {
					return
				}
			}
		})
		if len(wrong) > 0 {
			rt.Fatalf("after\n%s\nfrom nothing is written\n%s", strings.Join(done, "\n"), strings.Join(wrong, "\n"))
		}
	})
}

// usual is how each history begins.
func usual() (all []event) {
	all = append(all, event{"settings", func(h *hub) {
		h.set(settings[0])
		h.service("web", 1)
		for _, s := range subjects {
			switch s.key.Kind {
			case "GatewayClass", "Gateway":
				if s.key.Name != "second" && s.key.Name != "first" {
					h.apply(s.key, s.specs[0])
				}
			}
		}
		h.connect(nodeIDs[1], nodes[nodeIDs[1]], false)
	}})
	return all
}
