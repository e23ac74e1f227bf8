package schema

import (
	"fmt"
	"regexp"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"isthmus.dev/isthmus/internal/text"
)

// Problem is why an object is refused.
type Problem struct {
	Code    Code
	Field   string // path, written as Kubernetes does
	Message string // what is wrong, with the allowed values
}

func (p Problem) String() string {
	if p.Field == "" {
		return p.Message
	}
	return p.Field + ": " + p.Message
}

// Code is the kind of a problem; it is stable.
type Code string

// The codes of problems.
const (
	UnknownKind    Code = "UNKNOWN_KIND"
	UnknownVersion Code = "UNKNOWN_VERSION"
	UnknownField   Code = "UNKNOWN_FIELD"
	Required       Code = "REQUIRED"
	Invalid        Code = "INVALID"
	WrongType      Code = "TYPE"
	NotSupported   Code = "NOT_SUPPORTED" // none of the allowed values
	DuplicateValue Code = "DUPLICATE_VALUE"
	TooLong        Code = "TOO_LONG"
	TooMany        Code = "TOO_MANY"
	Forbidden      Code = "FORBIDDEN"
	// TooManyProblems is the last problem of an object with too many; those after it are not listed.
	TooManyProblems Code = "TOO_MANY_PROBLEMS"
	NotChecked      Code = "NOT_CHECKED" // rules that wait until the other problems are gone
	Internal        Code = "INTERNAL"    // a defect of the hub
)

var codes = map[field.ErrorType]Code{
	field.ErrorTypeRequired:     Required,
	field.ErrorTypeDuplicate:    DuplicateValue,
	field.ErrorTypeInvalid:      Invalid,
	field.ErrorTypeNotSupported: NotSupported,
	field.ErrorTypeForbidden:    Forbidden,
	field.ErrorTypeTooLong:      TooLong,
	field.ErrorTypeTooMany:      TooMany,
	field.ErrorTypeInternal:     Internal,
	field.ErrorTypeTypeInvalid:  WrongType,
}

// notChecked is what Kubernetes says where an object is too wrong for its rules.
const notChecked = "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation"

// problemsOf gives Kubernetes' errors, each once.
func problemsOf(errs field.ErrorList) []Problem {
	var list []Problem
	listed := make(map[Problem]bool, len(errs))
	for _, err := range errs {
		p := Problem{Code: codes[err.Type], Field: err.Field, Message: cut(err.ErrorBody())}
		if p.Code == "" {
			p.Code = Invalid
		}
		if p.Field == "<nil>" {
			p.Field = ""
		}
		if err.Detail == notChecked {
			p.Code, p.Message = NotChecked, notChecked
		}
		if m := alternatives.FindStringSubmatch(err.Detail); m != nil && p.Field == "" {
			p.Field, p.Message = m[1], cut(err.Detail)
		}
		if plain := plainly(err); plain != "" {
			p.Message = cut(plain)
		}
		if near := nearestValue(err); near != "" {
			p.Message += "; did you mean " + near + "?"
		}
		if !listed[p] {
			listed[p] = true
			list = append(list, p)
		}
	}
	return list
}

// plainly is an error without words of its evaluation, or "": Kubernetes tells the
// types of a value in a second place, and how a rule converts it.
func plainly(err *field.Error) string {
	if m := wrongType.FindStringSubmatch(err.Detail); m != nil {
		return fmt.Sprintf("must be of type %s, not %s", m[1], m[2])
	}
	if m := conversion.FindStringSubmatch(err.Detail); m != nil {
		return m[1]
	}
	if m := pattern.FindStringSubmatch(err.Detail); m != nil && forms[m[1]] != "" {
		return fmt.Sprintf("Invalid value: %q: %s", err.BadValue, forms[m[1]])
	}
	return ""
}

// forms say in words what patterns ask for that are hard to read.
var forms = map[string]string{
	`^(ConfigMap|Namespace|[A-Z][A-Za-z0-9]*(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+)$`: "write KIND.GROUP, such as VirtualService.networking.istio.io",
}

var (
	wrongType  = regexp.MustCompile(`^\S+ in body must be of type (\w+): "(\w+)"$`)
	pattern    = regexp.MustCompile(`^\S+ in body should match '(.+)'$`)
	conversion = regexp.MustCompile(`^type conversion error from .* evaluating rule: (.+)$`)
)

// alternatives is how the field is named of which one form is needed.
var alternatives = regexp.MustCompile(`^"([^"]+)" must validate `)

var quotedValue = regexp.MustCompile(`"([^"]*)"`)

func nearestValue(err *field.Error) string {
	value, ok := err.BadValue.(string)
	if !ok || err.Type != field.ErrorTypeNotSupported {
		return ""
	}
	var allowed []string
	for _, m := range quotedValue.FindAllStringSubmatch(err.Detail, -1) {
		allowed = append(allowed, m[1])
	}
	if near := text.Nearest(value, allowed); near != "" {
		return `"` + near + `"`
	}
	return ""
}

// cut bounds a message, which may repeat a value of any length.
func cut(message string) string { return text.Cut(message, 1024) }

func shorten(name string) string { return text.Cut(name, 128) }
