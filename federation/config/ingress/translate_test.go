package ingress

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/kind"
	"isthmus.dev/isthmus/federation/config/schema"
)

// asRead are Ingresses and IngressClasses of a cluster as the source reads them. Each has a
// later creation time than the one before.
func asRead(t testing.TB, of federation.ClusterID, documents string) (events []config.Event) {
	t.Helper()
	for i, text := range strings.Split(documents, "\n---\n") {
		var in map[string]any
		if err := yaml.Unmarshal([]byte(text), &in); err != nil {
			t.Fatal(err)
		}
		admitted, _ := Schema{}.Admit(in)
		value := admitted.Object
		metadata := value["metadata"].(map[string]any)
		metadata["creationTimestamp"] = fmt.Sprintf("2026-01-01T00:00:%02dZ", i)
		if at, has := in["metadata"].(map[string]any)["creationTimestamp"]; has {
			metadata["creationTimestamp"] = at
		}
		manifest, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		o := &config.Object{Manifest: manifest}
		o.Key = federation.Kind{Group: federation.IngressKind.Group, Name: value["kind"].(string)}.Key("", metadata["name"].(string))
		o.Key.Cluster = of
		o.Key.Namespace, _ = metadata["namespace"].(string)
		events = append(events, config.Event{New: o})
	}
	return events
}

var ofShop = federation.ShardKey{Cluster: "c1", Provider: federation.Kubernetes}

// withService has a service of the shop with the ports.
func withService(s *federation.Snapshot, namespace, name string, ports ...federation.Port) *federation.Snapshot {
	key := federation.ServiceKey{Hostname: federation.ResolveHost(name, namespace), Namespace: namespace}
	e := federation.Edit{Source: ofShop}
	e.Services.Set = map[federation.ServiceKey]*federation.Shard{key: {Ports: ports}}
	s, _ = federation.Next(s, e)
	return s
}

// shop has the services web and api.
func shop() *federation.Snapshot {
	s := federation.Empty()
	for _, namespace := range []string{"shop", "other", "default"} {
		s = withService(s, namespace, "web", federation.Port{Name: "http", Number: 80})
		s = withService(s, namespace, "api", federation.Port{Name: "http", Number: 8080}, federation.Port{Name: "grpc", Number: 9090})
	}
	return s
}

func newShop(m federation.MeshSettings) *translations {
	b := newTranslations()
	b.follow(shop())
	b.configure(settingsOf(&m))
	return b
}

// shown is what the translations give, in lines.
func shown(t testing.TB, b *translations) (lines []string) {
	t.Helper()
	b.change(1)
	for _, e := range b.set.Everything() {
		var in struct {
			Spec struct {
				Hosts, Gateways []string
				Selector        map[string]string
				Servers         []struct {
					Hosts []string
					Port  struct {
						Number   int
						Protocol string
					}
					TLS struct{ CredentialName string }
				}
				HTTP []struct {
					Match []struct{ URI map[string]string }
					Route []struct {
						Destination struct {
							Host string
							Port struct{ Number int }
						}
					}
					DirectResponse struct {
						Status int
						Body   struct{ String string }
					}
				}
			}
		}
		if err := json.Unmarshal(e.New.Manifest, &in); err != nil {
			t.Fatal(err)
		}
		for _, server := range in.Spec.Servers {
			line := fmt.Sprintf("%s %v %d %s %v", e.New.Key.Title(), in.Spec.Selector, server.Port.Number, server.Port.Protocol, server.Hosts)
			if server.TLS.CredentialName != "" {
				line += fmt.Sprintf(" %s {%s %s}", server.TLS.CredentialName, e.New.Credentials.From, e.New.Credentials.To)
			}
			lines = append(lines, line)
		}
		if len(in.Spec.Hosts) > 0 {
			lines = append(lines, fmt.Sprintf("%s %v at %v", e.New.Key.Title(), in.Spec.Hosts, in.Spec.Gateways))
		}
		for _, r := range in.Spec.HTTP {
			line := " "
			for _, m := range r.Match {
				line += fmt.Sprint(" ", strings.TrimPrefix(fmt.Sprint(m.URI), "map"))
			}
			for _, to := range r.Route {
				line += fmt.Sprintf(" %s:%d", to.Destination.Host, to.Destination.Port.Number)
			}
			if r.DirectResponse.Status != 0 {
				line += fmt.Sprintf(" %d %s", r.DirectResponse.Status, r.DirectResponse.Body.String)
			}
			lines = append(lines, line)
		}
	}
	for _, p := range b.set.Problems() {
		lines = append(lines, fmt.Sprintf("%s %s %s", p.Code, p.Object, p.Field))
	}
	return lines
}

// TestG11Translation is what Ingresses mean, as tables.
func TestG11Translation(t *testing.T) {
	set, err := schema.Load(kind.Expressions)
	if err != nil {
		t.Fatal(err)
	}
	const plain = "Gateway istio-system/ingress-http of cluster c1 map[istio:ingressgateway] 80 HTTP [*]"
	for name, test := range map[string]struct {
		settings federation.MeshSettings
		in       string
		want     []string
	}{
		"path types": {in: `
kind: Ingress
metadata: {name: web, namespace: shop}
spec:
  rules:
  - host: Shop.example.com
    http:
      paths:
      - {path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}
      - {path: /api/, pathType: Prefix, backend: {service: {name: api, port: {name: grpc}}}}
      - {path: /api/v1, pathType: Exact, backend: {service: {name: api, port: {name: http}}}}
      - {path: /old/*, pathType: ImplementationSpecific, backend: {service: {name: api, port: {number: 8080}}}}
      - {path: /exact, backend: {service: {name: api, port: {number: 8080}}}}
`, want: []string{
			plain,
			"VirtualService shop/ingress-host.shop.example.com of cluster c1 [shop.example.com] at [istio-system/ingress-http]",
			"  [exact:/api/v1] api.shop.svc.cluster.local:8080",
			"  [exact:/exact] api.shop.svc.cluster.local:8080",
			"  [exact:/api] [prefix:/api/] api.shop.svc.cluster.local:9090",
			"  [prefix:/old] api.shop.svc.cluster.local:8080",
			"  [prefix:/] web.shop.svc.cluster.local:80",
		}},
		"wildcards, rules without a host, default backends": {in: `
kind: Ingress
metadata: {name: web, namespace: shop}
spec:
  defaultBackend: {service: {name: web, port: {name: http}}}
  rules:
  - {host: "*.example.com", http: {paths: [{path: /api, pathType: Prefix, backend: {service: {name: api, port: {number: 8080}}}}]}}
  - {http: {paths: [{path: /any, pathType: Exact, backend: {service: {name: api, port: {number: 8080}}}}]}}
  - {host: all.example.com}
`, want: []string{
			plain,
			"VirtualService shop/ingress-any of cluster c1 [*] at [istio-system/ingress-http]",
			"  [exact:/any] api.shop.svc.cluster.local:8080",
			"  [prefix:/] web.shop.svc.cluster.local:80",
			"VirtualService shop/ingress-host.all.example.com of cluster c1 [all.example.com] at [istio-system/ingress-http]",
			"  [prefix:/] web.shop.svc.cluster.local:80",
			"VirtualService shop/ingress-wildcard.example.com of cluster c1 [*.example.com] at [istio-system/ingress-http]",
			"  [exact:/api] [prefix:/api/] api.shop.svc.cluster.local:8080",
			"  [prefix:/] web.shop.svc.cluster.local:80",
		}},
		"a shared host: the oldest first": {in: `
kind: Ingress
metadata: {name: b, namespace: shop}
spec: {rules: [{host: a.example, http: {paths: [{path: /a, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}}]}
---
kind: Ingress
metadata: {name: a, namespace: other}
spec:
  defaultBackend: {service: {name: api, port: {number: 8080}}}
  rules:
  - host: a.example
    http:
      paths:
      - {path: /a, pathType: Prefix, backend: {service: {name: api, port: {number: 8080}}}}
      - {path: /a/longer, pathType: Prefix, backend: {service: {name: api, port: {number: 8080}}}}
---
kind: Ingress
metadata: {name: c, namespace: shop}
spec: {defaultBackend: {service: {name: web, port: {number: 80}}}}
`, want: []string{
			plain,
			"VirtualService other/ingress-any of cluster c1 [*] at [istio-system/ingress-http]",
			"  [prefix:/] api.other.svc.cluster.local:8080",
			"VirtualService shop/ingress-host.a.example of cluster c1 [a.example] at [istio-system/ingress-http]",
			"  [exact:/a/longer] [prefix:/a/longer/] api.other.svc.cluster.local:8080",
			"  [exact:/a] [prefix:/a/] web.shop.svc.cluster.local:80",
			"  [prefix:/] api.other.svc.cluster.local:8080",
			"PATH_TAKEN Ingress other/a of cluster c1 spec.rules[0].http.paths[0]",
			"PATH_TAKEN Ingress shop/c of cluster c1 spec.defaultBackend",
		}},
		"TLS": {settings: federation.MeshSettings{IngressService: "edge/front"}, in: `
kind: Ingress
metadata: {name: web, namespace: shop}
spec:
  tls:
  - {hosts: [a.example, b.example], secretName: shop.cert}
  - {hosts: [c.example]}
  rules:
  - {host: a.example, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}}
  - {host: plain.example, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}}
---
kind: Ingress
metadata: {name: more, namespace: shop}
spec:
  tls: [{hosts: [b.example], secretName: shop.cert}]
  rules: [{host: b.example, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}}]
---
kind: Ingress
metadata: {name: thief, namespace: other}
spec:
  tls: [{hosts: [a.example, own.example], secretName: cert}]
  rules: [{host: a.example, http: {paths: [{path: /x, pathType: Exact, backend: {service: {name: web, port: {number: 80}}}}]}}]
`, want: []string{
			"Gateway edge/ingress-http of cluster c1 map[istio:front] 80 HTTP [*]",
			"Gateway other/ingress-tls-cert of cluster c1 map[istio:front] 443 HTTPS [own.example] cert {other edge}",
			"Gateway shop/ingress-tls-shop-cert-859f9d25dede26db of cluster c1 map[istio:front] 443 HTTPS [a.example b.example] shop.cert {shop edge}",
			"VirtualService shop/ingress-host.a.example of cluster c1 [a.example] at [edge/ingress-http shop/ingress-tls-shop-cert-859f9d25dede26db]",
			"  [exact:/x] web.other.svc.cluster.local:80",
			"  [prefix:/] web.shop.svc.cluster.local:80",
			"VirtualService shop/ingress-host.b.example of cluster c1 [b.example] at [edge/ingress-http shop/ingress-tls-shop-cert-859f9d25dede26db]",
			"  [prefix:/] web.shop.svc.cluster.local:80",
			"VirtualService shop/ingress-host.plain.example of cluster c1 [plain.example] at [edge/ingress-http]",
			"  [prefix:/] web.shop.svc.cluster.local:80",
			"TLS_HOST_TAKEN Ingress other/thief of cluster c1 spec.tls[0].hosts",
			"TLS_SECRET_REQUIRED Ingress shop/web of cluster c1 spec.tls[1].secretName",
		}},
		"TLS for every host": {in: `
kind: Ingress
metadata: {name: web, namespace: shop}
spec:
  tls: [{secretName: cert}]
  rules: [{host: a.example, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}}]
`, want: []string{
			plain,
			"Gateway shop/ingress-tls-cert of cluster c1 map[istio:ingressgateway] 443 HTTPS [*] cert {shop istio-system}",
			"VirtualService shop/ingress-host.a.example of cluster c1 [a.example] at [istio-system/ingress-http shop/ingress-tls-cert]",
			"  [prefix:/] web.shop.svc.cluster.local:80",
		}},
		"what is wrong has no effect on others": {in: `
kind: Ingress
metadata: {name: empty, namespace: shop}
spec: {}
---
kind: Ingress
metadata: {name: hosts, namespace: shop}
spec:
  tls: [{hosts: ["no_name"], secretName: cert}]
  rules:
  - {host: "a b", http: {paths: [{path: /, backend: {service: {name: web, port: {number: 80}}}}]}}
  - {host: "10.0.0.1", http: {paths: [{path: /, backend: {service: {name: web, port: {number: 80}}}}]}}
---
kind: Ingress
metadata: {name: backends, namespace: shop}
spec:
  rules:
  - host: a.example
    http:
      paths:
      - {path: /none, pathType: Exact, backend: {service: {name: none, port: {name: http}}}}
      - {path: /port, pathType: Exact, backend: {service: {name: web, port: {name: grpc}}}}
      - {path: /number, pathType: Exact, backend: {service: {name: web, port: {number: 81}}}}
      - {path: /resource, pathType: Exact, backend: {resource: {kind: Bucket, name: b}}}
      - {path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}
`, want: []string{
			plain,
			"VirtualService shop/ingress-host.a.example of cluster c1 [a.example] at [istio-system/ingress-http]",
			"  [exact:/resource] 503 BACKEND_NOT_SUPPORTED",
			"  [exact:/number] web.shop.svc.cluster.local:81",
			"  [exact:/none] 503 SERVICE_UNKNOWN",
			"  [exact:/port] 503 BACKEND_PORT_UNKNOWN",
			"  [prefix:/] web.shop.svc.cluster.local:80",
			"SERVICE_UNKNOWN Ingress shop/backends of cluster c1 spec.rules[0].http.paths[0].backend.service.name",
			"BACKEND_PORT_UNKNOWN Ingress shop/backends of cluster c1 spec.rules[0].http.paths[1].backend.service.port.name",
			"BACKEND_PORT_UNKNOWN Ingress shop/backends of cluster c1 spec.rules[0].http.paths[2].backend.service.port.number",
			"BACKEND_NOT_SUPPORTED Ingress shop/backends of cluster c1 spec.rules[0].http.paths[3].backend",
			"INGRESS_EMPTY Ingress shop/empty of cluster c1 spec.rules",
			"HOST_INVALID Ingress shop/hosts of cluster c1 spec.rules[0].host",
			"HOST_INVALID Ingress shop/hosts of cluster c1 spec.rules[1].host",
			"HOST_INVALID Ingress shop/hosts of cluster c1 spec.tls[0].hosts[0]",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			test.settings.IngressControllerMode = federation.IngressDefault
			b := newShop(test.settings)
			b.take(asRead(t, "c1", strings.TrimSpace(test.in)))
			if diff := cmp.Diff(test.want, shown(t, b)); diff != "" {
				t.Error(diff)
			}
			for _, e := range b.set.Everything() {
				var in map[string]any
				if err := json.Unmarshal(e.New.Manifest, &in); err != nil {
					t.Fatal(err)
				}
				if _, problems := (kind.Schema{Set: set}).Admit(in); len(problems) > 0 || e.New.CheckName() != nil {
					t.Errorf("%s would be refused: %v", e.New.Key.Title(), problems)
				}
			}
			left := asRead(t, "c1", strings.TrimSpace(test.in))
			for i := range left {
				left[i] = config.Event{Old: left[i].New}
			}
			b.take(left)
			if rest := shown(t, b); len(rest) > 0 || len(units(b)) > 0 {
				t.Errorf("without Ingresses there are %q and the units %v", rest, units(b))
			}
		})
	}
}

// units are those that exist.
func units(b *translations) []unit {
	return slices.SortedFunc(slices.Values(b.set.Affected(federation.ChangeSet{All: true}, b.read)), unit.compare)
}

// TestUnitTitles: a title has no empty parts.
func TestUnitTitles(t *testing.T) {
	for want, u := range map[string]unit{
		"Ingresses of cluster c1, http":           {cluster: "c1", what: ofCluster},
		"Ingresses of cluster c1, host a.example": {cluster: "c1", what: ofHost, name: "a.example"},
		"Ingresses of cluster c1, tls shop/cert":  {cluster: "c1", what: ofSecret, namespace: "shop", name: "cert"},
	} {
		if title := u.title(); title != want {
			t.Errorf("the title is %q, want %q", title, want)
		}
	}
}

// TestG12Classes: which Ingresses are served in which mode.
func TestG12Classes(t *testing.T) {
	const backend = "spec: {%s defaultBackend: {service: {name: web, port: {number: 80}}}}"
	class := func(name, controller string) string {
		return fmt.Sprintf("kind: IngressClass\nmetadata: {name: %s}\nspec: {controller: %s}", name, controller)
	}
	for name, test := range map[string]struct {
		metadata, spec, mesh string
		want                 string // the modes in which it is served
		unknown              bool
	}{
		"without a class":            {want: "DEFAULT"},
		"annotation of the hub":      {metadata: `annotations: {kubernetes.io/ingress.class: istio}`, want: "DEFAULT STRICT"},
		"another class in settings":  {metadata: `annotations: {kubernetes.io/ingress.class: hub}`, mesh: "hub", want: "DEFAULT STRICT"},
		"annotation of another":      {metadata: `annotations: {kubernetes.io/ingress.class: nginx}`},
		"class of the hub":           {spec: "ingressClassName: ours,", want: "DEFAULT STRICT"},
		"class of another":           {spec: "ingressClassName: theirs,"},
		"class that does not exist":  {spec: "ingressClassName: none,", unknown: true},
		"the annotation comes first": {metadata: `annotations: {kubernetes.io/ingress.class: nginx}`, spec: "ingressClassName: ours,"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, mode := range []federation.IngressMode{"", federation.IngressOff, federation.IngressDefault, federation.IngressStrict} {
				b := newShop(federation.MeshSettings{IngressControllerMode: mode, IngressClass: test.mesh})
				b.take(asRead(t, "c1", fmt.Sprintf("kind: Ingress\nmetadata: {name: a, namespace: shop, %s}\n", test.metadata)+
					fmt.Sprintf(backend, test.spec)))
				b.take(asRead(t, "c1", class("ours", "istio.io/ingress-controller")+"\n---\n"+class("theirs", "example.com/nginx")))
				lines := shown(t, b)
				want := mode != "" && slices.Contains(strings.Fields(test.want), string(mode))
				unknown := slices.Contains(lines, "INGRESS_CLASS_UNKNOWN Ingress shop/a of cluster c1 spec.ingressClassName")
				if served := len(b.set.Everything()) > 0; served != want || unknown != (test.unknown && settingsOf(nil).mode != b.settings.mode) {
					t.Errorf("in mode %q it is served: %v, unknown %v: %q", mode, served, unknown, lines)
				}
			}
		})
	}
}

// TestG76IngressesAreReadAndWritten as the settings say.
func TestG76IngressesAreReadAndWritten(t *testing.T) {
	for _, mode := range []federation.IngressMode{federation.IngressOff, federation.IngressDefault, federation.IngressStrict} {
		for _, status := range []bool{false, true} {
			reads, writes := Wanted(&federation.MeshSettings{IngressControllerMode: mode, IngressStatus: status})
			if on := mode != federation.IngressOff; reads != on || writes != status {
				t.Errorf("in mode %s with status %v, Ingresses are read: %v, and their status is written: %v", mode, status, reads, writes)
			}
		}
	}
}

// TestG13IncrementalEqualsFromNothing: after any change the translations give what those have that
// reads everything at once.
func TestG13IncrementalEqualsFromNothing(t *testing.T) {
	const host = `kind: Ingress
metadata: {name: %[1]s, namespace: %[2]s, creationTimestamp: "2026-01-01T00:00:%02[3]dZ"}
spec:
  ingressClassName: %[4]s
  tls: [{hosts: [%[5]s], secretName: %[6]s}]
  rules: [{host: %[5]s, http: {paths: [{path: /%[1]s, pathType: Prefix, backend: {service: {name: web, port: {name: http}}}}]}}]`
	state, seed := map[federation.ObjectKey]config.Event{}, uint32(7)
	next := func(n int) int {
		seed = seed*1664525 + 1013904223
		return int(seed>>16) % n
	}
	settings := federation.MeshSettings{IngressControllerMode: federation.IngressDefault}
	b := newShop(settings)
	seen := map[federation.ObjectKey]string{}
	for step := range 400 {
		var events []config.Event
		switch choice := next(10); choice {
		case 0:
			settings.IngressService = []string{"", "edge/front"}[next(2)]
			b.configure(settingsOf(&settings))
		case 1:
			of := []string{"istio.io/ingress-controller", "example.com/other"}[next(2)]
			events = asRead(t, "c1", fmt.Sprintf("kind: IngressClass\nmetadata: {name: x}\nspec: {controller: %s}", of))
			if old, has := state[events[0].New.Key]; has && next(3) == 0 {
				events[0] = config.Event{Old: old.New}
			}
		case 2:
			b.follow(withService(b.services, []string{"shop", "other"}[next(2)], "web",
				[]federation.Port{{Name: "http", Number: 80}, {Name: "web", Number: 81}}[next(2)]))
		default:
			cluster := []federation.ClusterID{"c1", "c2"}[next(2)]
			events = asRead(t, cluster, fmt.Sprintf(host, []string{"a", "b", "c"}[next(3)], []string{"shop", "other"}[next(2)], next(5),
				[]string{"x", "null"}[next(2)], []string{"a.example", `"*.example"`, "b.example"}[next(3)], []string{"s1", "s2"}[next(2)]))
			if old, has := state[events[0].New.Key]; has && choice > 6 {
				events[0] = config.Event{Old: old.New}
			}
		}
		for _, e := range events {
			if e.New == nil {
				delete(state, e.Old.Key)
			} else {
				state[e.New.Key] = e
			}
		}
		b.take(events)
		for _, e := range b.change(int64(step)) {
			if e.New == nil {
				delete(seen, e.Old.Key)
			} else {
				seen[e.New.Key] = string(e.New.Manifest)
			}
		}
		fresh := newShop(settings)
		fresh.follow(b.services)
		for _, e := range state {
			fresh.take([]config.Event{e})
		}
		if diff := cmp.Diff(shown(t, fresh), shown(t, b)); diff != "" {
			t.Fatalf("after step %d: %s", step, diff)
		}
		if now, want := units(b), units(fresh); !slices.Equal(now, want) {
			t.Fatalf("after step %d there are the units %v, want %v", step, now, want)
		}
		all := map[federation.ObjectKey]string{}
		for _, e := range fresh.set.Everything() {
			all[e.New.Key] = string(e.New.Manifest)
		}
		if diff := cmp.Diff(all, seen); diff != "" {
			t.Fatalf("the events up to step %d: %s", step, diff)
		}
	}
}

// TestG13ChangeCostsWhatItAffects: one changed Ingress, and one changed service, translate
// what they take part in, however many Ingresses there are.
func TestG13ChangeCostsWhatItAffects(t *testing.T) {
	const text = `kind: Ingress
metadata: {name: web-%[1]d, namespace: shop}
spec:
  ingressClassName: %[3]s
  tls: [{hosts: [web-%[1]d.example], secretName: cert-%[1]d}]
  rules: [{host: web-%[1]d.example, http: {paths: [{path: /%[2]s, pathType: Prefix, backend: {service: {name: web-%[1]d, port: {number: 80}}}}]}}]`
	filled := func(clusters, n int, class string) *translations {
		b := newShop(federation.MeshSettings{IngressControllerMode: federation.IngressDefault})
		for c := range clusters {
			of := federation.ClusterID(fmt.Sprintf("c%d", c+1))
			b.take(asRead(t, of, "kind: IngressClass\nmetadata: {name: theirs}\nspec: {controller: example.com/other}"))
			for i := range n {
				b.take(asRead(t, of, fmt.Sprintf(text, i, "v1", class)))
			}
		}
		b.change(1)
		return b
	}
	cost := func(n int) (allocations float64) {
		b := filled(1, n, "null")
		versions := [][]config.Event{asRead(t, "c1", fmt.Sprintf(text, 7, "v2", "null")), asRead(t, "c1", fmt.Sprintf(text, 7, "v3", "null"))}
		at := 0
		return testing.AllocsPerRun(100, func() {
			at++
			b.take(versions[at%2])
			if events := b.change(2); len(events) != 1 {
				t.Fatalf("there are %d events", len(events))
			}
		})
	}
	few, many := cost(100), cost(2_000)
	t.Logf("%v allocations with 100 Ingresses, %v with 2,000", few, many)
	if many > few*1.5 { // trees of twenty times as many are a little deeper
		t.Errorf("a change allocates %v with 2,000 Ingresses, %v with 100", many, few)
	}
	for name, test := range map[string]struct {
		class     string // of all others
		change    string
		units     int
		plainText bool // whether the Gateway for plain text is among them
	}{
		"the first Ingress of a cluster": {"", fmt.Sprintf(text, 7, "v1", "null"), 4, true},
		"the oldest":                     {"null", fmt.Sprintf(text, 0, "v2", "null"), 4, true},
		"one that is not the oldest":     {"null", fmt.Sprintf(text, 7, "v2", "null"), 3, false},
		"an older one that is unserved":  {"null", fmt.Sprintf(text, -1, "v1", "theirs"), 3, false},
		"an unserved one of many":        {"theirs", fmt.Sprintf(text, 7, "v2", "theirs"), 3, false},
		"the only one that is served":    {"theirs", fmt.Sprintf(text, 7, "v2", "null"), 4, true},
	} {
		n := 20
		if test.class == "" {
			n = 0
		}
		b := filled(50, n, test.class)
		b.take(asRead(t, "c7", test.change))
		clusters := slices.DeleteFunc(slices.Collect(maps.Keys(b.dirty)), func(u unit) bool { return u.what != ofCluster })
		if len(b.dirty) != test.units || len(clusters) > 0 != test.plainText || test.plainText && clusters[0].cluster != "c7" {
			t.Errorf("%s: %d units are translated, want %d; the Gateways for plain text are those of %v", name, len(b.dirty), test.units, clusters)
		}
	}
	b := filled(1, 1_000, "null")
	b.follow(withService(b.services, "shop", "web-9", federation.Port{Name: "http", Number: 80}))
	if len(b.dirty) != 1 {
		t.Errorf("a service has %d objects translated again", len(b.dirty))
	}
	b.follow(withService(b.services, "shop", "others"))
	b.follow(withService(b.services, "other", "web-9"))
	if len(b.dirty) != 1 {
		t.Errorf("services of no Ingress have %d objects translated again", len(b.dirty)-1)
	}
}

// TestG13UnservedIngressesLeaveNothing: a cluster whose Ingresses are not served has no units after
// the last of them is deleted, in whichever order they are.
func TestG13UnservedIngressesLeaveNothing(t *testing.T) {
	const text = "kind: Ingress\nmetadata: {name: web-%d, namespace: shop}\nspec: {ingressClassName: none}"
	for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 2, 0}} {
		b := newShop(federation.MeshSettings{IngressControllerMode: federation.IngressDefault})
		for _, i := range order {
			b.take(asRead(t, "c1", fmt.Sprintf(text, i)))
		}
		b.change(1)
		if n := len(units(b)); n != 4 {
			t.Errorf("there are %d units, want one for each Ingress and one for plain text", n)
		}
		for _, i := range order {
			b.take([]config.Event{{Old: asRead(t, "c1", fmt.Sprintf(text, i))[0].New}})
			b.change(2)
		}
		if left := units(b); len(left) > 0 || len(b.oldest) > 0 {
			t.Errorf("after all were deleted in the order %v, there are the units %v", order, left)
		}
	}
}

// TestG14SharedHosts: hosts of several clusters are one problem, and each cluster's own
// Ingress counts.
func TestG14SharedHosts(t *testing.T) {
	const text = "kind: Ingress\nmetadata: {name: web, namespace: shop}\nspec: {rules: [{host: a.example, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}}]}"
	b := newShop(federation.MeshSettings{IngressControllerMode: federation.IngressDefault})
	first, second := asRead(t, "c1", text), asRead(t, "c2", text)
	b.take(first)
	b.take(second)
	if lines := shown(t, b); len(b.set.Everything()) != 4 || !slices.Contains(lines, "HOST_IN_SEVERAL_CLUSTERS Ingresses ") {
		t.Errorf("there are %q", lines)
	}
	b.take([]config.Event{{Old: second[0].New}})
	if lines := shown(t, b); len(b.set.Everything()) != 2 || slices.Contains(lines, "HOST_IN_SEVERAL_CLUSTERS Ingresses ") {
		t.Errorf("after one is deleted, there are %q", lines)
	}
}
