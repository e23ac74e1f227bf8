package graph

import (
	"time"

	"github.com/99designs/gqlgen/graphql"

	"isthmus.dev/isthmus/graph/compiled"
	"isthmus.dev/isthmus/graph/model"
	"isthmus.dev/isthmus/graph/scalar"
)

func moment(t *time.Time) graphql.Marshaler {
	if t == nil {
		return graphql.Null
	}
	return scalar.MarshalDateTime(*t)
}

var plainVIPs = &compiled.Object[model.ClusterVIPs]{Names: []string{"ClusterVIPs"}, Fields: map[string]compiled.Field[model.ClusterVIPs]{
	"clusterID": compiled.String(func(v model.ClusterVIPs) string { return v.ClusterID }),
	"addresses": compiled.Strings(func(v model.ClusterVIPs) []string { return v.Addresses }),
}}

var plainServicePort = &compiled.Object[model.ServicePort]{
	Names: []string{"ServicePort"},
	Fields: map[string]compiled.Field[model.ServicePort]{
		"name":       compiled.String(func(p model.ServicePort) string { return p.Name }),
		"number":     compiled.Int(func(p model.ServicePort) int { return p.Number }),
		"protocol":   compiled.String(func(p model.ServicePort) model.Protocol { return p.Protocol }),
		"clusterIDs": compiled.Strings(func(p model.ServicePort) []string { return p.ClusterIDs }),
		"names":      compiled.List(func(p model.ServicePort) []model.ClusterPortName { return p.Names }, plainPortName),
	},
}

var plainPortName = &compiled.Object[model.ClusterPortName]{
	Names: []string{"ClusterPortName"},
	Fields: map[string]compiled.Field[model.ClusterPortName]{
		"clusterID": compiled.String(func(n model.ClusterPortName) string { return n.ClusterID }),
		"name":      compiled.String(func(n model.ClusterPortName) string { return n.Name }),
	},
}

var plainConflict = &compiled.Object[model.Conflict]{Names: []string{"Conflict"}, Fields: map[string]compiled.Field[model.Conflict]{
	"kind":       compiled.String(func(c model.Conflict) string { return c.Kind }),
	"docUrl":     compiled.NullString(func(c model.Conflict) *string { return c.DocURL }),
	"message":    compiled.String(func(c model.Conflict) string { return c.Message }),
	"clusterIDs": compiled.Strings(func(c model.Conflict) []string { return c.ClusterIDs }),
}}

var plainShard = &compiled.Object[model.Shard]{Names: []string{"Shard"}, Fields: map[string]compiled.Field[model.Shard]{
	"clusterID":     compiled.String(func(s model.Shard) string { return s.ClusterID }),
	"provider":      compiled.String(func(s model.Shard) model.Provider { return s.Provider }),
	"resolution":    compiled.String(func(s model.Shard) model.Resolution { return s.Resolution }),
	"meshExternal":  compiled.Bool(func(s model.Shard) bool { return s.MeshExternal }),
	"uid":           compiled.NullString(func(s model.Shard) *string { return s.UID }),
	"createdAt":     compiled.Scalar(func(s model.Shard) graphql.Marshaler { return moment(s.CreatedAt) }),
	"labels":        compiled.List(func(s model.Shard) []model.Label { return s.Labels }, plainLabel),
	"endpointCount": compiled.Int(func(s model.Shard) int { return s.EndpointCount }),
}}

var plainLabel = &compiled.Object[model.Label]{Names: []string{"Label"}, Fields: map[string]compiled.Field[model.Label]{
	"key":   compiled.String(func(l model.Label) string { return l.Key }),
	"value": compiled.String(func(l model.Label) string { return l.Value }),
}}

var plainEndpoint = &compiled.Object[model.Endpoint]{Names: []string{"Endpoint", "Node"}, Fields: map[string]compiled.Field[model.Endpoint]{
	"ports":    compiled.List(model.Endpoint.Ports, plainEndpointPort),
	"provider": compiled.String(model.Endpoint.Provider),
	"locality": compiled.One(model.Endpoint.Locality, plainLocality),
	"health":   compiled.String(model.Endpoint.Health),
	"labels":   compiled.List(model.Endpoint.Labels, plainLabel),
}}

var plainEndpointPort = &compiled.Object[model.EndpointPort]{
	Names: []string{"EndpointPort"},
	Fields: map[string]compiled.Field[model.EndpointPort]{
		"name":   compiled.String(func(p model.EndpointPort) string { return p.Name }),
		"number": compiled.Int(func(p model.EndpointPort) int { return p.Number }),
	},
}

var plainLocality = &compiled.Object[model.Locality]{Names: []string{"Locality"}, Fields: map[string]compiled.Field[model.Locality]{
	"region":  compiled.NullString(func(l model.Locality) *string { return l.Region }),
	"zone":    compiled.NullString(func(l model.Locality) *string { return l.Zone }),
	"subZone": compiled.NullString(func(l model.Locality) *string { return l.SubZone }),
}}

// plainChange has no differences: they take long, and the executor makes several at once.
var plainChange = &compiled.Object[model.ConfigChange]{
	Names: []string{"ConfigChange"},
	Fields: map[string]compiled.Field[model.ConfigChange]{
		"action": compiled.String(func(c model.ConfigChange) model.ChangeAction { return c.Action }),
		"object": compiled.One(func(c model.ConfigChange) model.ObjectRef { return c.Object }, plainRef),
	},
}

var plainRef = &compiled.Object[model.ObjectRef]{Names: []string{"ObjectRef"}, Fields: map[string]compiled.Field[model.ObjectRef]{
	"group":     compiled.String(func(r model.ObjectRef) string { return r.Group }),
	"kind":      compiled.String(func(r model.ObjectRef) string { return r.Kind }),
	"namespace": compiled.String(func(r model.ObjectRef) string { return r.Namespace }),
	"name":      compiled.String(func(r model.ObjectRef) string { return r.Name }),
	"clusterID": compiled.NullString(func(r model.ObjectRef) *string { return r.ClusterID }),
	"revision":  compiled.NullString(func(r model.ObjectRef) *string { return r.Revision }),
}}
