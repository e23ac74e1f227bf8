package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"isthmus.dev/isthmus/internal/cli/apply"
	"isthmus.dev/isthmus/internal/cli/cmdutil"
)

const externalShop = `apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: ext, namespace: shop}
spec: {hosts: [ext.example.com], resolution: STATIC, ports: [{number: 80, name: http, protocol: HTTP}], endpoints: [{address: 192.0.2.1}]}
`

// While objects are watched, their status goes on from pending to acknowledged,
// and the counts of clusters follow.
func TestR44WatchUpdatesStatusAndCounts(t *testing.T) {
	s := &stage{t: t, hub: atHub(t), proxies: map[string]*actor{}}
	dir := t.TempDir()
	rule := strings.Replace(fmt.Sprintf(manifest1, "hello"), "host: web",
		"host: hello.default.svc.cluster.local, trafficPolicy: {connectionPool: {tcp: {maxConnections: 7}}}", 1)
	rule = strings.Replace(rule, "namespace: shop", "namespace: default", 1)
	s.do("web-1 connects")
	s.begin("get dr -n default -w")
	mustRun(t, "apply", "-f", write(t, filepath.Join(dir, "rule.yaml"), rule))
	s.do("web-1 receives")
	s.do("shows pending 1/1")
	s.do("web-1 accepts")
	s.do("shows acked 1/1")
	s.end()
	s.begin("get clusters -w -o jsonpath={.clusterID}={.services.totalCount};")
	mustRun(t, "apply", "-f", write(t, filepath.Join(dir, "ext.yaml"), externalShop))
	s.do("shows hub=1;")
	if o := s.end(); o.code != cmdutil.ExitDone {
		t.Errorf("exit %d with %q", o.code, o.errors.String())
	}
}

// Watched as JSON, what is deleted is an event on standard output.
func TestR44WatchTellsDeletionsAsEvents(t *testing.T) {
	s := &stage{t: t, hub: atHub(t), proxies: map[string]*actor{}}
	mustRun(t, "apply", "-f", write(t, filepath.Join(t.TempDir(), "one.yaml"), fmt.Sprintf(manifest1, "one")))
	s.begin("get dr -n shop -w -o json")
	s.do(`shows "type":"ADDED"`)
	mustRun(t, "delete", "dr/one", "-n", "shop")
	s.do(`shows "type":"DELETED"`)
	o := s.end()
	if o.errors.String() != "" || strings.Count(o.out.String(), "\n") != 2 || strings.Count(o.out.String(), `"name":"one"`) != 2 {
		t.Errorf("out %q, errors %q", o.out.String(), o.errors.String())
	}
}

// Manifests that name no namespace are of the context's, or of the one that -n
// names; a manifest of another one is refused.
func TestR44ApplyAndDiffFollowTheNamespace(t *testing.T) {
	atHub(t)
	dir := t.TempDir()
	bare := write(t, filepath.Join(dir, "bare.yaml"), strings.Replace(fmt.Sprintf(manifest1, "bare"), ", namespace: shop", "", 1))
	t.Setenv("ISTHMUS_CONFIG", write(t, filepath.Join(dir, "config.yaml"), "current: a\ncontexts: [{name: a, namespace: orders}]\n"))
	if out := mustRun(t, "apply", "-f", bare, "-o", "name"); out != "destinationrule.networking.istio.io/orders/bare\n" {
		t.Errorf("the context's namespace: %s", out)
	}
	if out := mustRun(t, "apply", "-f", bare, "-n", "checkout", "-o", "name"); out != "destinationrule.networking.istio.io/checkout/bare\n" {
		t.Errorf("-n: %s", out)
	}
	if out := mustRun(t, "diff", "-f", bare); out != "" {
		t.Errorf("diff in the context's namespace: %s", out)
	}
	if code, out, _ := command(t, "diff", "-f", bare, "-n", "third"); code != apply.DiffDifferent ||
		!strings.Contains(out, "/third/bare would be created") {
		t.Errorf("diff -n: %d %s", code, out)
	}
	other := write(t, filepath.Join(dir, "other.yaml"), fmt.Sprintf(manifest1, "other"))
	if code, _, errText := command(t, "apply", "-f", other, "-n", "checkout"); code != cmdutil.ExitFailed ||
		!strings.Contains(errText, `namespace "shop"`) {
		t.Errorf("a manifest of another namespace: %d %s", code, errText)
	}
}

// TestR63DifferencesAreAskedForWhereTheyAreShown: they are most of the answer to a
// large apply.
func TestR63DifferencesAreAskedForWhereTheyAreShown(t *testing.T) {
	atHub(t)
	dir := t.TempDir()
	file, other := write(t, filepath.Join(dir, "one.yaml"), fmt.Sprintf(manifest1, "one")),
		write(t, filepath.Join(dir, "two.yaml"), fmt.Sprintf(manifest1, "two"))
	for _, of := range []struct {
		line  string
		shown bool
	}{
		{"apply -f " + file + " -o json --dry-run", true},
		{"apply -f " + file, false},
		{"diff -f " + other, true},
		{"delete -f " + file + " -o name", false},
		{"rollback --to 1 -o yaml", true},
	} {
		_, out, errText := command(t, append(strings.Fields(of.line), "--show-query")...)
		if asked := strings.Contains(errText, `"diff":true`); asked != of.shown {
			t.Errorf("%s: differences are asked for: %t, want %t: %s", of.line, asked, of.shown, errText)
		}
		if shown := strings.Contains(out, "+  host: web"); shown != of.shown {
			t.Errorf("%s: differences are shown: %t, want %t: %s", of.line, shown, of.shown, out)
		}
	}
}

// A manifest with a resourceVersion from another API server is applied; it is refused
// only if the caller asks for the comparison.
func TestR44ResourceVersionIsComparedOnRequest(t *testing.T) {
	atHub(t)
	file := write(t, filepath.Join(t.TempDir(), "one.yaml"), strings.Replace(fmt.Sprintf(manifest1, "one"), "namespace: shop",
		`namespace: shop, resourceVersion: "812"`, 1))
	mustRun(t, "apply", "-f", file)
	mustRun(t, "diff", "-f", file)
	if code, _, errText := command(t, "apply", "-f", file, "--compare-resource-version"); code != cmdutil.ExitFailed ||
		!strings.Contains(errText, "PRECONDITION_FAILED") {
		t.Errorf("exit %d: %s", code, errText)
	}
}

// Services are found by the first labels of their names, and one thing is asked
// for by its key.
func TestR44OneThingIsFoundByItsName(t *testing.T) {
	atHub(t)
	for line, want := range map[string]string{
		"get svc hello":         "hello.default.svc.cluster.local",
		"get svc hello.default": "hello.default.svc.cluster.local",
		"describe svc hello":    "hello.default.svc.cluster.local",
		"get cluster c1":        "c1",
		"get network n1":        "n1",
		"describe network n1":   "n1",
	} {
		if out := mustRun(t, strings.Fields(line)...); !strings.Contains(out, want) {
			t.Errorf("%s: %s", line, out)
		}
	}
	for line, asked := range map[string]string{"get svc hello.default.svc.cluster.local": "ServiceByName", "get cluster c1": "ClusterByID"} {
		_, _, errText := command(t, append(strings.Fields(line), "--show-query")...)
		if !strings.Contains(errText, "query "+asked) || strings.Contains(errText, "hasNextPage") {
			t.Errorf("%s reads lists: %s", line, errText)
		}
	}
	if code, _, errText := command(t, "get", "svc", "hullo"); code != cmdutil.ExitFailed || !strings.Contains(errText, "not found") {
		t.Errorf("exit %d: %s", code, errText)
	}
}

// get networks lists the networks that the hub knows, with and without an object.
func TestR44NetworksThatExistAreListed(t *testing.T) {
	atHub(t)
	out := mustRun(t, "get", "networks")
	for _, want := range []string{"GATED", "\nn1 ", "\nn2 "} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in %s", want, out)
		}
	}
}

// Unknown commands and kinds name what may be meant.
func TestR44UnknownWordsGetASuggestion(t *testing.T) {
	atHub(t)
	for line, want := range map[string]string{
		"aply -f x":          `did you mean "apply"?`,
		"proxy statsu":       `did you mean "status"?`,
		"get servicess":      `did you mean "services"?`,
		"get virtualservise": `did you mean "virtualservice"?`,
	} {
		code, _, errText := command(t, strings.Fields(line)...)
		if code != cmdutil.ExitUsage || !strings.Contains(errText, want) {
			t.Errorf("%s: exit %d: %s", line, code, errText)
		}
	}
}

// A word for several kinds names each of them, and what else has gateways.
func TestR44AnAmbiguousKindNamesItsCandidates(t *testing.T) {
	atHub(t)
	for _, word := range []string{"gateways", "gateway"} {
		code, _, errText := command(t, "get", word)
		if code != cmdutil.ExitUsage || !strings.Contains(errText,
			"write gateways.gateway.networking.k8s.io or gateways.networking.istio.io; ") ||
			!strings.Contains(errText, "isthmus describe network NAME") {
			t.Errorf("%s: exit %d: %s", word, code, errText)
		}
	}
}

// explain, status and proxy status answer what istioctl's do.
func TestR44ExplainAndStatus(t *testing.T) {
	s := &stage{t: t, hub: atHub(t), proxies: map[string]*actor{}}
	s.do("web-1 connects")
	for line, want := range map[string]string{
		"explain web-1.shop hello.default.svc.cluster.local:80": "yes",
		"explain web-1.shop hello:80 -n default -o wide":        "LOCALITY",
		"explain web-1.shop hello:80 -n default -o json":        `"included": true`,
		"status":                          "1 SYNCED",
		"status -o json":                  `"READY": 3`,
		"proxy status":                    nodeOf("web-1"),
		"proxy status " + nodeOf("web-1"): "acknowledged",
	} {
		if out := mustRun(t, strings.Fields(line)...); !strings.Contains(out, want) {
			t.Errorf("%s: %s", line, out)
		}
	}
	if code, _, errText := command(t, "explain", "web-1.shop", "hello"); code != cmdutil.ExitUsage || !strings.Contains(errText, "HOST:PORT") {
		t.Errorf("exit %d: %s", code, errText)
	}
}

// status has the hub count proxies, and lists only those that need attention.
func TestStatusListsOnlyProxiesThatNeedAttention(t *testing.T) {
	s := &stage{t: t, hub: atHub(t), proxies: map[string]*actor{}}
	s.do("web-1 connects")
	s.do("web-2 connects")
	code, out, queries := command(t, "status", "--show-query")
	if code != cmdutil.ExitDone || !strings.Contains(out, "2 SYNCED") || strings.Contains(queries, "query Proxies") {
		t.Errorf("exit %d: %s, after %s", code, out, queries)
	}
	mustRun(t, "apply", "-f", write(t, filepath.Join(t.TempDir(), "ext.yaml"), externalShop))
	s.do("web-1 receives")
	s.do("web-1 refuses")
	out = mustRun(t, "status")
	for _, want := range []string{"1 NACKED", "proxy " + nodeOf("web-1") + " refuses what it was sent"} {
		if !strings.Contains(out, want) || strings.Contains(out, nodeOf("web-2")) {
			t.Errorf("no %q in %s", want, out)
		}
	}
}

// proxy config shows the very resources that a proxy was sent, and nothing else.
func TestR44ProxyConfigPrintsWhatAProxyWasSent(t *testing.T) {
	s := &stage{t: t, hub: atHub(t), proxies: map[string]*actor{}}
	s.do("web-1 connects")
	received := s.proxies["web-1"].last
	var shown struct {
		Items []struct {
			Name, VersionSent, VersionAcked string
			Sent, Acked                     json.RawMessage
		}
	}
	if err := json.Unmarshal([]byte(mustRun(t, "proxy", "config", "web-1.shop", "clusters", "-o", "json")), &shown); err != nil {
		t.Fatal(err)
	}
	if len(shown.Items) == 0 || len(shown.Items) != len(received.Resources) {
		t.Fatalf("%d resources are shown, and %d were sent", len(shown.Items), len(received.Resources))
	}
	for _, one := range shown.Items {
		var of clusterv3.Cluster
		if err := protojson.Unmarshal(one.Sent, &of); err != nil {
			t.Fatal(err)
		}
		var was clusterv3.Cluster
		if err := received.Resources[one.Name].UnmarshalTo(&was); err != nil {
			t.Fatal(err)
		}
		if !proto.Equal(&of, &was) || one.VersionSent != received.Versions[one.Name] || one.VersionAcked != one.VersionSent ||
			string(one.Acked) != string(one.Sent) {
			t.Errorf("%s: shown is %s %s %s, sent was %v", one.Name, one.VersionSent, one.VersionAcked, one.Sent, &was)
		}
	}
	name := shown.Items[0].Name
	if out := mustRun(t, "proxy", "config", nodeOf("web-1"), "--name", name); strings.Count(out, "\n") != 2 || !strings.Contains(out, name) ||
		!strings.Contains(out, "yes") {
		t.Errorf("the table of one resource is %s", out)
	}
	for line, want := range map[string]string{
		"proxy config web-9.shop": "web-9.shop", "proxy config web-1.shop services": "clusters",
		"proxy config": "needs a proxy",
	} {
		if code, out, errText := command(t, strings.Fields(line)...); code == 0 || out != "" || !strings.Contains(errText, want) {
			t.Errorf("%s: exit %d: %s%s", line, code, out, errText)
		}
	}
}
