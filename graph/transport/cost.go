package transport

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
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
	count := &objects{costGate: c, variables: operation.Variables, known: make(map[spread]int), once: make(map[share]int)}
	total := count.set(operation.Operation.SelectionSet, 1)
	for _, shared := range count.once {
		total += shared
	}
	if count.fault != nil {
		return count.fault
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

// share is work that an operation does once: for a field of the schema, or for one field of the
// document with the argument.
type share struct {
	name  string
	field *ast.Field
}

type objects struct {
	*costGate
	variables map[string]any
	known     map[spread]int
	once      map[share]int // what is counted once, however often its field is resolved
	path      ast.Path      // of the field that is counted
	fault     *gqlerror.Error
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

// weights are what fields cost beside the objects that they hold, in about 10 µs of a
// processor, as an object costs. A name in parentheses is an argument, or a field of its input: with
// it, the field costs that much more. What is read from the store takes much more than a look into memory.
var weights = map[string]int{
	"ConfigObject.status": 8, "ConfigObject.yaml": 8, "Query.overview": 800, "Query.history": 300, "Query.configObject(at)": 800,
	"Query.history.totalCount": 1600, "Query.history(filter)": 1600, "Query.node": 16, "Query.services(orderBy)": 300,
	"Query.proxies(orderBy)": 750, "Query.explain": 100, "Query.configObjects(orderBy)": 300, "Query.history(orderBy)": 1600,
	// All endpoints are visited; the deliveries and findings of all objects are looked at, as for the overview.
	"Query.endpoints(filter)": 500, "Query.configObjects(filter.rejected)": 800, "Query.configObjects(filter.hasFindings)": 800,
	"Query.configObjects(filter.findingCode)": 800,
	// All resources of the type are listed for a page, and each is decoded to be shown.
	"ProxyConfig.resources": 200, "ProxyResource.sent": 8, "ProxyResource.acked": 8, "ProxyResource.causes": 1,
	// All services or proxies are visited; for a network, the endpoints of each service, or the network of each proxy.
	"Query.services(filter)": 20, "Query.services(filter.networkID)": 400,
	"Query.proxies(filter)": 200,
	// An operation reads each revision once, those of a page together. In the worst case, they are far apart, and large.
	"ConfigObject.configRevision": 60, "ConfigObjectRevision.configRevision": 60,
	// Objects are looked up by the hostname and its wildcards among all kinds; services by the beginnings of hostnames.
	// The services of the names of an object are merged.
	"Service.configObjects": 8, "ConfigObject.services": 4, "Problem.service": 1,
}

// once are what fields cost beside that the first time in an operation, however often it asks for
// them: a look at all proxies, services or trusted roots. With an argument, each field of the document costs it once: every
// group of proxies is filtered once by the same filter. A proxy is in one group, or in that of
// each of its services.
var once = map[string]int{
	"Network.services": 450, "Network.endpoints": 450, "Network.endpoints(filter)": 500, "Cluster.endpoints(filter)": 600,
	"ConfigObject.services": 250, "Cluster.trustRoots": 250, "Cluster.proxies": 100, "Service.proxies": 2700, "Endpoint.proxies": 3200,
	"Cluster.proxies(filter)": 200, "Network.proxies(filter)": 200, "Service.proxies(filter)": 200,
	"Endpoint.proxies(filter)": 200, networksOfProxies: 1900,
}

// together are the fields and arguments whose work an operation does once for all of them.
var together = map[string]string{
	"Network.proxies": networksOfProxies, "Query.proxies(filter.networkID)": networksOfProxies,
	"Cluster.proxies(filter.networkID)": networksOfProxies, "Network.proxies(filter.networkID)": networksOfProxies,
	"Service.proxies(filter.networkID)": networksOfProxies, "Endpoint.proxies(filter.networkID)": networksOfProxies,
}

// networksOfProxies is a look at the workload of each proxy, whose network it has.
const networksOfProxies = "networks of proxies"

// listed is how many items a list without pages counts for, if they lead to a connection or to a
// field with a weight. The weight of ProxyConfig.resources is that of all types of a proxy.
const (
	listed   = 10
	allTypes = "Proxy.config"
)

// weight is what the field costs by itself.
func (o *objects) weight(field *ast.Field) int {
	name := field.ObjectDefinition.Name + "." + field.Name
	cost := weights[name]
	o.share(name, nil)
	for _, argument := range field.Arguments {
		o.boundLists(field, argument)
		parts := []string{argument.Name}
		for _, given := range o.given(argument.Value) {
			parts = append(parts, argument.Name+"."+given)
		}
		for _, part := range parts {
			with := name + "(" + part + ")"
			cost += weights[with]
			o.share(with, field)
		}
	}
	if counted(field.SelectionSet) {
		cost += weights[name+".totalCount"]
	}
	return cost
}

// boundLists refuses a list that is an argument of a query, or a field of one, with more items than the limit: what
// is listed is compared with each of its items. Input of mutations has the limits of the change.
func (o *objects) boundLists(field *ast.Field, argument *ast.Argument) {
	if field.ObjectDefinition.Name == "Mutation" || field.Name == "nodes" { // the IDs of nodes count as objects
		return
	}
	most := o.limits.ListMax
	check := func(what string, items int) {
		if items > most {
			o.refuse(field, argument.Name, "%s%d items, at most %d are allowed; split the request", what, items, most)
		}
	}
	if argument.Value.Kind != ast.ObjectValue {
		held, _ := argument.Value.Value(o.variables)
		check("there are ", lengthOf(held))
		fields, _ := held.(map[string]any)
		for name, value := range fields {
			check(name+" has ", lengthOf(value))
		}
		return
	}
	for _, given := range argument.Value.Children {
		held, _ := given.Value.Value(o.variables)
		check(given.Name+" has ", lengthOf(held))
	}
}

// lengthOf is how many items a list has; 0 for other values.
func lengthOf(held any) int {
	if of := reflect.ValueOf(held); of.Kind() == reflect.Slice {
		return of.Len()
	}
	return 0
}

// share notes what the operation does once: for all fields of the name, or for this one.
func (o *objects) share(name string, field *ast.Field) {
	key := share{name, field}
	if all, ok := together[name]; ok {
		key = share{name: all}
	}
	if cost := once[key.name]; cost > 0 {
		o.once[key] = cost
	}
}

// given are the fields that an input has, as it is written or as its variable holds it.
func (o *objects) given(input *ast.Value) (names []string) {
	if input.Kind == ast.Variable {
		held, _ := o.variables[input.Raw].(map[string]any)
		return slices.Collect(maps.Keys(held))
	}
	if input.Kind == ast.ObjectValue {
		for _, field := range input.Children {
			names = append(names, field.Name)
		}
	}
	return names
}

// counted reports whether the whole of a list is needed to count it.
func counted(set ast.SelectionSet) bool {
	for _, selection := range set {
		switch selected := selection.(type) {
		case *ast.Field:
			if selected.Name == "totalCount" {
				return true
			}
		case *ast.InlineFragment:
			if counted(selected.SelectionSet) {
				return true
			}
		case *ast.FragmentSpread:
			if counted(selected.Definition.SelectionSet) {
				return true
			}
		}
	}
	return false
}

// dear reports whether a selection has a connection or a field with a weight, at any depth.
func dear(set ast.SelectionSet) bool {
	return slices.ContainsFunc(set, func(selection ast.Selection) bool {
		switch selected := selection.(type) {
		case *ast.Field:
			return selected.Definition.Arguments.ForName("first") != nil ||
				weights[selected.ObjectDefinition.Name+"."+selected.Name] > 0 || dear(selected.SelectionSet)
		case *ast.InlineFragment:
			return dear(selected.SelectionSet)
		case *ast.FragmentSpread:
			return dear(selected.Definition.SelectionSet)
		default:
			return false
		}
	})
}

func (o *objects) field(field *ast.Field, rows int) int {
	if field.Name == "__schema" || field.Name == "__type" {
		return 0
	}
	if len(field.SelectionSet) == 0 {
		return o.weight(field)
	}
	o.path = append(o.path, ast.PathName(field.Alias))
	defer func() { o.path = o.path[:len(o.path)-1] }()
	return min(o.weight(field)+o.objectsOf(field, rows), many)
}

// objectsOf counts the objects that a field holds.
func (o *objects) objectsOf(field *ast.Field, rows int) int {
	if ids := o.ids(field); ids > 0 {
		return min(ids*(1+weights["Query.node"]+o.set(field.SelectionSet, 1)), many)
	}
	if field.Definition.Arguments.ForName("first") != nil {
		return min(1+o.set(field.SelectionSet, o.page(field)), many)
	}
	times := 1
	switch {
	case field.Name == "nodes" || field.Name == "edges":
		times = rows
	case field.Definition.Type.Elem != nil && field.ObjectDefinition.Name+"."+field.Name != allTypes && dear(field.SelectionSet):
		times = listed
	}
	return min(times*(1+o.set(field.SelectionSet, 1)), many)
}

// refuse notes what is wrong with an argument of a field, and where that is.
func (o *objects) refuse(field *ast.Field, argument, format string, args ...any) {
	o.fault = coded(BadUserInput, argument+": "+fmt.Sprintf(format, args...))
	o.fault.Extensions["argument"], o.fault.Path = argument, slices.Clone(o.path)
	at := field.Position
	if written := field.Arguments.ForName(argument); written != nil {
		at = written.Position
	}
	if at != nil {
		o.fault.Locations = []gqlerror.Location{{Line: at.Line, Column: at.Column}}
	}
}

// ids is the number of IDs in the argument of Query.nodes; 0 for other fields.
func (o *objects) ids(field *ast.Field) int {
	argument := field.Arguments.ForName("ids")
	if argument == nil || field.Name != "nodes" {
		return 0
	}
	if argument.Value.Kind != ast.Variable {
		return len(argument.Value.Children)
	}
	all, _ := o.variables[argument.Value.Raw].([]any)
	return len(all)
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
	named := "first"
	if hasLast {
		named = "last"
	}
	if written := field.Arguments.ForName("first"); hasFirst && hasLast && written != nil {
		o.refuse(field, named, "%s takes first or last, not both", field.Name)
	}
	if size < 1 || size > o.limits.PageMax {
		o.refuse(field, named, "the page of %s has a size from 1 to %d", field.Name, o.limits.PageMax)
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
		value = definition.DefaultValue
		if value == nil {
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
