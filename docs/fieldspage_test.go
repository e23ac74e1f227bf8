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
	"isthmus.dev/isthmus/federation/config/kind"
	"isthmus.dev/isthmus/federation/config/schema"
	"isthmus.dev/isthmus/xds/envoy/supported"
)

var update = flag.Bool("update", false, "rewrite the page of fields")

const fieldsPage = "kinds/fields.md"

const aboutFields = `# Fields, one by one

The hub's own table of fields, as text. The page of a kind explains how to use them, and names values
that a supported field cannot have.

A field includes all fields below it, in every item of a list. "Yes" means that proxies get it, or what the hub derives
of it. "The hub" means that the hub acts by the field, and no proxy gets it. A "text" is for people, and means nothing else. A field without an
effect is stored and shown, and the status of the object says so, with the reason given here or a longer one.

<!-- Written by: go test ./docs -run TestFieldsPage -update -->
`

// TestFieldsPage: the page has what the table of supported fields has.
func TestFieldsPage(t *testing.T) {
	set := schemas(t)
	page := strings.Builder{}
	page.WriteString(aboutFields)
	for _, k := range supported.Kinds() {
		if kind.Internal(k) {
			continue
		}
		fmt.Fprintf(&page, "\n## %s\n\n[%s](%s.md), `%s`.\n\n| field | effect |\n|---|---|\n", headOf(k), k.Name, pageOf(k), k.Group)
		f := fieldTable{kind: k, written: map[string]string{}}
		if yes, no := supported.Fields(k); len(yes)+len(no) == 0 && supported.Idle(k) != "" {
			page.WriteString("| all | none: " + supported.Idle(k) + " |\n")
			continue
		}
		page.WriteString(f.rows(fieldsOfSpec(t, set, k), ""))
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

// headOf is the head of a kind's section; two groups have a Gateway.
func headOf(k federation.Kind) string {
	if pageOf(k) == strings.ToLower(k.Name) {
		return k.Name
	}
	return k.Name + " (Gateway API)"
}

// specField is a field of a spec, and what it holds.
type specField struct {
	name, holds string // holds names a type; fields that hold the same type have the same fields below
	below       func() []specField
}

// fieldsOfSpec are those of Istio's message, or else of the schema.
func fieldsOfSpec(t *testing.T, set *schema.Set, k federation.Kind) []specField {
	t.Helper()
	spec, err := kind.Decode(k, nil)
	if err != nil {
		t.Fatal(err)
	}
	if message, is := spec.(proto.Message); is {
		return fieldsOfMessage(message.ProtoReflect().Descriptor())
	}
	fields, err := set.Fields(k)
	if err != nil {
		t.Fatal(err)
	}
	return fieldsOfSchema(fields)
}

func fieldsOfMessage(m protoreflect.MessageDescriptor) (all []specField) {
	for i := range m.Fields().Len() {
		field := m.Fields().Get(i)
		f := specField{name: field.JSONName()}
		if field.Message() != nil && !field.IsMap() {
			f.holds = string(field.Message().FullName())
			f.below = func() []specField { return fieldsOfMessage(field.Message()) }
		}
		all = append(all, f)
	}
	return all
}

func fieldsOfSchema(fields []schema.Field) (all []specField) {
	for _, field := range fields {
		f := specField{name: field.Name}
		if len(field.Below) > 0 {
			f.below = func() []specField { return fieldsOfSchema(field.Below) }
		}
		all = append(all, f)
	}
	return all
}

// fieldTable writes the rows of a kind. A field whose fields all have the verdicts that
// they have elsewhere refers to that place.
type fieldTable struct {
	kind    federation.Kind
	written map[string]string // the place, by what it holds and its rows
}

func (f *fieldTable) rows(fields []specField, at string) string {
	var text strings.Builder
	for _, field := range fields {
		path := strings.TrimPrefix(at+"."+field.name, ".")
		switch verdict, why := supported.Says(f.kind, path, field.below != nil); verdict {
		case supported.Yes:
			row(&text, path, "yes")
		case supported.ByHub:
			row(&text, path, "the hub")
		case supported.Text:
			row(&text, path, "text")
		case supported.No:
			row(&text, path, "none: "+why)
		case supported.Partly:
			text.WriteString(f.below(field, path))
		}
	}
	return text.String()
}

func (f *fieldTable) below(field specField, path string) string {
	text := f.rows(field.below(), path)
	if strings.Count(text, "| yes |\n") == strings.Count(text, "\n") {
		return fmt.Sprintf("| `%s` | yes |\n", path)
	}
	same := field.holds + strings.ReplaceAll(text, "`"+path+".", "`")
	if other := f.written[same]; other != "" && strings.Count(text, "\n") > 1 {
		return fmt.Sprintf("| `%s` | as `%s` |\n", path, other)
	}
	f.written[same] = path
	return text
}

func row(text *strings.Builder, path, effect string) {
	fmt.Fprintf(text, "| `%s` | %s |\n", path, strings.ReplaceAll(effect, "|", `\|`))
}
