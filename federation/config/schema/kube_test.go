package schema_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation/config/manifest"
	"isthmus.dev/isthmus/federation/config/schema"
)

// differences are the manifests of the corpus of which a kube-apiserver thinks
// otherwise, each with its reason.
var differences = map[string]string{
	"gwapi-class-namespaced.yaml": "Kubernetes drops the namespace of a kind that has none; the hub refuses what it would drop",
	"own-cluster-namespaced.yaml": "Kubernetes drops the namespace of a kind that has none; the hub refuses what it would drop",
}

// otherFields are those that both refuse, but with other fields named.
var otherFields = map[string]string{
	"meta-owner.yaml": "the hub says which of the owners has no uid",
}

// TestG69KubernetesAgrees compares the verdicts about at least 300 manifests and managedFields with those of a real
// kube-apiserver that has the same definitions.
func TestG69KubernetesAgrees(t *testing.T) {
	set, err := schema.Load()
	if err != nil {
		t.Fatal(err)
	}
	kube := &kubernetes{Kube: testbed.StartKube(t, testbed.KubeOptions{}), set: set}
	kube.Apply(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop"}}`,
		`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"istio-system"}}`)
	kube.install(t)
	judged := 0
	for _, sort := range []string{"valid", "invalid"} {
		files, err := filepath.Glob("testdata/corpus/" + sort + "/*.yaml")
		if err != nil || len(files) == 0 {
			t.Fatal(len(files), err)
		}
		judged += len(files)
		for _, file := range files {
			t.Run(sort+"/"+filepath.Base(file), func(t *testing.T) { kube.compare(t, file) })
		}
	}
	if judged < 300 {
		t.Errorf("the corpus has %d manifests", judged)
	}
	for _, s := range sequences {
		t.Run(s.name, func(t *testing.T) { kube.play(t, s) })
	}
}

// kubernetes is the real thing beside ours.
type kubernetes struct {
	*testbed.Kube
	set *schema.Set
}

// install makes the server serve every kind.
func (k *kubernetes) install(t *testing.T) {
	t.Helper()
	for _, definition := range definitions(t) {
		testbed.WaitFor(t, 5*time.Minute, "the API server to take a definition", func() error {
			answer := k.Do(http.MethodPost, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
			if answer.Status != http.StatusCreated && answer.Status != http.StatusConflict {
				return fmt.Errorf("%d %w: %.2000s", answer.Status, answer.Err, answer.Body)
			}
			return nil
		})
	}
	for _, kind := range k.set.Kinds() {
		for _, version := range kind.Versions {
			path := "/apis/" + kind.Group + "/" + version + "/" + kind.Plural
			testbed.WaitFor(t, 5*time.Minute, "the API server to serve "+path, func() error {
				if answer := k.Do(http.MethodGet, path, nil); answer.Err != nil || answer.Status != http.StatusOK {
					return fmt.Errorf("%d %w", answer.Status, answer.Err)
				}
				return nil
			})
		}
	}
}

func definitions(t *testing.T) [][]byte {
	t.Helper()
	var all [][]byte
	for _, name := range []string{"istio", "gateway-api", "mcs-api"} {
		for _, d := range testbed.Definitions(t, "crds/"+name+".json.gz") {
			all = append(all, []byte(d))
		}
	}
	files, err := filepath.Glob("crds/*.yaml")
	if err != nil || len(files) != 5 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		definition, err := yaml.YAMLToJSONStrict(data)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, definition)
	}
	return all
}

// path is that of the object's kind, or of the object itself.
func (k *kubernetes) path(object map[string]any, name string) string {
	apiVersion, kind := object["apiVersion"].(string), object["kind"].(string)
	namespace, _ := metadata(object)["namespace"].(string)
	plural, namespaced := strings.ToLower(kind)+"s", true
	for _, known := range k.set.Kinds() {
		if group, _, _ := strings.Cut(apiVersion, "/"); known.Name == kind && known.Group == group {
			plural, namespaced = known.Plural, known.Namespaced
		}
	}
	path := "/apis/" + apiVersion
	if namespaced {
		if namespace == "" {
			namespace = "shop"
		}
		path += "/namespaces/" + namespace
	}
	return strings.TrimSuffix(path+"/"+plural+"/"+name, "/")
}

func metadata(object map[string]any) map[string]any {
	m, _ := object["metadata"].(map[string]any)
	return m
}

func parse(t *testing.T, name, text string) map[string]any {
	t.Helper()
	documents, problems := manifest.Parse(name, []byte(text), manifest.Limits{})
	if len(problems) > 0 || len(documents) != 1 {
		t.Fatalf("%s: %d documents, %v", name, len(documents), problems)
	}
	return documents[0].Value
}

// compare asks both for their verdict, and for the fields that they complain of.
func (k *kubernetes) compare(t *testing.T, file string) {
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	object := parse(t, file, string(data))
	body, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	answer := k.Do(http.MethodPost, k.path(object, "")+"?dryRun=All&fieldValidation=Strict", body)
	if answer.Err != nil {
		t.Fatal(answer.Err)
	}
	admitted, problems := k.set.Admit(object, nil)
	theirs, ours := answer.Status == http.StatusCreated, admitted != nil
	reason, different := differences[filepath.Base(file)]
	switch {
	case different && theirs == ours:
		t.Errorf("there is no difference any more: %s", reason)
	case !different && theirs != ours:
		t.Errorf("Kubernetes accepts: %v, we: %v\n%s\n%v", theirs, ours, answer.Body, problems)
	case different || otherFields[filepath.Base(file)] != "":
	case ours:
		var created map[string]any
		answer.Decode(t, &created)
		sameContent(t, created, admitted)
	case answer.Status == http.StatusUnprocessableEntity:
		sameFields(t, answer.Body, problems)
	}
}

// sameContent compares what is stored, what only the store sets apart.
func sameContent(t *testing.T, theirs, ours map[string]any) {
	t.Helper()
	if diff := cmp.Diff(comparable(t, theirs), comparable(t, ours)); diff != "" {
		t.Errorf("objects differ (-Kubernetes +ours):\n%s", diff)
	}
}

func comparable(t *testing.T, object map[string]any) map[string]any {
	t.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	var plain map[string]any
	if err := json.Unmarshal(text, &plain); err != nil {
		t.Fatal(err)
	}
	delete(plain, "apiVersion")
	for _, name := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields"} {
		delete(metadata(plain), name)
	}
	return plain
}

var inMessage = regexp.MustCompile(`"([^" ]+)" must validate`)

// sameFields compares the fields that a refusal names.
func sameFields(t *testing.T, body []byte, problems []schema.Problem) {
	t.Helper()
	var status struct {
		Details struct {
			Causes []struct{ Field, Message string }
		}
	}
	if err := json.Unmarshal(body, &status); err != nil {
		t.Fatal(err)
	}
	theirs, ours := map[string]bool{}, map[string]bool{}
	for _, cause := range status.Details.Causes {
		if strings.Contains(cause.Message, "some validation rules were not checked") {
			continue
		}
		field := strings.TrimPrefix(cause.Field, "<nil>")
		if m := inMessage.FindStringSubmatch(cause.Message); m != nil && field == "" {
			field = m[1]
		}
		theirs[field] = true
	}
	for _, p := range problems {
		if p.Code != schema.NotChecked {
			ours[p.Field] = true
		}
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(theirs)), slices.Sorted(maps.Keys(ours))); diff != "" {
		t.Errorf("fields differ (-Kubernetes +ours):\n%s%s\n%v", diff, body, problems)
	}
}
