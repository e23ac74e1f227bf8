// Package supported has a row for each kind of configuration object: which of its fields
// are supported, and why the others are not.
package supported

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/node"
)

// Field is a part of an object's spec that has no effect, or not the one that it
// says.
type Field struct {
	Path   string // within the spec, as http[0].match[1].uri; "spec" is all of it
	Reason string // why, and what to do instead
}

// table lists whether the fields of a kind are supported. A path has no
// indices; what it says holds for all that is below it, and a field that is in no path
// is not supported.
type table struct {
	fields  []string
	hub     []string                    // fields that are supported, and by which the hub acts instead of a proxy
	hubAll  bool                        // the hub acts by all fields that are in no list
	texts   []string                    // fields that say something to people alone
	refused map[string]string           // path, and why
	values  func(proto.Message) []Field // values that are not supported in fields that are
	tried   func(proto.Message) []Field // what cannot be tried out by the annotation of a dry run
}

// row is what proxies get of the objects of a kind. Of objects whose spec is not a message, what reads
// them reports what has no effect; their table is what the documentation and a test have.
type row struct {
	kind  federation.Kind
	table *table
	idle  string // why objects of the kind have no effect; with a table, where the object says nothing
	// selects marks objects that decide which resources a proxy gets, and are not part
	// of a resource: the hub cannot tell which proxies have them.
	selects bool
	// derived marks objects whose effect is in other objects, which the hub derives of them: the proxies
	// have those.
	derived bool
	// merged marks objects that the merge applies before proxies get anything: no resource is made of
	// their fields alone.
	merged bool
	// concerns reports whether resources for a facet can be made of an object; nil: of each. A builder reads
	// all Gateways, for example, and uses those that select its proxies.
	concerns func(*federation.Object, node.Facet, *federation.Reader) bool
}

var rows = federation.Rows[row]{}

// add says what proxies get of a kind.
func add(r row) struct{} {
	rows.Add(r.kind, r)
	return struct{}{}
}

// Knows reports whether the kind has a row.
func Knows(kind federation.Kind) bool {
	_, known := rows[kind]
	return known
}

// Kinds are the kinds that have a row, by group and name.
func Kinds() []federation.Kind { return rows.Kinds() }

// Uncounted reports whether objects of the kind are not part of a resource themselves, so that
// no proxies can be counted that have them: they decide which resources a proxy gets, or what is
// derived of them is part of resources.
func Uncounted(kind federation.Kind) bool { return rows[kind].selects || rows[kind].derived }

// Derives reports whether the effect of objects of the kind is in other objects, which the hub derives of them.
func Derives(kind federation.Kind) bool { return rows[kind].derived }

// Fields are the fields of the kind that proxies get, and those that are listed as not
// supported; a path includes all fields below it.
func Fields(kind federation.Kind) (supported, refused []string) {
	if t := rows[kind].table; t != nil {
		return slices.Concat(t.fields, t.hub), slices.Sorted(maps.Keys(t.refused))
	}
	return nil, nil
}

// Idle is why objects of the kind have no effect; "": they have one.
func Idle(kind federation.Kind) string { return rows[kind].idle }

// Merged reports whether objects of the kind become services and workloads before proxies get anything.
func Merged(kind federation.Kind) bool { return rows[kind].merged }

// Concerns reports whether resources for the facet can be made of the object.
func Concerns(o *federation.Object, f node.Facet, r *federation.Reader) bool {
	concerns := rows[o.Key.Of()].concerns
	return concerns == nil || concerns(o, f, r)
}

// OfHub are those of the supported fields that decide what the hub does, and are not part of a resource.
func OfHub(kind federation.Kind) []string {
	if t := rows[kind].table; t != nil {
		return t.hub
	}
	return nil
}

// NotHonoured tells what of the object has no effect on proxies. What it does not
// name is compiled.
func NotHonoured(o *federation.Object) []Field {
	r, known := rows[o.Key.Of()]
	spec, ok := o.Spec.(proto.Message)
	if known && (!ok || r.table == nil) && r.idle == "" {
		return nil // what reads the object reports on it
	}
	if !ok || r.table == nil {
		return []Field{{"spec", cmp.Or(r.idle, "objects of the kind "+o.Key.Of().String()+" have no effect yet")}}
	}
	w := fieldWalk{table: *r.table}
	w.message(spec.ProtoReflect(), "", "")
	if r.table.values != nil {
		w.found = append(w.found, r.table.values(spec)...)
	}
	if o.DryRun && r.table.tried != nil {
		w.found = append(w.found, r.table.tried(spec)...)
	}
	slices.SortFunc(w.found, func(a, b Field) int { return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Reason, b.Reason)) })
	return slices.Compact(w.found)
}

// fieldWalk goes through all fields that are set.
type fieldWalk struct {
	table table
	found []Field
}

// message looks at a message; at is its path with indices, path without.
func (w *fieldWalk) message(m protoreflect.Message, at, path string) {
	m.Range(func(field protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		name := field.JSONName()
		w.field(field, v, fieldPaths{join(at, name), join(path, name)})
		return true
	})
}

// fieldPaths are a path with indices and without.
type fieldPaths struct{ at, path string }

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func (w *fieldWalk) field(field protoreflect.FieldDescriptor, v protoreflect.Value, p fieldPaths) {
	verdict, why := w.table.verdict(p.path, field.Message() != nil && !field.IsMap())
	switch {
	case verdict == No:
		w.found = append(w.found, Field{p.at, why})
	case verdict != Partly:
	case field.IsList():
		for i := range v.List().Len() {
			w.message(v.List().Get(i).Message(), fmt.Sprintf("%s[%d]", p.at, i), p.path)
		}
	default:
		w.message(v.Message(), p.at, p.path)
	}
}

// Verdict is what a table has about a field.
type Verdict int

// The verdicts.
const (
	No     Verdict = iota // it has no effect
	Yes                   // proxies get it, and all that is below it
	ByHub                 // the hub acts by it
	Text                  // it says something to people alone
	Partly                // the fields below it have verdicts of their own
)

// Says is what the table of a kind has about a field, and why the field has no effect. The path
// has no indices; holds tells whether there are fields below it.
func Says(kind federation.Kind, path string, holds bool) (v Verdict, why string) {
	if t := rows[kind].table; t != nil {
		return t.verdict(path, holds)
	}
	return No, rows[kind].idle
}

// Unlisted is the reason of a field that the table does not have.
const Unlisted = "this field is not compiled yet"

func (t table) verdict(path string, holds bool) (v Verdict, why string) {
	why, refused := t.refused[path]
	switch {
	case refused:
		return No, why
	case slices.Contains(t.fields, path):
		return Yes, ""
	case slices.Contains(t.hub, path):
		return ByHub, ""
	case slices.Contains(t.texts, path):
		return Text, ""
	case t.goesBelow(path) && holds:
		return Partly, ""
	case t.hubAll:
		return ByHub, ""
	}
	return No, Unlisted
}

// goesBelow reports whether the table says something of fields below the path.
func (t table) goesBelow(path string) bool {
	below := func(other string) bool { return strings.HasPrefix(other, path+".") }
	for other := range t.refused {
		if below(other) {
			return true
		}
	}
	return slices.ContainsFunc(slices.Concat(t.fields, t.hub, t.texts), below)
}
