package transport

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
)

// costGate counts, before execution, how many objects an answer can hold, and
// refuses pages outside of their bounds. A field with the argument first is a
// connection: its nodes and edges count as many times as the page is large.
type costGate struct {
	limits Limits
	schema *ast.Schema
}

func (*costGate) ExtensionName() string { return "IsthmusCost" }

func (c *costGate) Validate(schema graphql.ExecutableSchema) error {
	c.schema = schema.Schema()
	return nil
}

func (c *costGate) MutateOperationContext(_ context.Context, operation *graphql.OperationContext) *gqlerror.Error {
	if operation.Operation.Operation == ast.Subscription && !oneRoot(operation.Operation.SelectionSet) {
		return coded(ValidationFailed, "a subscription has one field at the top")
	}
	count := &objects{costGate: c, variables: operation.Variables, known: make(map[spread]int)}
	total := count.set(operation.Operation.SelectionSet, 1)
	if count.fault != "" {
		return coded(BadUserInput, count.fault)
	}
	if total > c.limits.Cost {
		return coded(TooComplex, fmt.Sprintf(
			"the operation asks for up to %d objects, more than %d; ask for smaller pages or fewer fields", total, c.limits.Cost))
	}
	return nil
}

// spread is a fragment in a place whose nodes and edges count rows times.
type spread struct {
	name string
	rows int
}

type objects struct {
	*costGate
	variables map[string]any
	known     map[spread]int
	fault     string
}

// set counts the objects of a selection set. rows is the page size where the
// set is that of a connection, else 1.
func (o *objects) set(set ast.SelectionSet, rows int) int {
	total := 0
	for _, selection := range set {
		switch selected := selection.(type) {
		case *ast.Field:
			total += o.field(selected, rows)
		case *ast.InlineFragment:
			total += o.set(selected.SelectionSet, rows)
		case *ast.FragmentSpread:
			total += o.spread(selected, rows)
		}
	}
	return min(total, many)
}

func (o *objects) spread(selected *ast.FragmentSpread, rows int) int {
	key := spread{selected.Name, rows}
	if _, ok := o.known[key]; !ok {
		o.known[key] = o.set(selected.Definition.SelectionSet, rows)
	}
	return o.known[key]
}

func (o *objects) field(field *ast.Field, rows int) int {
	if len(field.SelectionSet) == 0 || field.Name == "__schema" || field.Name == "__type" {
		return 0
	}
	if field.Definition.Arguments.ForName("first") != nil {
		return min(1+o.set(field.SelectionSet, o.page(field)), many)
	}
	times := 1
	if field.Name == "nodes" || field.Name == "edges" {
		times = rows
	}
	return min(times*(1+o.set(field.SelectionSet, 1)), many)
}

// page returns the page size of a connection and notes a size that is refused.
func (o *objects) page(field *ast.Field) int {
	first, hasFirst := o.size(field, "first")
	last, hasLast := o.size(field, "last")
	size := o.limits.PageDefault
	switch {
	case hasLast:
		size = last
	case hasFirst:
		size = first
	}
	if written := field.Arguments.ForName("first"); hasFirst && hasLast && written != nil {
		o.fault = fmt.Sprintf("%s takes first or last, not both", field.Name)
	}
	if size < 1 || size > o.limits.PageMax {
		o.fault = fmt.Sprintf("the page of %s has a size from 1 to %d", field.Name, o.limits.PageMax)
		return 1
	}
	return size
}

// size reads an Int argument: what is written, what its variable holds, or its
// default. A null counts as absent.
func (o *objects) size(field *ast.Field, name string) (int, bool) {
	definition := field.Definition.Arguments.ForName(name)
	if definition == nil {
		return 0, false
	}
	value := definition.DefaultValue
	if argument := field.Arguments.ForName(name); argument != nil {
		value = argument.Value
	}
	if value == nil {
		return 0, false
	}
	if value.Kind == ast.Variable {
		if held, given := o.variables[value.Raw]; given {
			return number(held)
		}
		if value = definition.DefaultValue; value == nil {
			return 0, false
		}
	}
	size, err := strconv.Atoi(value.Raw)
	return size, err == nil
}

func number(held any) (int, bool) {
	switch n := held.(type) {
	case int64:
		return int(n), true
	case int:
		return n, true
	case json.Number:
		size, err := n.Int64()
		return int(size), err == nil
	default:
		return 0, false
	}
}
