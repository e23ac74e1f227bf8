package docs

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/xds/envoy/supported"
)

var update = flag.Bool("update", false, "rewrite the page of fields")

const fieldsPage = "kinds/fields.md"

const aboutFields = `# Fields, one by one

The hub's own table of fields, as text: what proxies get of each field of the kinds whose
objects are compiled for them, or become services and workloads that proxies get. The page of a kind explains how to use them, and names values
that a supported field cannot have.

A field includes all fields below it, in every item of a list. "The hub" means that the hub acts by the field, and no
proxy gets it. A field without an effect is stored and shown, and ` + "`status.findings`" + ` of the object
says so with the reason given here.

<!-- Written by: go test ./docs -run TestFieldsPage -update -->
`

// TestFieldsPage: the page has what the table of supported fields has.
func TestFieldsPage(t *testing.T) {
	page := strings.Builder{}
	page.WriteString(aboutFields)
	for _, k := range supported.Kinds() {
		yes, no := supported.Fields(k)
		if len(yes)+len(no) == 0 {
			continue
		}
		fmt.Fprintf(&page, "\n## %s\n\n[%[1]s](%s.md), `%s`.\n\n| field | effect |\n|---|---|\n", k.Name, pageOf(k), k.Group)
		f := fieldTable{kind: k, written: map[string]string{}}
		page.WriteString(f.rows(specOf(t, k).ProtoReflect().Descriptor(), ""))
	}
	if *update {
		if err := os.WriteFile(fieldsPage, []byte(page.String()), 0o644); err != nil { //nolint:gosec // a page of the docs
			t.Fatal(err)
		}
	}
	if read(t, fieldsPage) != page.String() {
		t.Error("the page differs from the table of supported fields: go test ./docs -run TestFieldsPage -update")
	}
}

// specOf is an empty spec of the kind.
func specOf(t *testing.T, k federation.Kind) proto.Message {
	t.Helper()
	if spec, ok := registryKinds[pageOf(k)].(proto.Message); ok && supported.Merged(k) {
		return spec // the snapshot has services and workloads instead
	}
	key := federation.ObjectKey{Group: k.Group, Kind: k.Name, Namespace: "shop", Name: "n"}
	manifest := fmt.Sprintf(`{"kind":%q,"metadata":{"name":"n","namespace":"shop"},"spec":{}}`, k.Name)
	_, edit := config.NewState(config.Options{Hub: "hub"}).Next([]config.Event{{New: &config.Object{Key: key, Manifest: []byte(manifest)}}}, 1)
	object := edit.Objects.Set[key]
	if object == nil {
		t.Fatalf("there is no %s", k)
	}
	spec, ok := object.Spec.(proto.Message)
	if !ok {
		t.Fatalf("the spec of %s is a %T", k, object.Spec)
	}
	return spec
}

// fieldTable writes the rows of a kind. A message whose fields all have the verdicts that
// they have elsewhere refers to that place.
type fieldTable struct {
	kind    federation.Kind
	written map[string]string // the place, by the message and its rows
}

func (f *fieldTable) rows(m protoreflect.MessageDescriptor, at string) string {
	var text strings.Builder
	for i := range m.Fields().Len() {
		field := m.Fields().Get(i)
		path := strings.TrimPrefix(at+"."+field.JSONName(), ".")
		switch verdict, why := supported.Says(f.kind, path, field); verdict {
		case supported.Yes:
			row(&text, path, "yes")
		case supported.ByHub:
			row(&text, path, "the hub")
		case supported.No:
			row(&text, path, "none: "+why)
		case supported.Partly:
			text.WriteString(f.below(field.Message(), path))
		}
	}
	return text.String()
}

func (f *fieldTable) below(m protoreflect.MessageDescriptor, path string) string {
	text := f.rows(m, path)
	if strings.Count(text, "| yes |\n") == strings.Count(text, "\n") {
		return fmt.Sprintf("| `%s` | yes |\n", path)
	}
	same := string(m.FullName()) + strings.ReplaceAll(text, "`"+path+".", "`")
	if other := f.written[same]; other != "" && strings.Count(text, "\n") > 1 {
		return fmt.Sprintf("| `%s` | as `%s` |\n", path, other)
	}
	f.written[same] = path
	return text
}

func row(text *strings.Builder, path, effect string) {
	fmt.Fprintf(text, "| `%s` | %s |\n", path, strings.ReplaceAll(effect, "|", `\|`))
}
