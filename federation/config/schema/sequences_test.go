package schema_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"isthmus.dev/isthmus/federation/config/schema"
)

// step is one write: an apply, by force or not, or an update of the whole.
type step struct {
	manager, how string // how: "apply", "force" or "update"
	wants        string // the manifest without what all steps of the sequence share
}

// sequence is what several managers do to one object.
type sequence struct {
	name, head string // head: of every manifest, up to its name
	steps      []step
}

const (
	virtualService = "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata:\n  namespace: shop\n  name: "
	serviceEntry   = "apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata:\n  namespace: shop\n  name: "
	gatewayAPI     = "apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata:\n  namespace: shop\n  name: "
	route          = "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata:\n  namespace: shop\n  name: "
	network        = "apiVersion: isthmus.dev/v1\nkind: Network\nmetadata:\n  name: "
	binding        = "apiVersion: isthmus.dev/v1\nkind: ServiceBinding\nmetadata:\n  namespace: shop\n  name: "
	settings       = "apiVersion: isthmus.dev/v1\nkind: MeshSettings\nmetadata:\n  name: default\n"
	cluster        = "apiVersion: isthmus.dev/v1\nkind: Cluster\nmetadata:\n  name: "
)

var sequences = []sequence{
	{"one manager changes, repeats and omits", virtualService + "s1\n", []step{
		{"a", "apply", "  labels: {x: one, z: w}\nspec: {hosts: [a], gateways: [mesh], http: [{route: [{destination: {host: a}}]}]}"},
		{"a", "apply", "  labels: {x: one, z: w}\nspec: {hosts: [a], gateways: [mesh], http: [{route: [{destination: {host: a}}]}]}"},
		{"a", "apply", "  labels: {x: q}\nspec: {hosts: [a, b]}"},
		{"a", "apply", "spec: {}"},
		{"a", "apply", ""},
	}},
	{"two managers share, quarrel and force", virtualService + "s2\n", []step{
		{"a", "apply", "  annotations: {example.com/x: a}\nspec: {hosts: [a], exportTo: ['.']}"},
		{"b", "apply", "  annotations: {example.com/y: b}\nspec: {gateways: [mesh]}"},
		{"b", "apply", "  annotations: {example.com/x: b}\nspec: {hosts: [b], exportTo: ['.']}"},
		{"b", "force", "  annotations: {example.com/x: b}\nspec: {hosts: [b], exportTo: ['.']}"},
		{"a", "apply", "  annotations: {example.com/x: a}\nspec: {hosts: [a], exportTo: ['.']}"},
		{"a", "apply", "spec: {exportTo: ['.']}"},
		{"b", "apply", "spec: {hosts: [b]}"},
		{"a", "apply", "spec: {exportTo: ['*']}"},
	}},
	{"items of a list belong to several", serviceEntry + "s3\n", []step{
		{"a", "apply", "spec: {hosts: [a.example.com], ports: [{number: 80, name: http, protocol: HTTP}]}"},
		{"b", "apply", "spec: {hosts: [a.example.com], ports: [{number: 443, name: tls, protocol: TLS}]}"},
		{"b", "apply", "spec: {hosts: [a.example.com], ports: [{number: 8080, name: http, protocol: HTTP}]}"},
		{
			"b", "apply",
			"spec: {hosts: [a.example.com], ports: [{number: 80, name: http, protocol: HTTP}, {number: 443, name: tls, protocol: TLS}]}",
		},
		{"a", "apply", "spec: {hosts: [a.example.com]}"},
		{
			"b", "apply",
			"spec: {hosts: [a.example.com], ports: [{number: 81, name: http, protocol: HTTP}, {number: 82, name: http, protocol: HTTP}]}",
		},
	}},
	{"defaults belong to nobody", gatewayAPI + "s4\n", []step{
		{"a", "apply", "spec: {gatewayClassName: i, listeners: [{name: http, port: 80, protocol: HTTP}]}"},
		{"b", "apply", "spec: {listeners: [{name: tls, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: c}]}}]}"},
		{"b", "apply", "spec: {listeners: [{name: http, allowedRoutes: {namespaces: {from: All}}}]}"},
		{"a", "apply", "spec: {gatewayClassName: i, listeners: [{name: http, port: 8080, protocol: HTTP}]}"},
	}},
	{"defaults within new rules", route + "s5\n", []step{
		{"a", "apply", "spec: {rules: [{backendRefs: [{name: x, port: 80}]}]}"},
		{"b", "apply", "spec: {parentRefs: [{name: g}], hostnames: [a.example.com]}"},
		{"a", "apply", "spec: {rules: [{name: r, matches: [{path: {value: /x}}], backendRefs: [{name: x, port: 80, weight: 5}]}]}"},
		{"a", "apply", "spec: {rules: [{backendRefs: [{name: x}]}]}"},
	}},
	{"an update takes what it changes", virtualService + "s6\n", []step{
		{"a", "apply", "  labels: {x: one}\nspec: {hosts: [a], gateways: [mesh]}"},
		{"u", "update", "  labels: {x: two, k: m}\nspec: {hosts: [a], exportTo: ['*']}"},
		{"a", "apply", "  labels: {x: one}\nspec: {hosts: [a], gateways: [mesh]}"},
		{"a", "force", "  labels: {x: one}\nspec: {hosts: [a], gateways: [mesh]}"},
		{"u", "update", "  labels: {x: one}\nspec: {hosts: [c]}"},
	}},
	{"versions of one kind", strings.Replace(virtualService, "/v1", "/VERSION", 1) + "s7\n", []step{
		{"a", "apply v1beta1", "spec: {hosts: [a], gateways: [mesh]}"},
		{"b", "apply v1alpha3", "spec: {hosts: [a], exportTo: ['.']}"},
		{"b", "apply v1", "spec: {hosts: [b], exportTo: ['.']}"},
		{"a", "apply v1", "spec: {hosts: [a]}"},
		{"a", "apply v1beta1", "spec: {hosts: [a], gateways: [mesh]}"},
	}},
	{"metadata merges as in Kubernetes", virtualService + "s8\n", []step{
		{"a", "apply", "  finalizers: [example.com/a]\n  ownerReferences: [{apiVersion: v1, kind: Pod, name: p, uid: u1}]\nspec: {hosts: [a]}"},
		{
			"b", "apply",
			"  finalizers: [example.com/b]\n  ownerReferences: [{apiVersion: v1, kind: Pod, name: q, uid: u2}]\n  labels: {app.kubernetes.io/name: b}",
		},
		{"a", "apply", "  labels: {app.kubernetes.io/name: a}\nspec: {hosts: [a]}"},
		{"a", "apply", "  ownerReferences: [{apiVersion: v1, kind: Pod, name: r, uid: u2}]\nspec: {hosts: [a]}"},
	}},
	{"own kinds", network + "s9\n", []step{
		{"a", "apply", "spec: {cidrs: [10.0.0.0/8], gateways: [{address: 192.0.2.1}]}"},
		{"b", "apply", "spec: {cidrs: [10.0.0.0/8, 11.0.0.0/8], clusters: [c1]}"},
		{"a", "apply", "spec: {cidrs: [12.0.0.0/8]}"},
		{"b", "apply", "spec: {gateways: [{address: 192.0.2.2, port: 1}]}"},
	}},
	{"ports and weights of a binding", binding + "s10\n", []step{
		{"a", "apply", "spec: {hostname: x, services: [{hostname: a}], ports: [{number: 80}]}"},
		{"b", "apply", "spec: {ports: [{number: 80, name: http}, {number: 53, protocol: UDP}]}"},
		{"b", "apply", "spec: {services: [{hostname: b, weight: 7}]}"},
		{"a", "apply", "spec: {hostname: x, services: [{hostname: a}]}"},
	}},
	{"settings of several", settings, []step{
		{"a", "apply", "spec: {localityLoadBalancing: {failover: [{from: a, to: b}]}, outboundTrafficPolicy: {mode: ALLOW_ANY}}"},
		{
			"b", "apply",
			"spec: {localityLoadBalancing: {failover: [{from: c, to: d}], enabled: true}, outboundTrafficPolicy: {mode: REGISTRY_ONLY}}",
		},
		{"b", "apply", "spec: {localityLoadBalancing: {failover: [{from: c, to: d}], enabled: true}, clusterLocalHosts: [x]}"},
		{"a", "apply", "spec: {}"},
	}},
	{"a rule about what was", cluster + "s12\n", []step{
		{"a", "apply", "spec: {provider: Kubernetes, network: n1}"},
		{"a", "apply", "spec: {provider: Mock, network: n1}"},
		{"b", "force", "spec: {provider: Mock}"},
		{"a", "apply", "spec: {provider: Kubernetes}"},
	}},
	{"nulls", virtualService + "s14\n", []step{
		{"a", "apply", "spec: {hosts: [a], gateways: null}"},
		{"a", "apply", "  labels: null\nspec: {hosts: [a]}"},
		{"a", "apply", "spec: {hosts: [a], http: null}"},
		{"b", "apply", "spec: null"},
	}},
	{"what cannot be merged", serviceEntry + "s13\n", []step{
		{"a", "apply", "spec: {hosts: [a.example.com], ports: [{number: '80', name: http}]}"},
		{"a", "apply", "spec: {hosts: a.example.com}"},
		{"a", "apply", "spec: {host: a.example.com}"},
		{"a", "apply", "spec: {hosts: [a.example.com], ports: [{number: 80, name: http}, {number: 81, name: http}]}"},
	}},
}

var then = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// play does the steps on both sides and compares after each.
func (k *kubernetes) play(t *testing.T, s sequence) {
	var live map[string]any
	for i, st := range s.steps {
		how, version, _ := strings.Cut(st.how, " ")
		wants := parse(t, "step", strings.Replace(s.head, "VERSION", version, 1)+st.wants)
		refused, theirs, conflicts := k.write(t, st.manager, how, wants)
		o := schema.ApplyOptions{Manager: st.manager, Force: how == "force", Now: then}
		do := k.set.Apply
		if how == "update" {
			do = k.set.Replace
		}
		ours, err := do(live, wants, o)
		if err != nil {
			t.Fatal(err)
		}
		var fields []string
		for _, c := range ours.Conflicts {
			fields = append(fields, c.Field+" "+c.Manager)
		}
		slices.Sort(fields)
		if diff := cmp.Diff(conflicts, fields); diff != "" {
			t.Fatalf("step %d: conflicts differ (-Kubernetes +ours):\n%s", i, diff)
		}
		if refused != "" != (ours.Object == nil) {
			t.Fatalf("step %d: Kubernetes refuses: %q, we: %v %v", i, refused, ours.Problems, ours.Conflicts)
		}
		if ours.Object == nil {
			continue
		}
		live = ours.Object
		sameContent(t, theirs, live)
		if diff := cmp.Diff(managers(t, theirs), managers(t, live)); diff != "" {
			t.Fatalf("step %d: managedFields differ (-Kubernetes +ours):\n%s", i, diff)
		}
	}
}

// write does a step on the real server.
func (k *kubernetes) write(t *testing.T, manager, how string, object map[string]any) (refused string,
	result map[string]any, conflicts []string,
) {
	t.Helper()
	name := metadata(object)["name"].(string)
	method, query := http.MethodPatch, "?fieldValidation=Strict&fieldManager="+manager
	if how == "force" {
		query += "&force=true"
	}
	path := k.path(object, name)
	if how == "update" {
		method = http.MethodPut
		var now map[string]any
		k.Do(http.MethodGet, path, nil).Decode(t, &now)
		metadata(object)["resourceVersion"] = metadata(now)["resourceVersion"]
	}
	body, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	answer := k.Do(method, path+query, body)
	if answer.Err != nil {
		t.Fatal(answer.Err)
	}
	if answer.Status == http.StatusConflict {
		return "conflict", nil, causes(t, answer.Body)
	}
	if answer.Status >= 300 {
		return string(answer.Body), nil, nil
	}
	answer.Decode(t, &result)
	return "", result, nil
}

// causes are the fields in conflict and whose they are.
func causes(t *testing.T, body []byte) []string {
	t.Helper()
	var status struct {
		Details struct {
			Causes []struct{ Field, Message string }
		}
	}
	if err := json.Unmarshal(body, &status); err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, c := range status.Details.Causes {
		list = append(list, c.Field+" "+strings.Split(c.Message, `"`)[1])
	}
	slices.Sort(list)
	return list
}

// managers are the managed fields without their times.
func managers(t *testing.T, object map[string]any) any {
	t.Helper()
	text, err := json.Marshal(metadata(object)["managedFields"])
	if err != nil {
		t.Fatal(err)
	}
	var list []map[string]any
	if err := json.Unmarshal(text, &list); err != nil {
		t.Fatal(err)
	}
	for _, entry := range list {
		delete(entry, "time")
	}
	slices.SortFunc(list, func(a, b map[string]any) int {
		key := func(m map[string]any) string {
			return m["manager"].(string) + m["operation"].(string) + m["apiVersion"].(string)
		}
		return strings.Compare(key(a), key(b))
	})
	return list
}
