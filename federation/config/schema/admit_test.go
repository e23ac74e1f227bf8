package schema

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestBY9EveryServedVersionIsStoredInOne(t *testing.T) {
	set := load(t)
	for _, version := range []string{"v1", "v1beta1", "v1alpha3"} {
		object := virtualService(t, "", `{"hosts":["a"]}`)
		object["apiVersion"] = "networking.istio.io/" + version
		admitted, problems := set.Admit(object, nil)
		if len(problems) > 0 || admitted["apiVersion"] != "networking.istio.io/v1" {
			t.Errorf("%s is stored as %v, %v", version, admitted["apiVersion"], problems)
		}
		if object["apiVersion"] != "networking.istio.io/"+version {
			t.Errorf("%s: the object that came in was changed", version)
		}
	}
}

// TestBY9VersionsOfIstioAreOne: a rename is all that conversion takes.
func TestBY9VersionsOfIstioAreOne(t *testing.T) {
	for _, d := range load(t).definitions {
		if !strings.HasSuffix(d.Group, "istio.io") {
			continue
		}
		stored, err := d.versions[d.Storage].schema()
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range d.versions {
			c, err := v.schema()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(stored.structural.Properties["spec"], c.structural.Properties["spec"]); diff != "" {
				t.Errorf("%s and its storage version (-stored +served):\n%s", v.GroupVersionKind, diff)
			}
		}
	}
}

func TestBY9AFieldThatTheStoredVersionLacksIsRefused(t *testing.T) {
	d := load(t).definitions[load(t).Kinds()[0].Kind]
	from := d.versions[d.Storage]
	other := *from
	other.Version = "v0"
	object := map[string]any{"apiVersion": "x/v0", "kind": d.Name, "metadata": map[string]any{"name": "a"}, "gone": true}
	admitted, problems := other.toStorage(object)
	if admitted != nil || len(problems) != 1 || problems[0].Field != "gone" {
		t.Errorf("%v %v, want the field gone refused", admitted, problems)
	}
}

func TestAdmitFillsInDefaults(t *testing.T) {
	object := fromJSON(t, `{"apiVersion":"gateway.networking.k8s.io/v1","kind":"HTTPRoute","metadata":{"name":"r","namespace":"shop"},
		"spec":{"parentRefs":[{"name":"g"}],"rules":[{"backendRefs":[{"name":"a","port":80}]}]}}`)
	admitted, problems := load(t).Admit(object, nil)
	want := fromJSON(t, `{"parentRefs":[{"group":"gateway.networking.k8s.io","kind":"Gateway","name":"g"}],
		"rules":[{"matches":[{"path":{"type":"PathPrefix","value":"/"}}],"backendRefs":[{"group":"","kind":"Service","name":"a","port":80,"weight":1}]}]}`)
	if diff := cmp.Diff(any(want), admitted["spec"]); diff != "" || len(problems) > 0 {
		t.Errorf("spec (-want +got):\n%s%v", diff, problems)
	}
	binding, problems := load(t).Admit(fromJSON(t,
		`{"apiVersion":"isthmus.dev/v1","kind":"ServiceBinding","metadata":{"name":"b","namespace":"shop"},
		"spec":{"hostname":"a.example","services":[{"hostname":"b.example"}]}}`), nil)
	if got := toJSON(t, binding); !strings.Contains(got, `"weight":1`) || len(problems) > 0 {
		t.Errorf("%s %v, want weight 1", got, problems)
	}
}

func TestAdmitKnowsWhatWas(t *testing.T) {
	set := load(t)
	cluster := func(provider string) map[string]any {
		return fromJSON(t, `{"apiVersion":"isthmus.dev/v1","kind":"Cluster","metadata":{"name":"c1"},"spec":{"provider":"`+provider+`"}}`)
	}
	_, problems := set.Admit(cluster("Mock"), cluster("Kubernetes"))
	if got := summary(problems); got != "# INVALID spec.provider\n" {
		t.Errorf("another provider gives %q", got)
	}
	if _, problems := set.Admit(cluster("Mock"), cluster("Mock")); len(problems) > 0 {
		t.Errorf("the same provider: %v", problems)
	}
}

// TestR06LimitsOfClusterObjects: a limit that is none is refused when it is applied.
func TestR06LimitsOfClusterObjects(t *testing.T) {
	set := load(t)
	for limits, want := range map[string]string{
		`{"objects":9,"pages":3,"bytes":"64Mi"}`: "", `{"bytes":"1e9"}`: "", `{}`: "",
		`{"objects":0}`: "# INVALID spec.limits.objects\n", `{"pages":-1}`: "# INVALID spec.limits.pages\n",
		`{"bytes":"0"}`:    "# INVALID spec.limits.bytes\n",
		`{"bytes":"much"}`: "# INVALID spec.limits.bytes\n",
	} {
		_,
			problems := set.Admit(fromJSON(t,
			`{"apiVersion":"isthmus.dev/v1","kind":"Cluster","metadata":{"name":"c1"},"spec":{"provider":"Mock","limits":`+limits+`}}`), nil)
		if got := summary(problems); got != want {
			t.Errorf("%s: %q, want %q", limits, got, want)
		}
	}
}

func TestAdmitTellsWhatIsMeant(t *testing.T) {
	set := load(t)
	for _, c := range []struct{ object, says string }{
		{`"spec":{"Hosts":["a"]}`, `unknown field "spec.Hosts": did you mean "hosts"?`},
		{`"spec":{"http":[{"retry":{"attempts":1}}]}`, `did you mean "retries"?`},
		{`"spec":{"http":[{"match":[{"xyz":1,"uri":{"regexp":"a"}}]}]}`, `did you mean "regex"?`},
		{`"specification":{}`, `unknown field "specification"`},
	} {
		_,
			problems := set.Admit(fromJSON(t,
			`{"apiVersion":"networking.istio.io/v1","kind":"VirtualService","metadata":{"name":"r","namespace":"n"},`+c.object+`}`), nil)
		found := false
		for _, p := range problems {
			found = found || strings.Contains(p.Message, c.says)
		}
		if !found {
			t.Errorf("%s: %v, want %q", c.object, problems, c.says)
		}
	}
}

func TestAKindWithoutItsGroupIsAnsweredWithTheForm(t *testing.T) {
	_, problems := load(t).Admit(fromJSON(t, `{"apiVersion":"isthmus.dev/v1","kind":"MeshSettings","metadata":{"name":"default"},
		"spec":{"sources":[{"cluster":"home","kinds":["VirtualService"]}]}}`), nil)
	want := Problem{
		Invalid, "spec.sources[0].kinds[0]",
		`Invalid value: "VirtualService": write KIND.GROUP, such as VirtualService.networking.istio.io`,
	}
	if len(problems) != 1 || problems[0] != want {
		t.Errorf("the problems are %+v, want %+v", problems, want)
	}
}

func TestMessagesAreBounded(t *testing.T) {
	long := strings.Repeat("é", 1<<16)
	_, problems := load(t).Admit(virtualService(t, `,"labels":{"a":"`+long+`"}`, `{"`+long+`":1}`), nil)
	if len(problems) == 0 {
		t.Fatal("it is accepted")
	}
	for _, p := range problems {
		if len(p.Message) > 1100 {
			t.Errorf("a message of %d bytes", len(p.Message))
		}
	}
}

func TestDiffShowsWhatChanges(t *testing.T) {
	from := virtualService(t, `,"managedFields":[{"manager":"a"}]`, `{"hosts":["a"],"gateways":["mesh"]}`)
	to := virtualService(t, "", `{"hosts":["b"],"gateways":["mesh"]}`)
	want := `--- before
+++ after
@@ -7,4 +7,4 @@
   gateways:
   - mesh
   hosts:
-  - a
+  - b
`
	if diff := cmp.Diff(want, Diff(from, to)); diff != "" {
		t.Errorf("diff (-want +got):\n%s", diff)
	}
	stored := virtualService(t,
		`,"generation":2,"uid":"u-1","creationTimestamp":"2026-05-04T12:00:00Z","resourceVersion":"7","managedFields":[{"manager":"b"}]`,
		`{"hosts":["b"],"gateways":["mesh"]}`)
	if diff := cmp.Diff(want, Diff(from, stored)); diff != "" {
		t.Errorf("what the store sets is shown (-want +got):\n%s", diff)
	}
	if got := Diff(to, stored); got != "" {
		t.Errorf("what the store sets makes a difference:\n%s", got)
	}
	if got := Diff(nil, stored); strings.Contains(got, "uid") || strings.Contains(got, "creationTimestamp") ||
		!strings.Contains(got, "+  name:") {
		t.Errorf("a new object as it is stored:\n%s", got)
	}
	if got := Diff(from, from); got != "" {
		t.Errorf("equal objects differ:\n%s", got)
	}
	if got := Diff(nil, to); !strings.Contains(got, "+kind: VirtualService") || strings.Contains(got, "\n-") {
		t.Errorf("a new object:\n%s", got)
	}
	if got := Diff(to, nil); !strings.Contains(got, "-kind: VirtualService") || strings.Contains(got, "\n+ ") {
		t.Errorf("a deleted object:\n%s", got)
	}
}
