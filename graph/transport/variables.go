package transport

import (
	"context"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/errcode"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
)

// prepare parses and validates an operation. It refuses variables that GraphQL does not
// convert and the library does: text for an Int, a number for a String, an enum value in
// another case. The library also calls every number that it refuses 0.
func (h *Handler) prepare(ctx context.Context, params *graphql.RawParams) (*graphql.OperationContext, gqlerror.List) {
	operation, errs := h.exec.CreateOperationContext(ctx, params)
	errs = errs[:min(len(errs), maxErrors)] // To find the place of each takes time with the length of the document.
	if operation.Operation == nil {
		if operation.Doc != nil && params.OperationName == "" {
			errs = gqlerror.List{coded(ValidationFailed, "the document has several operations; name one as operationName")}
		}
		return operation, errs // The document is not valid.
	}
	inputs := inputs{types: h.schema.Types, hidden: h.options.HideSchema}
	for _, variable := range operation.Operation.VariableDefinitions {
		path := ast.Path{ast.PathName("variable"), ast.PathName(variable.Variable)}
		if fault := inputs.misfit(variable.Type, params.Variables[variable.Variable], path); fault != nil {
			return operation, gqlerror.List{fault}
		}
	}
	return operation, errs
}

// inputs are the types that variables must fit.
type inputs struct {
	types  map[string]*ast.Definition
	hidden bool // errors do not list what the schema allows
}

// misfit says what is wrong with a value, or with one in it. The library finds null where
// there may be none, unknown fields and values that are not objects.
func (in inputs) misfit(of *ast.Type, value any, path ast.Path) *gqlerror.Error {
	if value == nil {
		return nil
	}
	if list := reflect.ValueOf(value); of.Elem != nil && list.Kind() == reflect.Slice {
		for i := range list.Len() {
			if fault := in.misfit(of.Elem, list.Index(i).Interface(), inside(path, ast.PathIndex(i))); fault != nil {
				return fault
			}
		}
		return nil
	}
	if of.Elem != nil { // A single value is a list of one.
		return in.misfit(of.Elem, value, path)
	}
	definition := in.types[of.NamedType]
	members, _ := value.(map[string]any)
	for _, field := range definition.Fields {
		if fault := in.misfit(field.Type, members[field.Name], inside(path, ast.PathName(field.Name))); fault != nil {
			return fault
		}
	}
	if must := in.mustBe(definition, value); must != "" {
		return &gqlerror.Error{Message: "must be " + must, Path: path, Extensions: map[string]any{"code": errcode.ValidationFailed}}
	}
	return nil
}

func inside(path ast.Path, element ast.PathElement) ast.Path {
	return append(path[:len(path):len(path)], element)
}

// mustBe describes the values of a scalar or enum, or is "" where value is one.
func (in inputs) mustBe(definition *ast.Definition, value any) string {
	number, isNumber := value.(json.Number)
	text, isText := value.(string)
	switch {
	case definition.Kind == ast.Enum:
		if isText && definition.EnumValues.ForName(text) != nil {
			return ""
		}
		return in.oneOf(definition)
	case definition.Kind == ast.InputObject:
		if _, isObject := value.(map[string]any); !isObject {
			return "an object"
		}
	case definition.Name == "Int":
		if _, err := strconv.ParseInt(string(number), 10, 32); err != nil {
			return "an Int: a whole number of at most 32 bits"
		}
	case definition.Name == "Float":
		if _, err := strconv.ParseFloat(string(number), 64); err != nil {
			return "a number of at most 64 bits"
		}
	case definition.Name == "ID" && isNumber && strings.ContainsAny(string(number), ".eE"), definition.Name == "ID" && !isNumber && !isText:
		return "an ID: a string or a whole number"
	case (definition.Name == "String" || definition.Name == "Duration" || definition.Name == "DateTime") && !isText:
		return "a string"
	}
	return ""
}

func (in inputs) oneOf(enum *ast.Definition) string {
	if in.hidden {
		return "a value of " + enum.Name
	}
	names := make([]string, len(enum.EnumValues))
	for i, value := range enum.EnumValues {
		names[i] = value.Name
	}
	return "one of " + strings.Join(names, ", ")
}
