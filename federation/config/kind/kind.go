// Package kind has a row for each kind of configuration object: its Go type, the
// names and labels by which readers find its objects, what they mean to the mesh,
// and the rules that its schema cannot express. A kind is one value in one file;
// everything else that depends on the kind reads its row.
//
// A kind has two more places: its schema in federation/config/schema, and the row in
// xds/envoy/supported that says which of its fields proxies get.
package kind

import (
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/analysis"
	"isthmus.dev/isthmus/federation/config/validation"
)

// Row is what the hub knows of a kind. Specs are pointers to the kind's own Go type:
// a protobuf message for the kinds of Istio, the type of the kind's module for those
// of Kubernetes SIGs, and a value of the federation for the hub's own.
type Row struct {
	federation.Kind
	Columns []Column // in which "isthmus get" shows its objects

	empty       func() any
	names       func(Decoded, any) []string
	proxyLabels func(any, func(map[string]string))
	translate   func(Decoded, any) Meaning
	check       func(namespace string, spec any) []validation.Problem
	objectName  func(name string) string
	references  func(*analysis.References, any)
	unenforced  func(any) string
	dryRun      bool
	expressions []string
	internal    bool
	read        bool
}

// Column is a column of a kind: a head and the path of the value within the
// object, where [] means every item of a list.
type Column struct{ Head, Path string }

// of is a Row in the kind's own type. Every field but the kind may be omitted.
type of[T any] struct {
	kind federation.Kind
	// names are those under which readers look for an object, in any order.
	names func(Decoded, *T) []string
	// proxyLabels adds the labels of proxies that decide whether and how the object
	// concerns them.
	proxyLabels func(spec *T, add func(map[string]string))
	// translate says what the object means beside its spec.
	translate func(Decoded, *T) Meaning
	// check reports what is wrong with a spec that its schema admits.
	check func(namespace string, spec *T) []validation.Problem
	// objectName reports what is wrong with a name that Kubernetes admits.
	objectName func(name string) string
	// references reports what the object refers to and a snapshot does not have.
	references func(*analysis.References, *T)
	// unenforced says which restriction the object asks for and nothing enforces.
	unenforced func(*T) string
	// dryRun lets objects have the annotation istio.io/dry-run.
	dryRun  bool
	columns []Column
	// expressions are the fields, at any depth, that are regular expressions of Envoy.
	expressions []string
	// contributes is how objects become part of services; nil: they do not.
	contributes *federation.Contribution
	// internal keeps objects for the hubs alone: users neither apply nor see them.
	internal bool
	// read has readers of a snapshot see the objects of an internal kind.
	read bool
}

var rows = federation.Rows[*Row]{}

// add makes a kind known. Each kind's file calls it once, for a variable without a name.
func add[T any](k of[T]) *Row {
	r := &Row{
		Kind: k.kind, Columns: k.columns, objectName: k.objectName, dryRun: k.dryRun, expressions: k.expressions,
		internal: k.internal, read: k.read,
		empty: func() any { return new(T) },
	}
	if k.names != nil {
		r.names = func(d Decoded, spec any) []string { return k.names(d, spec.(*T)) }
	}
	if k.proxyLabels != nil {
		r.proxyLabels = func(spec any, add func(map[string]string)) { k.proxyLabels(spec.(*T), add) }
	}
	if k.translate != nil {
		r.translate = func(d Decoded, spec any) Meaning { return k.translate(d, spec.(*T)) }
	}
	if k.check != nil {
		r.check = func(namespace string, spec any) []validation.Problem { return k.check(namespace, spec.(*T)) }
	}
	if k.references != nil {
		r.references = func(to *analysis.References, spec any) { k.references(to, spec.(*T)) }
	}
	if k.unenforced != nil {
		r.unenforced = func(spec any) string { return k.unenforced(spec.(*T)) }
	}
	if k.contributes != nil {
		federation.Contributes(k.kind, *k.contributes)
	}
	rows.Add(k.kind, r)
	return r
}

// Of returns the row of a kind. An unknown kind has an empty one.
func Of(kind federation.Kind) *Row {
	if r, known := rows[kind]; known {
		return r
	}
	return &Row{Kind: kind}
}

// ConcernsProxies reports whether objects of the kind say how proxies behave, and nothing else: not
// which services and workloads there are, nor anything about the whole mesh.
func ConcernsProxies(kind federation.Kind) bool {
	r, known := rows[kind]
	return known && r.translate == nil && (r.read || !r.internal && kind.Group != federation.MeshGroup)
}

// All returns every row by group and name of the kind.
func All() []*Row {
	var all []*Row
	for _, k := range rows.Kinds() {
		all = append(all, rows[k])
	}
	return all
}
