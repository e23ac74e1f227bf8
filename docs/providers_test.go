package docs

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
	mesh "istio.io/api/mesh/v1alpha1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/schema"
)

// TestG112FieldsOfIstiosProvidersAreSupportedOrListed: MeshSettings have each field of Istio's extension providers, or their page says
// why not. What it lists exists in Istio.
func TestG112FieldsOfIstiosProvidersAreSupportedOrListed(t *testing.T) {
	fields := meshSettingsFields(t)
	at := slices.IndexFunc(fields, func(f schema.Field) bool { return f.Name == "extensionProviders" })
	lacking := fieldsWithout((&mesh.MeshConfig_ExtensionProvider{}).ProtoReflect().Descriptor(), fields[at].Below)
	_, section, _ := strings.Cut(read(t, "kinds/meshsettings.md"), "\n### Fields of providers that are not supported\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var listed []string
	for _, row := range regexp.MustCompile("(?m)^\\| (`[^|]*`) \\|").FindAllStringSubmatch(section, -1) {
		for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[1], -1) {
			listed = append(listed, name[1])
		}
	}
	for _, path := range lacking {
		if !slices.Contains(listed, path) {
			t.Errorf("MeshSettings do not have %s of Istio's providers, and the page does not say why", path)
		}
	}
	for _, path := range listed {
		if !slices.Contains(lacking, path) {
			t.Errorf("the page says that %s is not supported, but it is, or Istio does not have it", path)
		}
	}
}

// meshSettingsFields are the fields of MeshSettings.
func meshSettingsFields(t *testing.T) []schema.Field {
	t.Helper()
	set, err := schema.Load()
	if err != nil {
		t.Fatal(err)
	}
	fields, err := set.Fields(federation.MeshSettingsKind)
	if err != nil {
		t.Fatal(err)
	}
	return fields
}

// fieldsWithout are the paths of the message's fields that the schema does not have.
func fieldsWithout(m protoreflect.MessageDescriptor, fields []schema.Field) (lacking []string) {
	for i := range m.Fields().Len() {
		field := m.Fields().Get(i)
		at := slices.IndexFunc(fields, func(f schema.Field) bool { return f.Name == field.JSONName() })
		switch {
		case at < 0:
			lacking = append(lacking, field.JSONName())
		case field.Message() != nil && !field.IsMap() && len(fields[at].Below) > 0:
			for _, path := range fieldsWithout(field.Message(), fields[at].Below) {
				lacking = append(lacking, field.JSONName()+"."+path)
			}
		}
	}
	return lacking
}
