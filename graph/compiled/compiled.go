// Package compiled writes objects as JSON without the machinery that GraphQL has
// for every single field: a context, a goroutine, a middleware and a place for
// errors. It is for types whose fields cannot fail. A selection is compiled once
// and then written for each object. What cannot be compiled, or fails, is left to
// the executor, which knows where an error belongs.
package compiled

import (
	"context"
	"io"
	"strings"
	"sync"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
)

// Writer collects the JSON of one field of an operation.
type Writer struct {
	ctx context.Context //nolint:containedctx // a Writer lives for one field of one operation
	buf []byte
}

// Write is part of io.Writer.
func (w *Writer) Write(data []byte) (int, error) {
	w.buf = append(w.buf, data...)
	return len(data), nil
}

// write writes a value; false: the executor must.
type write[T any] func(w *Writer, of T) bool

// Field compiles one selected field of T; nil: the executor must write the object.
type Field[T any] func(op *graphql.OperationContext, selected graphql.CollectedField) write[T]

// Object is what is known of a type: its name first and the interfaces that it has,
// and its fields.
type Object[T any] struct {
	Names []string
	// Fields are those that no method of T answers with a plain value: what methods answer needs no row.
	Fields map[string]Field[T]

	methods  sync.Once
	answered map[string]Field[T] // by method, in small letters
}

// Field returns how the field is written; nil: the executor must.
func (o *Object[T]) Field(name string) Field[T] {
	if field := o.Fields[name]; field != nil {
		return field
	}
	o.methods.Do(func() { o.answered = answered[T]() })
	return o.answered[strings.ToLower(name)]
}

func (o *Object[T]) compile(op *graphql.OperationContext, selected ast.SelectionSet) write[T] {
	type step struct {
		key   string
		write write[T]
	}
	var steps []step
	for _, f := range graphql.CollectFields(op, selected, o.Names) {
		s := step{key: "," + string(quoted(nil, f.Alias)) + ":"}
		if len(steps) == 0 {
			s.key = s.key[1:]
		}
		field := o.Field(f.Name)
		if f.Name == "__typename" {
			field = String(func(T) string { return o.Names[0] })
		}
		if field == nil {
			return nil
		}
		s.write = field(op, f)
		if s.write == nil {
			return nil
		}
		steps = append(steps, s)
	}
	return func(w *Writer, of T) bool {
		w.buf = append(w.buf, '{')
		for i := range steps {
			w.buf = append(w.buf, steps[i].key...)
			if !steps[i].write(w, of) {
				return false
			}
		}
		w.buf = append(w.buf, '}')
		return true
	}
}

// written is JSON that is complete.
type written []byte

// MarshalGQL is part of graphql.Marshaler.
func (b written) MarshalGQL(to io.Writer) { _, _ = to.Write(b) }

// Marshal writes what is selected of a value; ok is false where the executor must.
func (o *Object[T]) Marshal(ctx context.Context, op *graphql.OperationContext, selected ast.SelectionSet,
	of T,
) (_ graphql.Marshaler, ok bool) {
	return marshal(ctx, o.compile(op, selected), of)
}

// MarshalAll is Marshal for a list.
func (o *Object[T]) MarshalAll(ctx context.Context, op *graphql.OperationContext, selected ast.SelectionSet,
	all []T,
) (_ graphql.Marshaler, ok bool) {
	one := o.compile(op, selected)
	if one == nil {
		return nil, false
	}
	return marshal(ctx, func(w *Writer, all []T) bool { return list(w, all, one) }, all)
}

func marshal[T any](ctx context.Context, to write[T], of T) (_ graphql.Marshaler, ok bool) {
	defer func() {
		if recover() != nil {
			ok = false // it panics again where that is reported
		}
	}()
	w := &Writer{ctx: ctx}
	if to == nil || !to(w, of) {
		return nil, false
	}
	return written(w.buf), true
}
