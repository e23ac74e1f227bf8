package compiled

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/99designs/gqlgen/graphql"
)

// answered are the fields that methods of T answer with a plain value, by the methods' names in small
// letters: gqlgen binds fields to methods in the same way.
func answered[T any]() map[string]Field[T] {
	fields := map[string]Field[T]{}
	for method := range reflect.TypeFor[T]().Methods() {
		var field Field[T]
		switch get := method.Func.Interface().(type) {
		case func(T) string:
			field = String(get)
		case func(T) *string:
			field = NullString(get)
		case func(T) []string:
			field = Strings(get)
		case func(T) int:
			field = Int(get)
		case func(T) float64:
			field = Float(get)
		case func(T) bool:
			field = Bool(get)
		default:
			continue
		}
		fields[strings.ToLower(method.Name)] = field
	}
	return fields
}

// leaf is a field without a selection.
func leaf[T any](to write[T]) Field[T] {
	return func(*graphql.OperationContext, graphql.CollectedField) write[T] { return to }
}

// String is a field that holds a text or the value of an enum.
func String[T any, S ~string](get func(T) S) Field[T] {
	return leaf(func(w *Writer, of T) bool {
		w.buf = quoted(w.buf, string(get(of)))
		return true
	})
}

// NullString is a text that may be null.
func NullString[T any](get func(T) *string) Field[T] {
	return leaf(func(w *Writer, of T) bool {
		text := get(of)
		if text == nil {
			w.buf = append(w.buf, "null"...)
		} else {
			w.buf = quoted(w.buf, *text)
		}
		return true
	})
}

// Strings is a list of texts.
func Strings[T any](get func(T) []string) Field[T] {
	return leaf(func(w *Writer, of T) bool {
		return list(w, get(of), func(w *Writer, text string) bool {
			w.buf = quoted(w.buf, text)
			return true
		})
	})
}

// Int is a number.
func Int[T any](get func(T) int) Field[T] {
	return leaf(func(w *Writer, of T) bool {
		w.buf = strconv.AppendInt(w.buf, int64(get(of)), 10)
		return true
	})
}

// Float is a finite number.
func Float[T any](get func(T) float64) Field[T] {
	return leaf(func(w *Writer, of T) bool {
		w.buf = fmt.Appendf(w.buf, "%g", get(of)) // as the executor writes it
		return true
	})
}

// Bool is true or false.
func Bool[T any](get func(T) bool) Field[T] {
	return leaf(func(w *Writer, of T) bool {
		w.buf = strconv.AppendBool(w.buf, get(of))
		return true
	})
}

// Scalar is a value of a scalar of ours.
func Scalar[T any](get func(T) graphql.Marshaler) Field[T] {
	return leaf(func(w *Writer, of T) bool {
		get(of).MarshalGQL(w)
		return true
	})
}

// One is an object.
func One[T, U any](get func(T) U, object *Object[U]) Field[T] {
	return func(op *graphql.OperationContext, selected graphql.CollectedField) write[T] {
		inner := object.compile(op, selected.Selections)
		if inner == nil {
			return nil
		}
		return func(w *Writer, of T) bool { return inner(w, get(of)) }
	}
}

// List is a list of objects.
func List[T, U any](get func(T) []U, object *Object[U]) Field[T] {
	return func(op *graphql.OperationContext, selected graphql.CollectedField) write[T] {
		inner := object.compile(op, selected.Selections)
		if inner == nil {
			return nil
		}
		return func(w *Writer, of T) bool { return list(w, get(of), inner) }
	}
}

// Resolved is an object that is found by arguments, which bind reads; it returns
// nil for arguments that the executor must read.
func Resolved[T, U any](bind func(args map[string]any) func(context.Context, T) (U, error), object *Object[U]) Field[T] {
	return func(op *graphql.OperationContext, selected graphql.CollectedField) write[T] {
		inner, find := object.compile(op, selected.Selections), bind(selected.ArgumentMap(op.Variables))
		if inner == nil || find == nil {
			return nil
		}
		return func(w *Writer, of T) bool {
			found, err := find(w.ctx, of)
			return err == nil && inner(w, found)
		}
	}
}

func list[T any](w *Writer, all []T, one write[T]) bool {
	w.buf = append(w.buf, '[')
	for i := range all {
		begin := len(w.buf)
		if i > 0 {
			w.buf = append(w.buf, ',')
		}
		if w.ctx.Err() != nil || !one(w, all[i]) {
			return false
		}
		if i == 0 { // the others are about as long: a long list does not grow its room again and again
			w.buf = slices.Grow(w.buf, len(all)*(len(w.buf)-begin))
		}
	}
	w.buf = append(w.buf, ']')
	return true
}

// quoted appends a text as the executor writes it.
func quoted(to []byte, text string) []byte {
	if strings.ContainsFunc(text, isEscaped) {
		w := &Writer{buf: to}
		graphql.MarshalString(text).MarshalGQL(w)
		return w.buf
	}
	return append(append(append(to, '"'), text...), '"')
}

func isEscaped(r rune) bool { return r < 0x20 || r == '"' || r == '\\' }
