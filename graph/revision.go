package graph

import (
	"fmt"
	"strconv"

	"isthmus.dev/isthmus/federation/config/apply"
	"isthmus.dev/isthmus/internal/text"
)

// invalid is the error of an input's field.
func invalid(field, format string, args ...any) apply.Error {
	return apply.Error{Code: apply.InvalidRequest, Field: field, Message: fmt.Sprintf(format, args...)}
}

// reader collects what is wrong with an input.
type reader struct{ errs []apply.Error }

func (r *reader) refuse(field, format string, args ...any) {
	r.errs = append(r.errs, invalid(field, format, args...))
}

// revision reads a revision as answers write it.
func (r *reader) revision(field, text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		r.refuse(field, "%q is not a revision: use one from an answer, such as \"42\"", cut(text))
	}
	return n
}

// optional is revision for a field that may be absent.
func (r *reader) optional(field string, text *string) *int64 {
	if text == nil {
		return nil
	}
	n := r.revision(field, *text)
	return &n
}

// cut bounds a text of a client for an error.
func cut(given string) string { return text.Cut(given, 43) }

func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}
