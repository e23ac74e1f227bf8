package graph

import (
	"github.com/99designs/gqlgen/graphql"

	"isthmus.dev/isthmus/graph/compiled"
)

// ByField has the executor resolve every single field.
func ByField(schema graphql.ExecutableSchema) graphql.ExecutableSchema {
	p := schema.(pinned)
	p.byField = true
	return p
}

// WritesAsAWhole has for each type that is written as part of a whole whether a field of it is.
func WritesAsAWhole() map[string]func(field string) bool {
	all := map[string]func(string) bool{}
	add(all, plainServices)
	add(all, plainEndpoints)
	add(all, plainPageInfo)
	add(all, plainService)
	add(all, plainVIPs)
	add(all, plainServicePort)
	add(all, plainPortName)
	add(all, plainConflict)
	add(all, plainShard)
	add(all, plainLabel)
	add(all, plainEndpoint)
	add(all, plainEndpointPort)
	add(all, plainLocality)
	return all
}

func add[T any](all map[string]func(string) bool, of *compiled.Object[T]) {
	all[of.Names[0]] = func(field string) bool { return of.Field(field) != nil }
}

// InTime is the walk through a list, for tests.
var InTime = inTime[int]
