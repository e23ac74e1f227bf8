package graph

import "github.com/99designs/gqlgen/graphql"

// ByField has the executor resolve every single field.
func ByField(schema graphql.ExecutableSchema) graphql.ExecutableSchema {
	p := schema.(pinned)
	p.byField = true
	return p
}

// PlainFields are the fields that are written as part of a whole, by type.
func PlainFields() map[string][]string {
	all := map[string][]string{}
	add(all, plainServices.Names, plainServices.Fields)
	add(all, plainEndpoints.Names, plainEndpoints.Fields)
	add(all, plainPageInfo.Names, plainPageInfo.Fields)
	add(all, plainService.Names, plainService.Fields)
	add(all, plainVIPs.Names, plainVIPs.Fields)
	add(all, plainServicePort.Names, plainServicePort.Fields)
	add(all, plainPortName.Names, plainPortName.Fields)
	add(all, plainConflict.Names, plainConflict.Fields)
	add(all, plainShard.Names, plainShard.Fields)
	add(all, plainLabel.Names, plainLabel.Fields)
	add(all, plainEndpoint.Names, plainEndpoint.Fields)
	add(all, plainEndpointPort.Names, plainEndpointPort.Fields)
	add(all, plainLocality.Names, plainLocality.Fields)
	return all
}

func add[F any](all map[string][]string, names []string, fields map[string]F) {
	for name := range fields {
		all[names[0]] = append(all[names[0]], name)
	}
}

// InTime is the walk through a list, for tests.
var InTime = inTime[int]
