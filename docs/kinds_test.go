package docs

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	networking "istio.io/api/networking/v1"
	"sigs.k8s.io/yaml"
)

// registryKinds are the kinds of the External registry, by their pages.
var registryKinds = map[string]any{
	"serviceentry": &networking.ServiceEntry{}, "workloadentry": &networking.WorkloadEntry{},
	"workloadgroup": &networking.WorkloadGroup{}, "servicebinding": &federation.ServiceBinding{},
}

func fieldsOf(spec any) []string {
	var names []string
	if message, ok := spec.(proto.Message); ok {
		fields := message.ProtoReflect().Descriptor().Fields()
		for i := range fields.Len() {
			names = append(names, fields.Get(i).JSONName())
		}
		return names
	}
	for _, f := range reflect.VisibleFields(reflect.TypeOf(spec).Elem()) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}

func TestEveryFieldOfARegisteredKindIsDocumented(t *testing.T) {
	for page, spec := range registryKinds {
		sameSet(t, page, firstColumn(rows(t, read(t, "kinds/"+page+".md"), "field")), fieldsOf(spec))
	}
}

// TestExamplesOfKindsTranslate reads every example: no field of it is unknown,
// nothing is wrong with it, and it gives a service.
func TestExamplesOfKindsTranslate(t *testing.T) {
	for page := range registryKinds {
		var events []config.Event
		for _, example := range blocksOf(read(t, "kinds/"+page+".md"), "yaml") {
			for document := range strings.SplitSeq(example, "---\n") {
				events = append(events, config.Event{New: documented(t, document)})
			}
		}
		_, edit := config.NewState(config.Options{Hub: "hub"}).Next(events, 1)
		if len(events) == 0 || len(edit.Objects.Set) != len(events) || len(edit.Problems.Set) > 0 ||
			len(edit.Services.Set) == 0 && page != "workloadgroup" {
			t.Errorf("%s: %d examples give %d objects, %d services, problems %v", page, len(events), len(edit.Objects.Set),
				len(edit.Services.Set), edit.Problems.Set)
		}
	}
}

func documented(t *testing.T, manifest string) *config.Object {
	t.Helper()
	data, err := yaml.YAMLToJSONStrict([]byte(manifest))
	if err != nil {
		t.Fatalf("%v in %s", err, manifest)
	}
	var head struct {
		APIVersion, Kind string
		Metadata         struct{ Name, Namespace string }
		Spec             map[string]any
	}
	if err := json.Unmarshal(data, &head); err != nil {
		t.Fatal(err)
	}
	for field := range head.Spec {
		if spec := registryKinds[strings.ToLower(head.Kind)]; spec == nil || !slices.Contains(fieldsOf(spec), field) {
			t.Errorf("%s has no field %s", head.Kind, field)
		}
	}
	group, _, _ := strings.Cut(head.APIVersion, "/")
	return &config.Object{Key: federation.ObjectKey{
		Group: group, Kind: head.Kind, Namespace: head.Metadata.Namespace,
		Name: head.Metadata.Name,
	}, Manifest: data}
}

func TestEveryProblemOfConfigurationIsDocumented(t *testing.T) {
	found := map[string]bool{}
	code := func(name, _ string) bool { return strings.HasPrefix(name, "code") }
	for _, dir := range []string{"../federation/config/external", "../federation/config/kind", "../federation/config"} {
		for _, c := range constants(t, dir, code) {
			found[c] = true
		}
	}
	for _, c := range constants(t, "../federation", func(name, _ string) bool { return name == "CodeNotHonoured" }) {
		found[c] = true
	}
	sameSet(t, "problems of configuration", firstColumn(rows(t, section(t, read(t, "kinds/README.md"), "## Problems"), "code")), keysOf(found))
}
