package apply

import (
	"encoding/json"
	"fmt"
	"strings"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/manifest"
	"isthmus.dev/isthmus/federation/config/schema"
)

// requested is one manifest of a request.
type requested struct {
	key      federation.ObjectKey
	kind     schema.Kind
	value    map[string]any
	document manifest.Document
	compact  json.RawMessage // the value while it is released; nil: the document is read again
}

// place returns the position of the field in the input.
func (w requested) place(field string) Place {
	line, column := w.document.Position(field)
	return Place{File: w.document.File, Document: w.document.Index + 1, Line: line, Column: column}
}

func (w requested) fault(code Code, field, message string) Error {
	return Error{Code: code, Message: message, Field: field, Key: w.key, Place: w.place(field)}
}

// readManifests reads every document of every file; with an error nothing may be
// used. Objects that name no namespace are of the given one.
func readManifests(kinds *schema.Set, limits manifest.Limits, files []File, namespace string) ([]requested, []Error) {
	r := reader{kinds: kinds, limits: limits, namespace: namespace, seen: map[federation.ObjectKey]int{}}
	for _, file := range files {
		if fault := r.read(file); fault != nil {
			return nil, append(r.errs, *fault)
		}
	}
	if len(files) == 0 {
		r.errs = append(r.errs, Error{Code: Code(manifest.Empty), Message: "there is no manifest to apply"})
	}
	return r.all, r.errs
}

// reader gathers the manifests of a request.
type reader struct {
	kinds     *schema.Set
	limits    manifest.Limits
	namespace string
	count     int // of documents
	seen      map[federation.ObjectKey]int
	all       []requested
	errs      []Error
}

// read reads a file. The error is that there are too many documents.
func (r *reader) read(file File) *Error {
	limit := r.limits.OrDefault().Documents
	var errs []Error
	problems := manifest.Each(file.Name, file.Data, r.limits, func(d manifest.Document) {
		r.count++
		if r.count > limit {
			return
		}
		if fault := r.take(d); fault != nil {
			errs = append(errs, *fault)
		}
	})
	if r.count > limit {
		return &Error{Code: TooManyDocuments, Place: Place{File: file.Name}, Message: fmt.Sprintf(
			"up to this file there are %d documents, more than the %d allowed: apply them in several requests", r.count, limit)}
	}
	for _, p := range problems {
		r.errs = append(r.errs, Error{
			Code: Code(p.Code), Message: p.Message, Field: p.Field,
			Place: Place{File: p.File, Document: p.Document + 1, Line: p.Line, Column: p.Column},
		})
	}
	r.errs = append(r.errs, errs...)
	return nil
}

func (r *reader) take(d manifest.Document) *Error {
	w, fault := identify(r.kinds, d, r.namespace)
	if fault != nil {
		return fault
	}
	if other, twice := r.seen[w.key]; twice {
		first := r.all[other].reread().place("metadata.name")
		refused := w.fault(DuplicateObject, "metadata.name", fmt.Sprintf("%s is in the set twice: first in %s; remove one", w.key, first))
		return &refused
	}
	r.seen[w.key] = len(r.all)
	if len(r.all) >= manyDocuments {
		w = w.released()
	}
	r.all = append(r.all, w)
	return nil
}

func (p Place) String() string {
	name := p.File
	if name == "" {
		name = "the manifests"
	}
	if p.Line == 0 {
		return name
	}
	return fmt.Sprintf("%s:%d:%d", name, p.Line, p.Column)
}

// identify finds out which object a document is of.
func identify(kinds *schema.Set, d manifest.Document, namespace string) (requested, *Error) {
	apiVersion, _ := d.Value["apiVersion"].(string)
	kindName, _ := d.Value["kind"].(string)
	w := requested{document: d, value: d.Value}
	kind, problem := kinds.Lookup(apiVersion, kindName)
	if problem != nil {
		fault := w.fault(Code(problem.Code), problem.Field, problem.Message)
		return w, &fault
	}
	w.kind = kind
	for _, field := range []string{"metadata", "metadata.name", "metadata.namespace"} {
		if wrong := wrongType(d.Value, field); wrong != "" {
			fault := w.fault(Code(schema.WrongType), field, wrong)
			return w, &fault
		}
	}
	w.key = keyOf(kind, d.Value, namespace)
	if w.key.Name == "" {
		fault := w.fault(Code(schema.Required), "metadata.name",
			"the object has no name; generateName is not supported, because an apply must be repeatable")
		return w, &fault
	}
	return w, nil
}

// wrongType says what is wrong with the type of a field by which an object is
// known; without a value nothing is.
func wrongType(value map[string]any, field string) string {
	metadata, isMap := value["metadata"].(map[string]any)
	if field == "metadata" {
		if isMap || value["metadata"] == nil {
			return ""
		}
		return "it must be an object"
	}
	v := metadata[strings.TrimPrefix(field, "metadata.")]
	if _, isText := v.(string); isText || v == nil {
		return ""
	}
	return fmt.Sprintf("it must be a string, and %s is not; put it in quotes", valueText(v))
}
