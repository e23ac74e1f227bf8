package transport

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"unicode"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/errcode"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"isthmus.dev/isthmus/internal/text"
)

// Code is the stable extensions.code of an error.
type Code string

// The codes that clients meet. None is renamed or reused.
const (
	ParseFailed        Code = errcode.ParseFailed      // The document is not GraphQL.
	ValidationFailed   Code = errcode.ValidationFailed // The document or its variables do not fit the schema.
	BadUserInput       Code = "BAD_USER_INPUT"         // The request or an argument is not acceptable.
	Unauthenticated    Code = "UNAUTHENTICATED"        // The caller is not known.
	Forbidden          Code = "FORBIDDEN"              // The caller may not do this.
	NotFound           Code = "NOT_FOUND"              // What was named does not exist, or is not the caller's to see.
	Conflict           Code = "CONFLICT"               // Another change came first.
	PreconditionFailed Code = "PRECONDITION_FAILED"    // An expectation of the request does not hold.
	TooComplex         Code = "TOO_COMPLEX"            // The request exceeds a limit; ask for less at once.
	RateLimited        Code = "RATE_LIMITED"           // Ask again later.
	Unavailable        Code = "UNAVAILABLE"            // The hub cannot answer now, or not in time.
	// The hub keeps no queries by their hash; send the document.
	PersistedQueryNotSupported Code = "PERSISTED_QUERY_NOT_SUPPORTED"
	Internal                   Code = "INTERNAL" // A fault of the hub; its log has the cause under the request ID.
)

const (
	internalText = "the hub failed to answer; its log has the cause under this requestId"
	maxText      = 400
)

// Error is an error whose text and code are meant for the client. Every other
// error of a resolver is shown as INTERNAL without its text.
type Error struct {
	Code     Code
	Text     string
	Argument string // that is not acceptable; "": no single one
}

func (e *Error) Error() string { return e.Text }

// Errorf makes an error that the client sees as it is written.
func Errorf(code Code, format string, args ...any) error {
	return &Error{Code: code, Text: fmt.Sprintf(format, args...)}
}

// BadArgument refuses an argument of a field.
func BadArgument(argument, format string, args ...any) error {
	return &Error{Code: BadUserInput, Text: argument + ": " + fmt.Sprintf(format, args...), Argument: argument}
}

type requestIDKey struct{}

func withRequestID(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, requestIDKey{}, id)
}

// RequestID returns the ID of the request that ctx belongs to, or "".
func RequestID(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey{}).(string)
	return id
}

// presenter makes every error of an operation fit for clients: a code, the
// request ID, bounded text on one line; unknown causes go to log only.
func presenter(log *slog.Logger) graphql.ErrorPresenterFunc {
	return func(ctx context.Context, err error) *gqlerror.Error {
		shown := graphql.DefaultErrorPresenter(ctx, err)
		code, text := classify(err, shown)
		at := faultPlace{path: shown.Path, argument: argumentOf(err, shown), locations: located(ctx, shown)}
		if code == ValidationFailed {
			at = placeOf(ctx, shown)
			if len(shown.Path) > 0 { // Names a variable, not a field of the answer.
				text = shown.Path.String() + " " + text
			}
		}
		if code == Internal {
			log.ErrorContext(ctx, "resolving a GraphQL field failed",
				"requestId", RequestID(ctx), "path", shown.Path.String(), "err", err)
		}
		extensions := map[string]any{"code": string(code), "requestId": RequestID(ctx)}
		if at.argument != "" {
			extensions["argument"] = at.argument
		}
		return &gqlerror.Error{
			Message: bounded(text), Path: at.path, Locations: at.locations, Rule: shown.Rule, Extensions: extensions,
		}
	}
}

// argumentOf is the argument that an error is about, or "".
func argumentOf(err error, shown *gqlerror.Error) string {
	var ours *Error
	if errors.As(err, &ours) {
		return ours.Argument
	}
	argument, _ := shown.Extensions["argument"].(string)
	return argument
}

// located are the places of an error in the document: its own, or else that of the
// field that failed.
func located(ctx context.Context, shown *gqlerror.Error) []gqlerror.Location {
	if len(shown.Locations) > 0 {
		return shown.Locations
	}
	if field := graphql.GetFieldContext(ctx); field != nil && field.Field.Field != nil && field.Field.Position != nil {
		return []gqlerror.Location{{Line: field.Field.Position.Line, Column: field.Field.Position.Column}}
	}
	return nil
}

func classify(err error, shown *gqlerror.Error) (Code, string) {
	var ours *Error
	var number *graphql.IntegerError
	switch code, _ := shown.Extensions["code"].(string); {
	case errors.As(err, &ours):
		return ours.Code, ours.Text
	case code == errcode.ParseFailed, code == errcode.ValidationFailed, code == string(TooComplex), code == string(BadUserInput),
		code == string(Forbidden):
		return Code(code), shown.Message
	case errors.As(err, &number):
		return BadUserInput, "an integer is out of the range of its type"
	case errors.Is(err, context.DeadlineExceeded):
		return Unavailable, "the operation took longer than the hub allows"
	case errors.Is(err, context.Canceled):
		return Unavailable, "the operation was cancelled"
	default:
		return Internal, internalText
	}
}

// recovered turns the panic of a resolver into an error with its stack, which
// the presenter logs and hides.
func recovered(_ context.Context, cause any) error {
	return fmt.Errorf("panic: %v\n%s", cause, debug.Stack())
}

func bounded(message string) string {
	return text.Cut(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			return ' '
		}
		return r
	}, message), maxText)
}

// statusOf is the HTTP status of a request that was refused before execution.
func statusOf(errs gqlerror.List) int {
	for _, err := range errs {
		switch code, _ := err.Extensions["code"].(string); Code(code) {
		case ParseFailed:
			return http.StatusBadRequest
		case Internal:
			return http.StatusInternalServerError
		case Unavailable:
			return http.StatusServiceUnavailable
		case Unauthenticated:
			return http.StatusUnauthorized
		case Forbidden:
			return http.StatusForbidden
		case RateLimited:
			return http.StatusTooManyRequests
		}
	}
	return http.StatusUnprocessableEntity
}
