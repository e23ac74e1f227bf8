package client

import (
	"errors"
	"fmt"
	"strings"
)

// GraphQLError is one error of an answer.
type GraphQLError struct {
	Message    string `json:"message"`
	Path       []any  `json:"path"`
	Extensions struct {
		Code      string `json:"code"`
		RequestID string `json:"requestId"`
	} `json:"extensions"`
}

// Error is an answer of the hub that says why it did not do what was asked.
type Error struct{ Errors []GraphQLError }

func (e *Error) Error() string {
	texts := make([]string, len(e.Errors))
	for i, one := range e.Errors {
		texts[i] = one.Message
		if one.Extensions.Code == "INTERNAL" && one.Extensions.RequestID != "" {
			texts[i] += " (" + one.Extensions.RequestID + ")"
		}
	}
	return strings.Join(texts, "; ")
}

// Code is the code of the first error that has one.
func (e *Error) Code() string {
	for _, one := range e.Errors {
		if one.Extensions.Code != "" {
			return one.Extensions.Code
		}
	}
	return ""
}

// CodeOf is the code of the hub's error within an error, or "".
func CodeOf(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.Code()
	}
	return ""
}

// UnreachableError is that no answer came.
type UnreachableError struct {
	Server string
	Err    error
}

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("the hub at %s cannot be reached: %v", e.Server, e.Err)
}

// Unwrap returns the cause.
func (e *UnreachableError) Unwrap() error { return e.Err }

// StatusError is an answer that is none of a hub's GraphQL API.
type StatusError struct {
	Server string
	Status int
	Text   string // of the answer, shortened
}

func (e *StatusError) Error() string {
	text := fmt.Sprintf("the answer of %s is not GraphQL of a hub: HTTP status %d", e.Server, e.Status)
	if e.Text != "" {
		text += fmt.Sprintf(" and %q", e.Text)
	}
	return text
}
