package crd_test

import (
	"flag"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/configtest"
	"isthmus.dev/isthmus/federation/config/crd"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// problem finds one with the code whose text has all of these.
func problem(s configtest.Seen, code string, holds ...string) bool {
	for _, p := range s.Problems {
		found := p.Code == code
		for _, text := range holds {
			found = found && strings.Contains(p.Object+" "+p.Field+" "+p.Message, text)
		}
		if found {
			return true
		}
	}
	return false
}

// TestG01CustomResources reads one real API server in many ways.
func TestG01CustomResources(t *testing.T) {
	t.Parallel()
	server := testbed.StartKube(t, testbed.KubeOptions{Users: []testbed.KubeUser{{Name: "narrow"}, {Name: "next"}}})
	install(t, server, definition(t, "istio", "virtualservices.networking.istio.io"))
	for _, test := range []struct {
		name string
		run  func(*testing.T, *testbed.Kube)
	}{
		{"OneChangeIsOneEvent", oneChange},
		{"OnlyTheNamespacesThatAreNamed", namespaces},
		{"LastValidFormStays", invalid},
		{"ForbiddenNamespace", forbidden},
		{"Rotation", rotation},
		{"KindThatAppearsLater", later},
		{"TwoClusters", twoClusters},
		{"Scopes", scopes},
		{"KindsThatAreRefused", refusedKinds},
		{"OtherVersions", versions},
		{"KindsWithoutEffect", ignored},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, server) })
	}
}

// oneChange: a change of an object is one event; what only the cluster writes is none.
func oneChange(t *testing.T, server *testbed.Kube) {
	server.Apply(namespace("one"), route("one", "a", "v1"), route("one", "b", "v1"))
	r := newRig(t)
	r.read(all("c1", "one"))
	r.attach("c1", server.Admin, 0)
	recorder, _ := configtest.Listen(t, r.source)
	first := recorder.Wait(t, "both", func(s configtest.Seen) bool { return len(s.Objects) == 2 })
	if !first.Updates[0].Full || len(first.Updates[0].Events) != 2 {
		t.Errorf("the first update is %+v", first.Updates[0])
	}
	a := first.Objects[routeKey("one", "a")]
	for _, text := range []string{"managedFields", "resourceVersion", `"status"`, "generation"} {
		if says(a, text) {
			t.Errorf("%s is kept: %s", text, a.Manifest)
		}
	}
	if !says(a, `"uid"`) || !says(a, `"creationTimestamp"`) {
		t.Errorf("it is %s", a.Manifest)
	}
	server.ApplyStatus(`{"apiVersion":"networking.istio.io/v1","kind":"VirtualService","metadata":{"name":"a","namespace":"one"},"status":{"observedGeneration":7}}`)
	server.Apply(route("one", "b", "v2"))
	after := recorder.Wait(t, "the change", func(s configtest.Seen) bool { return says(s.Objects[routeKey("one", "b")], "v2") })
	if n := len(after.Updates); n != 2 || after.Updates[1].Full || len(after.Updates[1].Events) != 1 {
		t.Errorf("a status and a change came as %+v", after.Updates[1:])
	}
	server.Delete(route("one", "b", ""))
	recorder.Wait(t, "the deletion", func(s configtest.Seen) bool { return len(s.Objects) == 1 })
	if seen := recorder.Now(); len(seen.Problems) != 0 {
		t.Errorf("the problems are %+v", seen.Problems)
	}
}

// namespaces: without a namespace nothing is read; one instead of all is not a gap.
func namespaces(t *testing.T, server *testbed.Kube) {
	server.Apply(namespace("ns1"), namespace("ns2"), route("ns1", "a", "v1"), route("ns2", "b", "v1"))
	r := newRig(t)
	r.read(`{"cluster":"c1","scope":"MESH"}`)
	r.attach("c1", server.Admin, 0)
	recorder, _ := configtest.Listen(t, r.source)
	recorder.Wait(t, "nothing", func(s configtest.Seen) bool { return len(s.Updates) == 1 && len(s.Objects) == 0 })
	r.read(`{"cluster":"c1","namespaces":["*"],"kinds":["VirtualService.networking.istio.io"],"scope":"MESH"}`)
	has := func(s configtest.Seen, namespace, name string) bool {
		return s.Objects[routeKey(namespace, name)] != nil
	}
	before := recorder.Wait(t, "all", func(s configtest.Seen) bool { return has(s, "ns1", "a") && has(s, "ns2", "b") })
	r.read(all("c1", "ns2"))
	after := recorder.Wait(t, "one namespace", func(s configtest.Seen) bool { return !has(s, "ns1", "a") })
	if after.Objects[routeKey("ns2", "b")] != before.Objects[routeKey("ns2", "b")] {
		t.Error("an object that is read before and after was given again")
	}
	server.Apply(route("ns2", "b", "v2"))
	recorder.Wait(t, "a change in the namespace", func(s configtest.Seen) bool { return says(s.Objects[routeKey("ns2", "b")], "v2") })
	r.read()
	recorder.Wait(t, "nothing again", func(s configtest.Seen) bool { return len(s.Objects) == 0 })
	r.read(all("c1", "ns2"))
	recorder.Wait(t, "the namespace again", func(s configtest.Seen) bool { return has(s, "ns2", "b") })
}

// invalid: the server accepts what the hub does not.
func invalid(t *testing.T, server *testbed.Kube) {
	server.Apply(namespace("bad"), route("bad", "a", "v1"))
	r := newRig(t)
	r.read(all("c1", "bad"))
	r.attach("c1", server.Admin, 0)
	recorder, _ := configtest.Listen(t, r.source)
	recorder.Wait(t, "the object", func(s configtest.Seen) bool { return len(s.Objects) == 1 })
	weightless := `{"apiVersion":"networking.istio.io/v1","kind":"VirtualService","metadata":{"name":%q,"namespace":"bad"},
		"spec":{"hosts":["web"],"http":[{"route":[{"destination":{"host":"v1"},"weight":0},{"destination":{"host":"v2"},"weight":0}]}]}}`
	server.Apply(fmt.Sprintf(weightless, "a"), fmt.Sprintf(weightless, "fresh"))
	seen := recorder.Wait(t, "both problems", func(s configtest.Seen) bool { return len(s.Problems) == 2 })
	if o := seen.Objects[routeKey("bad", "a")]; !says(o, "v1") || says(o, "v2") || len(seen.Objects) != 1 {
		t.Errorf("there are %v", seen.Objects)
	}
	for name, fate := range map[string]string{"bad/a": "its last valid form stays", "bad/fresh": "not used"} {
		if !problem(seen, seen.Problems[0].Code, "VirtualService "+name+" of cluster c1", "spec.http[0]", fate) {
			t.Errorf("the problems are %+v", seen.Problems)
		}
	}
	server.Apply(route("bad", "a", "v3"))
	server.Delete(fmt.Sprintf(weightless, "fresh"))
	recorder.Wait(t, "the repair", func(s configtest.Seen) bool {
		return len(s.Problems) == 0 && says(s.Objects[routeKey("bad", "a")], "v3")
	})
}

// forbidden: rights for one of two namespaces.
func forbidden(t *testing.T, server *testbed.Kube) {
	server.Apply(namespace("mine"), namespace("theirs"), route("mine", "a", "v1"), route("theirs", "b", "v1"))
	const proof = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"%s","metadata":{"name":"%s"%s},%s}`
	subject := `"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"narrow"}]`
	server.Apply(
		fmt.Sprintf(proof, "ClusterRole", "proof", "", `"rules":[{"apiGroups":[""],"resources":["namespaces"],"verbs":["list","watch"]}]`),
		fmt.Sprintf(proof, "ClusterRoleBinding", "proof", "",
			`"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"proof"},`+subject),
		fmt.Sprintf(proof, "Role", "mine", `,"namespace":"mine"`,
			`"rules":[{"apiGroups":["networking.istio.io"],"resources":["virtualservices"],"verbs":["list","watch"]}]`),
		fmt.Sprintf(proof, "RoleBinding", "mine", `,"namespace":"mine"`,
			`"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"mine"},`+subject))
	r := newRig(t)
	r.read(`{"cluster":"c1","namespaces":["mine","theirs"],"scope":"MESH"}`)
	r.attach("c1", server.User("narrow"), 0)
	recorder, _ := configtest.Listen(t, r.source)
	seen := recorder.Wait(t, "one object and the problem", func(s configtest.Seen) bool { return len(s.Objects) == 1 && len(s.Problems) == 1 })
	if !problem(seen, "UNREADABLE", "cluster c1", "namespace theirs", "virtualservices.networking.istio.io", "list and watch",
		"as deploy/kubernetes/custom-resources.yaml does") {
		t.Errorf("the problems are %+v", seen.Problems)
	}
}

// rotation: what was read stays when the account that takes over lacks rights, and is
// followed once it has them.
func rotation(t *testing.T, server *testbed.Kube) {
	server.Apply(namespace("turn"), route("turn", "a", "v1"),
		`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"proof-next"},
		"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"proof"},"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"next"}]}`)
	r := newRig(t)
	r.read(all("c1", "turn"))
	r.operator.Update(federation.Edit{Clusters: federation.Delta[federation.ClusterID, federation.ClusterSpec]{
		Set: map[federation.ClusterID]federation.ClusterSpec{"c1": {Provider: federation.Kubernetes}},
	}})
	end := r.follow("c1", server.Admin)
	recorder, _ := configtest.Listen(t, r.source)
	recorder.Wait(t, "the object", func(s configtest.Seen) bool { return len(s.Objects) == 1 })
	r.follow("c1", server.User("next"))
	recorder.Wait(t, "the missing right", func(s configtest.Seen) bool { return problem(s, "UNREADABLE", "namespace turn") })
	server.Apply(route("turn", "a", "v2"))
	recorder.Wait(t, "a change that the first account brings",
		func(s configtest.Seen) bool { return says(s.Objects[routeKey("turn", "a")], "v2") })
	end()
	server.Apply(route("turn", "a", "v3"))
	server.GrantRead("next")
	seen := recorder.Wait(t, "a change that the second account brings", func(s configtest.Seen) bool {
		return says(s.Objects[routeKey("turn", "a")], "v3") && len(s.Problems) == 0
	})
	for _, u := range seen.Updates {
		for _, e := range u.Events {
			if e.New == nil {
				t.Errorf("the object was gone in %+v", u)
			}
		}
	}
}

// later: a kind that the cluster does not serve is not trouble, and is read once it does.
func later(t *testing.T, server *testbed.Kube) {
	r := newRig(t)
	r.read(all("c1", "late"))
	r.attach("c1", server.Admin, 0)
	recorder, _ := configtest.Listen(t, r.source)
	recorder.Wait(t, "the first update", func(s configtest.Seen) bool { return len(s.Updates) == 1 })
	if seen := recorder.Now(); len(seen.Problems) != 0 {
		t.Errorf("the problems are %+v", seen.Problems)
	}
	rules := definition(t, "istio", "destinationrules.networking.istio.io")
	install(t, server, rules)
	server.Apply(namespace("late"),
		`{"apiVersion":"networking.istio.io/v1","kind":"DestinationRule","metadata":{"name":"a","namespace":"late"},"spec":{"host":"web"}}`)
	recorder.Wait(t, "the object of the new kind", func(s configtest.Seen) bool { return len(s.Objects) == 1 })
	do(t, server, http.MethodDelete, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/destinationrules.networking.istio.io", "")
	recorder.Wait(t, "it to be deleted with its kind", func(s configtest.Seen) bool { return len(s.Objects) == 0 && len(s.Problems) == 0 })
}

// versions: a kind is read in a version that the hub knows, or a problem says so.
func versions(t *testing.T, server *testbed.Kube) {
	install(t, server, served(definition(t, "istio", "sidecars.networking.istio.io"), "v1beta1"))
	server.Apply(namespace("old"),
		`{"apiVersion":"networking.istio.io/v1beta1","kind":"Sidecar","metadata":{"name":"a","namespace":"old"},"spec":{"egress":[{"hosts":["./*"]}]}}`,
		`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"workloadgroups.networking.istio.io"},
		"spec":{"group":"networking.istio.io","scope":"Namespaced","names":{"kind":"WorkloadGroup","plural":"workloadgroups","singular":"workloadgroup","listKind":"WorkloadGroupList"},
		"versions":[{"name":"v9","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}}`)
	r := newRig(t)
	r.read(all("c1", "old"))
	r.attach("c1", server.Admin, 0)
	recorder, _ := configtest.Listen(t, r.source)
	seen := recorder.Wait(t, "the object and the problem", func(s configtest.Seen) bool { return len(s.Objects) == 1 && len(s.Problems) == 1 })
	for _, o := range seen.Objects {
		if o.APIVersion != "networking.istio.io/v1" || !says(o, `"networking.istio.io/v1"`) {
			t.Errorf("it is %s in %s", o.Manifest, o.APIVersion)
		}
	}
	if !problem(seen, "VERSION_UNKNOWN", "workloadgroups.networking.istio.io of cluster c1", "v9") {
		t.Errorf("the problems are %+v", seen.Problems)
	}
}

// scopes: without a scope, or with CLUSTER, objects are for the proxies of their own cluster, and those of
// two clusters do not hide each other; a scope may change to the other.
func scopes(t *testing.T, server *testbed.Kube) {
	server.Apply(namespace("scoped"), route("scoped", "a", "v1"))
	source := func(id, scope string) string {
		return fmt.Sprintf(`{"cluster":%q,"namespaces":["scoped"]%s}`, id, scope)
	}
	r := newRig(t)
	r.attach("c1", server.Admin, 0)
	r.attach("c2", server.Admin, 10)
	recorder, _ := configtest.Listen(t, r.source)
	own := func(of federation.ClusterID) federation.ObjectKey {
		key := routeKey("scoped", "a")
		key.Cluster = of
		return key
	}
	given := func(keys ...federation.ObjectKey) func(configtest.Seen) bool {
		return func(s configtest.Seen) bool {
			for _, key := range keys {
				if o := s.Objects[key]; o == nil || o.Key != key {
					return false
				}
			}
			return len(s.Objects) == len(keys) && len(s.Problems) == 0
		}
	}
	r.read(source("c1", ""), source("c2", `,"scope":"CLUSTER"`))
	recorder.Wait(t, "one object for each cluster", given(own("c1"), own("c2")))
	server.Apply(route("scoped", "a", "v2"))
	recorder.Wait(t, "a change of both", func(s configtest.Seen) bool {
		return says(s.Objects[own("c1")], "v2") && says(s.Objects[own("c2")], "v2")
	})
	r.read(source("c1", ""), source("c2", `,"scope":"MESH"`))
	recorder.Wait(t, "one for c1 and one for all proxies", given(own("c1"), own("")))
	r.read(source("c1", ""), source("c2", ""))
	recorder.Wait(t, "one object for each cluster again", given(own("c1"), own("c2")))
	r.read(source("c1", ""))
	recorder.Wait(t, "that of c1", given(own("c1")))
}

// twoClusters: the object of the cluster that is first in precedence counts; what a
// cluster gave goes when it is detached.
func twoClusters(t *testing.T, server *testbed.Kube) {
	server.Apply(namespace("both"), route("both", "a", "v1"))
	r := newRig(t)
	r.read(all("c1", "both"), all("c2", "both"))
	r.attach("c1", server.Admin, 0)
	detach := r.attach("c2", server.Admin, 10)
	recorder, _ := configtest.Listen(t, r.source)
	seen := recorder.Wait(t, "the object and the problem", func(s configtest.Seen) bool { return len(s.Objects) == 1 && len(s.Problems) == 1 })
	if !problem(seen, "HIDDEN_BY", "VirtualService both/a", "of cluster c1 is hidden by the one of cluster c2") {
		t.Errorf("the problems are %+v", seen.Problems)
	}
	detach()
	seen = recorder.Wait(t, "c2 to be missing", func(s configtest.Seen) bool { return problem(s, "CLUSTER_NOT_ATTACHED", "cluster c2") })
	if len(seen.Objects) != 1 || len(seen.Problems) != 1 {
		t.Errorf("there are %v and %+v", seen.Objects, seen.Problems)
	}
	r.read(all("c2", "both"))
	recorder.Wait(t, "nothing to be left", func(s configtest.Seen) bool { return len(s.Objects) == 0 })
}

// refusedKinds: a cluster cannot attach clusters, or say what is read of it.
func refusedKinds(t *testing.T, server *testbed.Kube) {
	r := newRig(t)
	for _, k := range r.source.Kinds() {
		if k == federation.ClusterKind || k == federation.MeshSettingsKind {
			t.Errorf("the source gives %s", k)
		}
	}
	r.read(`{"cluster":"c1","namespaces":["*"],"kinds":["Cluster.isthmus.dev","VirtualServce.networking.istio.io"],"scope":"MESH"}`)
	r.attach("c1", server.Admin, 0)
	recorder, _ := configtest.Listen(t, r.source)
	seen := recorder.Wait(t, "the problems", func(s configtest.Seen) bool { return len(s.Updates) == 1 && len(s.Problems) == 2 })
	if !problem(seen, "KIND_REFUSED", "Cluster.isthmus.dev", "apply them to the hub") || !problem(seen, "KIND_REFUSED", "VirtualServce",
		"does not know") || len(seen.Objects) != 0 {
		t.Errorf("there are %+v and %v", seen.Problems, seen.Objects)
	}
}

// TestG02ClusterGoneAndBack: what a cluster gave stays while it cannot be reached, and
// while another one answers for it; a hub that starts meanwhile does not wait long.
func TestG02ClusterGoneAndBack(t *testing.T) {
	t.Parallel()
	server := testbed.StartKube(t, testbed.KubeOptions{})
	install(t, server, definition(t, "istio", "virtualservices.networking.istio.io"))
	server.Apply(namespace("one"), route("one", "a", "v1"))
	r := newRig(t)
	r.probe = 0 // the default
	r.read(all("c1", "one"))
	r.attach("c1", server.Admin, 0)
	recorder, _ := configtest.Listen(t, r.source)
	recorder.Wait(t, "the object", func(s configtest.Seen) bool { return len(s.Objects) == 1 })
	server.Stop()
	recorder.Wait(t, "the trouble", func(s configtest.Seen) bool {
		return problem(s, "UNREACHABLE", "cluster c1", "stays") && len(s.Objects) == 1
	})

	late := newRig(t, func(o *crd.Options) { o.Patience = time.Hour })
	late.probe = 0
	late.read(all("c1", "one"))
	late.attach("c1", server.Admin, 0)
	starting, _ := configtest.Listen(t, late.source)
	starting.Wait(t, "an update without the dead cluster", func(s configtest.Seen) bool { return len(s.Updates) == 1 && len(s.Objects) == 0 })

	server.Restart()
	recorder.Wait(t, "the trouble to end", func(s configtest.Seen) bool { return len(s.Problems) == 0 })
	server.Apply(route("one", "a", "v2"))
	recorder.Wait(t, "a change after it", func(s configtest.Seen) bool { return says(s.Objects[routeKey("one", "a")], "v2") })
	starting.Wait(t, "the object of the late hub", func(s configtest.Seen) bool { return says(s.Objects[routeKey("one", "a")], "v2") })

	server.Replace()
	seen := recorder.Wait(t, "the other cluster to be seen",
		func(s configtest.Seen) bool { return problem(s, "UNREACHABLE", "another cluster answers") })
	if !says(seen.Objects[routeKey("one", "a")], "v2") {
		t.Errorf("there are %v", seen.Objects)
	}
}

var update = flag.Bool("update", false, "write the rules of the role")

// TestG05ManifestGrantsWhatIsRead: the role has the kinds that the source gives, those that it reports, and no more.
func TestG05ManifestGrantsWhatIsRead(t *testing.T) {
	const file = "../../../deploy/kubernetes/custom-resources.yaml"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, _ := strings.Cut(string(text), "\nrules:\n")
	_, tail, found := strings.Cut(rest, "---\n")
	if !found {
		t.Fatalf("%s has no rules, or no second document", file)
	}
	want := head + "\nrules:\n" + rulesOfRole(t) + "---\n" + tail
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(text) != want {
		t.Errorf("the role has other rules than the source needs; write them with -update:\n%s", want)
	}
}

// rulesOfRole are the rules that permit what the source reads, by group.
func rulesOfRole(t *testing.T) string {
	set := kinds(t)
	read, reported := map[string][]string{}, map[string][]string{}
	for _, k := range newRig(t).source.Kinds() {
		known, _ := set.Kind(k)
		read[known.Group] = append(read[known.Group], known.Plural)
	}
	for _, k := range set.Ignored() {
		reported[k.Group] = append(reported[k.Group], k.Plural)
	}
	var rules strings.Builder
	for _, of := range []struct {
		kinds         map[string][]string
		verbs, reason string
	}{
		{read, "list, watch", ""},
		{reported, "list", " # which have no effect: the hub reports that there are some"},
	} {
		for _, group := range slices.Sorted(maps.Keys(of.kinds)) {
			slices.Sort(of.kinds[group])
			fmt.Fprintf(&rules, "- apiGroups: [%s]%s\n  resources: [%s]\n  verbs: [%s]\n", group, of.reason,
				strings.Join(of.kinds[group], ", "), of.verbs)
		}
	}
	return rules.String()
}

// TestG03NoSettingsNoWait: without sources the first update comes at once; a cluster that
// is not attached delays it for Patience.
func TestG03NoSettingsNoWait(t *testing.T) {
	r := newRig(t, func(o *crd.Options) { o.Patience = time.Hour })
	recorder, _ := configtest.Listen(t, r.source)
	recorder.Wait(t, "the first update", func(s configtest.Seen) bool { return len(s.Updates) == 1 })
	r = newRig(t, func(o *crd.Options) { o.Patience = 10 * time.Millisecond })
	r.read(all("c9", "one"))
	recorder, _ = configtest.Listen(t, r.source)
	recorder.Wait(t, "the update and the problem",
		func(s configtest.Seen) bool { return len(s.Updates) == 1 && problem(s, "CLUSTER_NOT_ATTACHED", "c9") })
}

// ignored: objects of kinds that the hub does not support are reported where all kinds are read, and where they may be listed (G99).
func ignored(t *testing.T, server *testbed.Kube) {
	install(t, server, definition(t, "istio", "wasmplugins.extensions.istio.io"), definition(t, "istio", "trafficextensions.extensions.istio.io"))
	server.Apply(namespace("wasm"), namespace("plain"), route("plain", "a", "v1"),
		`{"apiVersion":"extensions.istio.io/v1alpha1","kind":"WasmPlugin","metadata":{"name":"auth","namespace":"wasm"},"spec":{"url":"oci://example.com/auth:v1"}}`)
	r := newRig(t)
	r.read(all("c1", "plain"))
	r.attach("c1", server.Admin, 0)
	recorder, _ := configtest.Listen(t, r.source)
	seen := recorder.Wait(t, "the object", func(s configtest.Seen) bool { return len(s.Objects) == 1 })
	if problem(seen, "NOT_HONOURED") {
		t.Errorf("for a namespace without such objects, the problems are %+v", seen.Problems)
	}
	r.read(all("c1", "*"))
	recorder.Wait(t, "the problem", func(s configtest.Seen) bool {
		return problem(s, "NOT_HONOURED", "wasmplugins.extensions.istio.io of cluster c1", "wasm/auth", "no effect")
	})
	if problem(recorder.Now(), "NOT_HONOURED", "trafficextensions") {
		t.Error("a kind without objects is reported")
	}
	do(t, server, http.MethodDelete, "/apis/extensions.istio.io/v1alpha1/namespaces/wasm/wasmplugins/auth", "")
	recorder.Wait(t, "the object to be gone", func(s configtest.Seen) bool { return !problem(s, "NOT_HONOURED", "wasmplugins") })
	r.read(`{"cluster":"c1","namespaces":["*"],"kinds":["VirtualService.networking.istio.io"]}`)
	recorder.Wait(t, "the kinds that are named", func(s configtest.Seen) bool { return !problem(s, "NOT_HONOURED", "extensions") })
}
