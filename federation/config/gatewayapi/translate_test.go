package gatewayapi

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/kind"
	"isthmus.dev/isthmus/federation/config/schema"
)

// fixture is a snapshot with services and objects, as the hub has them.
type fixture struct {
	t         testing.TB
	set       *schema.Set
	aggregate *federation.Aggregate
	registry  *federation.Writer
	writer    *federation.Writer
	state     *config.State
}

var loaded = sync.OnceValues(func() (*schema.Set, error) { return schema.Load(kind.Expressions) })

func schemas(t testing.TB) *schema.Set {
	t.Helper()
	set, err := loaded()
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func newFixture(t testing.TB) *fixture {
	t.Helper()
	w := &fixture{t: t, set: schemas(t), aggregate: federation.NewAggregate(nil), state: config.NewState(config.Options{Hub: "hub"})}
	w.writer = w.aggregate.Open(w.state.Source())
	w.registry = w.aggregate.Open(federation.ShardKey{Provider: federation.Kubernetes, Cluster: "c1"})
	for _, name := range []string{"shop/web", "shop/api", "other/web"} {
		w.service(name, 80)
	}
	w.service("shop/two", 80, 81)
	return w
}

// service has the registry report NAMESPACE/NAME with ports, or without any its end.
func (w *fixture) service(name string, ports ...uint16) {
	namespace, name, _ := strings.Cut(name, "/")
	key := federation.ServiceKey{Hostname: federation.ResolveHost(name, namespace), Namespace: namespace}
	shard := &federation.Shard{}
	for _, p := range ports {
		shard.Ports = append(shard.Ports, federation.Port{Name: fmt.Sprintf("http-%d", p), Number: p, Protocol: federation.HTTP})
	}
	delta := federation.Delta[federation.ServiceKey, *federation.Shard]{Set: map[federation.ServiceKey]*federation.Shard{key: shard}}
	if len(ports) == 0 {
		delta = federation.Delta[federation.ServiceKey, *federation.Shard]{Gone: []federation.ServiceKey{key}}
	}
	w.registry.Update(federation.Edit{Services: delta})
}

// apply adds documents, as a cluster's, or as those for all proxies. Each has a later
// creation time than the one before.
func (w *fixture) apply(of federation.ClusterID, documents string) {
	w.t.Helper()
	var events []config.Event
	for i, text := range strings.Split(documents, "\n---\n") {
		var in map[string]any
		data, err := yaml.YAMLToJSON([]byte(text))
		if err == nil {
			err = utiljson.Unmarshal(data, &in)
		}
		if err != nil {
			w.t.Fatal(err)
		}
		value, problems := w.set.Admit(in, nil)
		if in["kind"] == "ConfigMap" || in["kind"] == "Namespace" {
			value, problems = in, nil
		}
		if len(problems) > 0 {
			w.t.Fatalf("%v in\n%s", problems, text)
		}
		metadata := value["metadata"].(map[string]any)
		if metadata["creationTimestamp"] == nil {
			metadata["creationTimestamp"] = time.Date(2026, 1, 1, 0, 0, i, 0, time.UTC).Format(time.RFC3339)
		}
		events = append(events, w.event(of, value))
	}
	w.change(events)
}

func (w *fixture) event(of federation.ClusterID, value map[string]any) config.Event {
	manifest, err := json.Marshal(value)
	if err != nil {
		w.t.Fatal(err)
	}
	metadata := value["metadata"].(map[string]any)
	group, _, grouped := strings.Cut(value["apiVersion"].(string), "/")
	if !grouped {
		group = ""
	}
	key := federation.ObjectKey{Group: group, Kind: value["kind"].(string), Name: metadata["name"].(string), Cluster: of}
	key.Namespace, _ = metadata["namespace"].(string)
	old, _ := w.state.Object(key)
	return config.Event{Old: old, New: &config.Object{
		Key: key, APIVersion: value["apiVersion"].(string), Manifest: manifest,
		Revision: w.state.Revision() + 1,
	}}
}

func (w *fixture) change(events []config.Event) {
	var edit federation.Edit
	w.state, edit = w.state.Next(events, w.state.Revision()+1)
	w.writer.Update(edit)
}

func (w *fixture) delete(key federation.ObjectKey) {
	if old, has := w.state.Object(key); has {
		w.change([]config.Event{{Old: old}})
	}
}

// text is the spec of an object that is given, shortened.
func shown(o *config.Object) (lines []string) {
	var in struct {
		Spec struct {
			Host    string
			Traffic map[string]any `json:"trafficPolicy"`
			Hosts   []string
			Servers []map[string]any
			HTTP    []map[string]any
			TLS     []map[string]any
			TCP     []map[string]any
		}
	}
	if err := json.Unmarshal(o.Manifest, &in); err != nil {
		return []string{err.Error()}
	}
	line := o.Key.Kind + " " + o.Key.Namespace
	if o.Key.Cluster != "" {
		line += " of " + string(o.Key.Cluster)
	}
	if o.Credentials.From != "" {
		line += " secrets of " + o.Credentials.From
	}
	if o.Key.Of() == federation.ClientCertificateKind {
		var out struct{ Spec any }
		if err := json.Unmarshal(o.Manifest, &out); err != nil {
			return []string{err.Error()}
		}
		lines = append(lines, line+" "+o.Key.Name+" "+compact(out.Spec))
	}
	if in.Spec.Host != "" {
		lines = append(lines, line+" "+compact(in.Spec.Host)+" "+compact(in.Spec.Traffic))
	}
	if in.Spec.Hosts != nil {
		lines = append(lines, line+" "+strings.Join(in.Spec.Hosts, " "))
	}
	for _, server := range in.Spec.Servers {
		lines = append(lines, line+" "+compact(server))
	}
	for _, routes := range [][]map[string]any{in.Spec.HTTP, in.Spec.TLS, in.Spec.TCP} {
		for _, route := range routes {
			lines = append(lines, "  "+compact(route))
		}
	}
	return lines
}

func compact(value any) string {
	text, _ := json.Marshal(value)
	short := strings.NewReplacer(".svc.cluster.local", "", "destination", "to", "directResponse:{body:{string:NO_BACKEND},status:500}", "500",
		"directResponse:{body:{string:UNSUPPORTED_FILTER},status:500}", "500!")
	return short.Replace(strings.ReplaceAll(string(text), `"`, ""))
}

const edge = `
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: mesh}
spec: {controllerName: isthmus.dev/gateway-controller}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: edge, namespace: shop}
spec:
  gatewayClassName: mesh
  listeners:
`

const plain = edge + "  - {name: http, port: 80, protocol: HTTP}\n"

// route is an HTTPRoute of the namespace shop for the Gateway edge.
func route(name, spec string) string {
	return "---\napiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: " + name +
		", namespace: shop}\nspec:\n  parentRefs: [{name: edge, namespace: shop}]\n" + spec
}

func rules(text string) string { return "  rules:\n" + text }

// What is given for plain, and for requests to the service web.
const (
	server = "Gateway shop {hosts:[*],port:{name:http,number:80,protocol:HTTP}}"
	all    = "VirtualService shop *"
	web    = "route:[{to:{host:web.shop,port:{number:80}},weight:1}]"
)

// translation is what objects mean: what is given, and what is wrong.
type translation struct {
	in   string
	want []string
}

func (test translation) run(t *testing.T) {
	test.runOf(t, "")
}

// runOf is run for objects of a cluster.
func (test translation) runOf(t *testing.T, of federation.ClusterID) {
	w := newFixture(t)
	w.apply(of, strings.TrimSpace(test.in))
	objects, problems := Translate(w.aggregate.Latest())
	var got []string
	for _, o := range objects {
		got = append(got, shown(o)...)
		var value map[string]any
		if err := utiljson.Unmarshal(o.Manifest, &value); err != nil {
			t.Fatal(err)
		}
		if _, refused := w.set.Admit(value, nil); len(refused) > 0 && !kind.Internal(o.Key.Of()) {
			t.Errorf("%s is refused: %v", o.Key, refused)
		}
	}
	for _, p := range problems {
		got = append(got, fmt.Sprintf("%s %s %s", p.Code, p.Object, p.Field))
	}
	if diff := cmp.Diff(test.want, got); diff != "" {
		t.Error(diff)
	}
}

// TestG19Translation is what Gateways and HTTPRoutes mean, as tables.
func TestG19Translation(t *testing.T) {
	for name, test := range map[string]translation{
		"a Gateway without routes listens": {plain, []string{server}},
		"requests go to a service": {
			plain + route("r", rules("  - backendRefs: [{name: web, port: 80}]\n")),
			[]string{server, all, "  {match:[{uri:{prefix:/}}]," + web + "}"},
		},
		"prefixes are of whole elements": {
			plain + route("r", rules("  - {matches: [{path: {value: /a/}}], backendRefs: [{name: web, port: 80}]}\n")),
			[]string{server, all, "  {match:[{uri:{exact:/a}},{uri:{prefix:/a/}}]," + web + "}"},
		},
		"the order of matches": { // G127: expressions come after prefixes
			plain + route("b", rules(`  - matches:
    - {}
    - {headers: [{name: X, value: "1"}]}
    - {path: {value: /long}}
    - {path: {value: /long}, method: GET}
    - {path: {type: Exact, value: /l}}
    - {path: {type: RegularExpression, value: "/r.*"}}
    - {path: {value: /long}, headers: [{name: a, value: "1"}, {name: B, value: "2", type: RegularExpression}]}
    - {path: {value: /long}, headers: [{name: a, value: "1"}], queryParams: [{name: q, value: "3"}]}
    backendRefs: [{name: web, port: 80}]
`)) + route("a", rules("  - {matches: [{path: {value: /longer}}], backendRefs: [{name: web, port: 80}]}\n")),
			[]string{
				server, all,
				"  {match:[{uri:{exact:/l}}]," + web + "}",
				"  {match:[{uri:{exact:/longer}},{uri:{prefix:/longer/}}]," + web + "}",
				"  {match:[{method:{exact:GET},uri:{exact:/long}},{method:{exact:GET},uri:{prefix:/long/}}]," + web + "}",
				"  {match:[{headers:{a:{exact:1},b:{regex:2}},uri:{exact:/long}},{headers:{a:{exact:1},b:{regex:2}},uri:{prefix:/long/}}]," + web + "}",
				"  {match:[{headers:{a:{exact:1}},queryParams:{q:{exact:3}},uri:{exact:/long}},{headers:{a:{exact:1}},queryParams:{q:{exact:3}},uri:{prefix:/long/}}]," + web + "}",
				"  {match:[{uri:{exact:/long}},{uri:{prefix:/long/}}]," + web + "}",
				"  {match:[{headers:{x:{exact:1}},uri:{prefix:/}}]," + web + "}",
				"  {match:[{uri:{prefix:/}}]," + web + "}",
				"  {match:[{uri:{regex:/r.*}}]," + web + "}",
			},
		},
		"of equal matches the older route comes first": {
			plain + route("b", rules("  - backendRefs: [{name: web, port: 80}]\n")) + route("a",
				rules("  - backendRefs: [{name: api, port: 80}]\n")),
			[]string{
				server, all, "  {match:[{uri:{prefix:/}}]," + web + "}",
				"  {match:[{uri:{prefix:/}}],route:[{to:{host:api.shop,port:{number:80}},weight:1}]}",
			},
		},
		"backends that cannot be used get their share as 500": {
			plain + route("r",
				rules(`  - backendRefs: [{name: web, port: 80, weight: 6}, {name: web, port: 81, weight: 2}, {name: api, port: 80, weight: 0}]
  - {matches: [{path: {value: /none}}], backendRefs: [{name: none, port: 80}]}
  - {matches: [{path: {value: /zero}}], backendRefs: [{name: web, port: 80, weight: 0}]}
  - {matches: [{path: {value: /empty}}]}
  - {matches: [{path: {value: /other}}], backendRefs: [{name: web, namespace: other, port: 80}]}
`)),
			[]string{
				server, all,
				"  {500,match:[{uri:{exact:/empty}},{uri:{prefix:/empty/}}]}",
				"  {500,match:[{uri:{exact:/other}},{uri:{prefix:/other/}}]}",
				"  {500,match:[{uri:{exact:/none}},{uri:{prefix:/none/}}]}",
				"  {500,match:[{uri:{exact:/zero}},{uri:{prefix:/zero/}}]}",
				"  {fault:{abort:{httpStatus:500,percentage:{value:25}}},match:[{uri:{prefix:/}}],route:[{to:{host:web.shop,port:{number:80}},weight:6}]}",
				"BACKEND_NOT_FOUND HTTPRoute.gateway.networking.k8s.io shop/r spec.rules[0].backendRefs[1]",
				"BACKEND_NOT_FOUND HTTPRoute.gateway.networking.k8s.io shop/r spec.rules[1].backendRefs[0]",
				"REF_NOT_PERMITTED HTTPRoute.gateway.networking.k8s.io shop/r spec.rules[4].backendRefs[0]",
			},
		},
		"a ReferenceGrant permits a backend of another namespace": {
			plain + route("r", rules("  - backendRefs: [{name: web, namespace: other, port: 80}]\n")) + `---
apiVersion: gateway.networking.k8s.io/v1
kind: ReferenceGrant
metadata: {name: g, namespace: other}
spec: {from: [{group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: shop}], to: [{group: "", kind: Service, name: web}]}
`,
			[]string{server, all, "  {match:[{uri:{prefix:/}}],route:[{to:{host:web.other,port:{number:80}},weight:1}]}"},
		},
		"filters": {
			plain + route("r", rules(`  - filters:
    - {type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: A, value: 5%}], add: [{name: b, value: "2"}], remove: [C]}}
    - {type: ResponseHeaderModifier, responseHeaderModifier: {set: [{name: d, value: "3"}]}}
    - {type: URLRewrite, urlRewrite: {hostname: in.example, path: {type: ReplacePrefixMatch, replacePrefixMatch: /new}}}
    - {type: RequestMirror, requestMirror: {backendRef: {name: api, port: 80}, percent: 10}}
    matches: [{path: {value: /old}}]
    timeouts: {request: 10s, backendRequest: 500ms}
    backendRefs: [{name: web, port: 80, filters: [{type: RequestHeaderModifier, requestHeaderModifier: {add: [{name: e, value: "4"}]}}]}]
  - matches: [{path: {value: /moved}}]
    filters: [{type: RequestRedirect, requestRedirect: {scheme: https, hostname: new.example, statusCode: 301, path: {type: ReplacePrefixMatch, replacePrefixMatch: /}}}]
  - matches: [{path: {value: /whole}}]
    filters: [{type: URLRewrite, urlRewrite: {path: {type: ReplaceFullPath, replaceFullPath: '/\1'}}}]
    backendRefs: [{name: web, port: 80}]
`)),
			[]string{
				server, all,
				"  {match:[{uri:{exact:/moved}}],redirect:{authority:new.example,redirectCode:301,scheme:https,uri:%PREFIX()%/}}",
				"  {match:[{uri:{prefix:/moved/}}],redirect:{authority:new.example,redirectCode:301,scheme:https,uri:%PREFIX()%/}}",
				`  {match:[{uri:{exact:/whole}},{uri:{prefix:/whole/}}],rewrite:{uriRegexRewrite:{match:/.*,rewrite:/\\\\1}},` + web + "}",
				"  {headers:{request:{add:{b:2},remove:[c],set:{a:5%%}},response:{set:{d:3}}},match:[{uri:{exact:/old}}],mirrors:[{to:{host:api.shop,port:{number:80}},percentage:{value:10}}],retries:{attempts:2,perTryTimeout:0.5s},rewrite:{authority:in.example,uri:/new},route:[{to:{host:web.shop,port:{number:80}},headers:{request:{add:{e:4}}},weight:1}],timeout:10s}",
				"  {headers:{request:{add:{b:2},remove:[c],set:{a:5%%}},response:{set:{d:3}}},match:[{uri:{prefix:/old/}}],mirrors:[{to:{host:api.shop,port:{number:80}},percentage:{value:10}}],retries:{attempts:2,perTryTimeout:0.5s},rewrite:{authority:in.example,uri:/new/},route:[{to:{host:web.shop,port:{number:80}},headers:{request:{add:{e:4}}},weight:1}],timeout:10s}",
			},
		},
		"G104 more attempts than a VirtualService can have cost no other route of the Gateway": {
			plain + route("r", rules(`  - matches: [{path: {value: /all}}]
    retry: {attempts: 3000000000, backoff: 99999h}
    backendRefs: [{name: web, port: 80}]
`)),
			[]string{
				server, all,
				"  {match:[{uri:{exact:/all}},{uri:{prefix:/all/}}],retries:{attempts:2147483647,backoff:359996400s,retryOn:connect-failure,refused-stream,reset}," + web + "}",
			},
		},
		"G104 retries": {
			plain + route("r", rules(`  - matches: [{path: {value: /all}}]
    retry: {attempts: 3, codes: [500, 503], backoff: 100ms}
    timeouts: {request: 10s, backendRequest: 2s}
    backendRefs: [{name: web, port: 80}]
  - matches: [{path: {value: /defaults}}]
    retry: {codes: [504]}
    backendRefs: [{name: web, port: 80}]
`)),
			[]string{
				server, all,
				"  {match:[{uri:{exact:/defaults}},{uri:{prefix:/defaults/}}],retries:{attempts:2,retryOn:connect-failure,refused-stream,reset,504}," + web + "}",
				"  {match:[{uri:{exact:/all}},{uri:{prefix:/all/}}],retries:{attempts:3,backoff:0.1s,perTryTimeout:2s,retryOn:connect-failure,refused-stream,reset,500,503}," + web + ",timeout:10s}",
			},
		},
		"a rule with a filter that is not supported is not used without it": {
			plain + route("r", rules(`  - filters: [{type: ExtensionRef, extensionRef: {group: example.com, kind: Filter, name: f}}]
    backendRefs: [{name: web, port: 80}]
`)),
			[]string{
				server, all, "  {500!,match:[{uri:{prefix:/}}]}",
				"UNSUPPORTED_VALUE HTTPRoute.gateway.networking.k8s.io shop/r spec.rules[0].filters[0]",
			},
		},
		"a match that cannot be expressed matches nothing": {
			plain + route("r",
				rules("  - {matches: [{path: {type: RegularExpression, value: \"/(\"}}, {path: {value: /a}, headers: [{name: method, value: x}]}], backendRefs: [{name: web, port: 80}]}\n")),
			[]string{
				server, all, "  {directResponse:{status:404}}",
				"NOT_HONOURED HTTPRoute.gateway.networking.k8s.io shop/r spec.rules[0].matches[0].path.value",
				"NOT_HONOURED HTTPRoute.gateway.networking.k8s.io shop/r spec.rules[0].matches[1].headers[0].name",
			},
		},
		"hosts of the route and of the listener": {
			edge +
				"  - {name: wide, port: 80, protocol: HTTP, hostname: \"*.example.com\"}\n  - {name: narrow, port: 80, protocol: HTTP, hostname: a.example.com}\n" +
				route("r", "  hostnames: [\"*.example.com\", a.example.com, example.org]\n"+rules("  - backendRefs: [{name: web, port: 80}]\n")) +
				strings.Replace(route("s", "  hostnames: [b.example.com]\n"+rules("  - backendRefs: [{name: web, port: 80}]\n")), "{name: edge, ",
					"{name: edge, sectionName: narrow, ", 1),
			[]string{
				"Gateway shop {hosts:[a.example.com],port:{name:http,number:80,protocol:HTTP}}",
				"Gateway shop {hosts:[*.example.com],port:{name:http,number:80,protocol:HTTP}}",
				"VirtualService shop a.example.com", "  {match:[{uri:{prefix:/}}]," + web + "}",
				"VirtualService shop *.example.com", "  {match:[{uri:{prefix:/}}]," + web + "}",
				"NO_MATCHING_LISTENER_HOSTNAME HTTPRoute.gateway.networking.k8s.io shop/s spec.parentRefs[0]",
			},
		},
		"requests for a narrower listener are not those of a wider one": {
			edge + "  - {name: all, port: 80, protocol: HTTP}\n  - {name: narrow, port: 80, protocol: HTTP, hostname: a.example.com}\n" +
				strings.Replace(route("r", rules("  - backendRefs: [{name: web, port: 80}]\n")), "{name: edge, ", "{name: edge, sectionName: all, ", 1),
			[]string{
				server, "Gateway shop {hosts:[a.example.com],port:{name:http,number:80,protocol:HTTP}}",
				all, "  {match:[{uri:{prefix:/}}]," + web + "}",
				"VirtualService shop a.example.com", "  {directResponse:{status:404}}",
			},
		},
		"TLS": {
			edge +
				"  - {name: https, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: cert}]}}\n  - {name: cross, port: 444, protocol: HTTPS, tls: {certificateRefs: [{name: cert, namespace: other}]}}\n",
			[]string{
				"Gateway shop {hosts:[*],port:{name:https,number:443,protocol:HTTPS},tls:{credentialName:cert,mode:SIMPLE}}",
				"REF_NOT_PERMITTED Gateway.gateway.networking.k8s.io shop/edge spec.listeners[1].tls.certificateRefs[0]",
			},
		},
		"TLS that is passed on, TLS of connections, and TCP": {
			edge +
				"  - {name: pass, port: 443, protocol: TLS, tls: {mode: Passthrough}}\n  - {name: end, port: 444, protocol: TLS, tls: {certificateRefs: [{name: cert}]}}\n  - {name: tcp, port: 53, protocol: TCP}\n" +
				strings.Replace(route("r", "  hostnames: [a.example]\n"+rules("  - backendRefs: [{name: web, port: 80}]\n")),
					"HTTPRoute", "TLSRoute", 1) +
				strings.Replace(route("s", rules("  - backendRefs: [{name: none, port: 80}]\n")), "HTTPRoute", "TCPRoute", 1),
			[]string{
				"Gateway shop {hosts:[*],port:{name:tls,number:444,protocol:TLS},tls:{credentialName:cert,mode:SIMPLE}}",
				"Gateway shop {hosts:[a.example],port:{name:tls,number:444,protocol:TLS},tls:{credentialName:cert,mode:SIMPLE}}",
				"Gateway shop {hosts:[*],port:{name:tls,number:443,protocol:TLS},tls:{mode:PASSTHROUGH}}",
				"Gateway shop {hosts:[*],port:{name:tcp,number:53,protocol:TCP}}",
				all, "  {route:[{to:{host:refused.invalid,port:{number:1}},weight:1}]}",
				"VirtualService shop a.example", "  {route:[{to:{host:web.shop,port:{number:80}},weight:1}]}",
				"VirtualService shop a.example", "  {match:[{sniHosts:[a.example]}],route:[{to:{host:web.shop,port:{number:80}},weight:1}]}",
				all, "  {route:[{to:{host:refused.invalid,port:{number:1}},weight:1}]}",
				"BACKEND_NOT_FOUND TCPRoute.gateway.networking.k8s.io shop/s spec.rules[0].backendRefs[0]",
			},
		},
		"methods of gRPC": {
			plain +
				strings.Replace(route("r",
					rules(`  - matches: [{}, {method: {method: M}}, {method: {service: s}}, {method: {service: s, method: M}}, {method: {type: RegularExpression, service: "s.*"}}]
    backendRefs: [{name: web, port: 80, weight: 1}, {name: none, port: 80}]
  - {matches: [{headers: [{name: h, value: v}]}], filters: [{type: ExtensionRef, extensionRef: {group: example.com, kind: Filter, name: f}}]}
`)), "HTTPRoute", "GRPCRoute", 1),
			[]string{
				server, all,
				"  {fault:{abort:{grpcStatus:UNAVAILABLE,percentage:{value:50}}},match:[{uri:{exact:/s/M}}]," + web + "}",
				"  {fault:{abort:{grpcStatus:UNAVAILABLE,percentage:{value:50}}},match:[{uri:{exact:/s}},{uri:{prefix:/s/}}]," + web + "}",
				"  {fault:{abort:{grpcStatus:UNAVAILABLE,percentage:{value:50}}},match:[{uri:{regex:/[^/]+/M}}]," + web + "}",
				"  {fault:{abort:{grpcStatus:UNAVAILABLE,percentage:{value:50}}},match:[{uri:{regex:/s.*/[^/]+}}]," + web + "}",
				"  {directResponse:{body:{string:UNSUPPORTED_FILTER},status:503},match:[{headers:{h:{exact:v}},uri:{prefix:/}}]}",
				"  {fault:{abort:{grpcStatus:UNAVAILABLE,percentage:{value:50}}},match:[{uri:{prefix:/}}]," + web + "}",
				"BACKEND_NOT_FOUND GRPCRoute.gateway.networking.k8s.io shop/r spec.rules[0].backendRefs[1]",
				"UNSUPPORTED_VALUE GRPCRoute.gateway.networking.k8s.io shop/r spec.rules[1].filters[0]",
			},
		},
		"a method of gRPC that cannot be expressed is named as the GRPCRoute has it": {
			plain + strings.Replace(route("r", rules(`  - matches: [{method: {type: RegularExpression, service: "("}}]
    backendRefs: [{name: web, port: 80}]
`)), "HTTPRoute", "GRPCRoute", 1),
			[]string{
				server, all, "  {directResponse:{status:404}}",
				"NOT_HONOURED GRPCRoute.gateway.networking.k8s.io shop/r spec.rules[0].matches[0].method",
			},
		},
		"listeners that conflict are not used": {
			edge +
				"  - {name: a, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: cert}]}}\n  - {name: b, port: 443, protocol: HTTP}\n  - {name: c, port: 53, protocol: example.com/own}\n",
			[]string{
				"PROTOCOL_CONFLICT Gateway.gateway.networking.k8s.io shop/edge spec.listeners[0].protocol",
				"PROTOCOL_CONFLICT Gateway.gateway.networking.k8s.io shop/edge spec.listeners[1].protocol",
				"UNSUPPORTED_PROTOCOL Gateway.gateway.networking.k8s.io shop/edge spec.listeners[2].protocol",
			},
		},
		"which routes a listener allows": {
			edge +
				"  - {name: all, port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}\n  - {name: same, port: 81, protocol: HTTP}\n  - {name: grpc, port: 82, protocol: HTTP, allowedRoutes: {kinds: [{kind: TCPRoute}]}}\n" +
				strings.Replace(strings.Replace(route("r", rules("  - backendRefs: [{name: web, port: 80}]\n")), "name: r, namespace: shop",
					"name: r, namespace: other", 1),
					"[{name: edge, namespace: shop}]",
					"[{name: edge, namespace: shop, sectionName: all}, {name: edge, namespace: shop, sectionName: same}, {name: edge, namespace: shop, sectionName: none}, {name: none}, {kind: ServiceEntry, group: networking.istio.io, name: web}]", 1),
			[]string{
				"Gateway shop {hosts:[*],port:{name:http,number:80,protocol:HTTP}}",
				"Gateway shop {hosts:[*],port:{name:http,number:82,protocol:HTTP}}",
				"Gateway shop {hosts:[*],port:{name:http,number:81,protocol:HTTP}}",
				all, "  {match:[{uri:{prefix:/}}],route:[{to:{host:web.other,port:{number:80}},weight:1}]}",
				"INVALID_ROUTE_KINDS Gateway.gateway.networking.k8s.io shop/edge spec.listeners[2].allowedRoutes.kinds[0]",
				"NOT_ALLOWED_BY_LISTENERS HTTPRoute.gateway.networking.k8s.io other/r spec.parentRefs[1]",
				"NO_MATCHING_PARENT HTTPRoute.gateway.networking.k8s.io other/r spec.parentRefs[2]",
				"NO_MATCHING_PARENT HTTPRoute.gateway.networking.k8s.io other/r spec.parentRefs[3]",
				"NOT_HONOURED HTTPRoute.gateway.networking.k8s.io other/r spec.parentRefs[4]",
			},
		},
		"Gateways of others": {
			strings.Replace(plain, "isthmus.dev/gateway-controller", "example.com/other", 1) + route("r",
				rules("  - backendRefs: [{name: web, port: 80}]\n")),
			[]string{
				"NOT_HONOURED Gateway.gateway.networking.k8s.io shop/edge spec.gatewayClassName",
				"NOT_HONOURED HTTPRoute.gateway.networking.k8s.io shop/r spec.parentRefs[0]",
			},
		},
		"fields of a Gateway without an effect": {
			strings.Replace(plain, "  listeners:", "  addresses: [{value: 10.0.0.1}]\n  infrastructure: {labels: {a: b}}\n  listeners:", 1),
			[]string{
				server,
				"NOT_HONOURED Gateway.gateway.networking.k8s.io shop/edge spec.addresses[0]",
				"NOT_HONOURED Gateway.gateway.networking.k8s.io shop/edge spec.infrastructure",
			},
		},
	} {
		t.Run(name, test.run)
	}
}
