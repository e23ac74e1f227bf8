package envoy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/destinationrule"
	"isthmus.dev/isthmus/xds/envoy/gateway"
	"isthmus.dev/isthmus/xds/envoy/node"
	"isthmus.dev/isthmus/xds/envoy/virtualservice"
)

// Field is a part of an object's spec that has no effect, or not the one that it
// says.
type Field struct {
	Path   string // within the spec, as http[0].match[1].uri; "spec" is all of it
	Reason string // why, and what to do instead
}

// fieldTable says of the fields of a kind whether they are honoured. A path has
// no indices; what it says holds for all that is below it, and a field that is in
// no path is not honoured.
type fieldTable struct {
	honoured []string
	refused  map[string]string           // path, and why
	values   func(proto.Message) []Field // values that are not honoured in fields that are
}

// otherRooms are kinds that are read elsewhere: by the registries and the hub.
var otherRooms = []string{"ServiceEntry", "WorkloadEntry", "WorkloadGroup"}

// NotHonoured tells what of the object has no effect on proxies. What it does not
// name is compiled.
func NotHonoured(o *federation.Object) []Field {
	kind := o.Key.Of()
	if kind.Group == federation.MeshGroup || kind.Group == virtualservice.Kind.Group && slices.Contains(otherRooms, kind.Name) {
		return nil
	}
	spec, ok := o.Spec.(proto.Message)
	table, known := tableOf(kind)
	if !ok || !known {
		return []Field{{"spec", cmp.Or(notCompiled(kind), "objects of the kind "+kind.String()+" have no effect yet")}}
	}
	w := fieldWalk{table: table}
	w.message(spec.ProtoReflect(), "", "")
	if table.values != nil {
		w.found = append(w.found, table.values(spec)...)
	}
	slices.SortFunc(w.found, func(a, b Field) int { return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Reason, b.Reason)) })
	return slices.Compact(w.found)
}

func tableOf(kind federation.Kind) (fieldTable, bool) {
	switch kind {
	case virtualservice.Kind:
		return virtualServiceFields(), true
	case destinationrule.Kind:
		return destinationRuleFields(), true
	case node.SidecarKind:
		return sidecarFields(), true
	case gateway.Kind:
		return gatewayFields(), true
	}
	return fieldTable{}, false
}

// notCompiled says why a whole kind has no effect.
func notCompiled(kind federation.Kind) string {
	switch kind.Name {
	case "EnvoyFilter", "WasmPlugin":
		return "patches of Envoy's own configuration are not applied"
	case "AuthorizationPolicy", "RequestAuthentication", "PeerAuthentication":
		return "policies about who may call are not compiled yet: nothing is refused because of this object"
	case "Telemetry":
		return "telemetry is not compiled yet"
	case "ProxyConfig":
		return "proxies take their own settings from where they are started"
	}
	return ""
}

// fieldWalk goes through all fields that are set.
type fieldWalk struct {
	table fieldTable
	found []Field
}

// message looks at a message; at is its path with indices, path without.
func (w *fieldWalk) message(m protoreflect.Message, at, path string) {
	m.Range(func(field protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		name := field.JSONName()
		w.field(field, v, fieldPaths{join(at, name), join(path, name)})
		return true
	})
}

// fieldPaths are a path with indices and without.
type fieldPaths struct{ at, path string }

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func (w *fieldWalk) field(field protoreflect.FieldDescriptor, v protoreflect.Value, p fieldPaths) {
	why, refused := w.table.refused[p.path]
	switch {
	case refused:
		w.found = append(w.found, Field{p.at, why})
	case slices.Contains(w.table.honoured, p.path):
	case !w.table.goesBelow(p.path) || field.Message() == nil || field.IsMap():
		w.found = append(w.found, Field{p.at, "this field is not compiled yet"})
	case field.IsList():
		for i := range v.List().Len() {
			w.message(v.List().Get(i).Message(), fmt.Sprintf("%s[%d]", p.at, i), p.path)
		}
	default:
		w.message(v.Message(), p.at, p.path)
	}
}

// goesBelow tells that the table says something of fields below the path.
func (t fieldTable) goesBelow(path string) bool {
	below := func(other string) bool { return strings.HasPrefix(other, path+".") }
	for other := range t.refused {
		if below(other) {
			return true
		}
	}
	return slices.ContainsFunc(t.honoured, below)
}

func sidecarFields() fieldTable {
	return fieldTable{
		honoured: []string{"workloadSelector", "egress.hosts", "outboundTrafficPolicy.mode"},
		refused: map[string]string{
			"egress.port":                       "egress listeners of single ports are not compiled: their hosts are imported for every port",
			"egress.bind":                       "egress listeners are not bound to addresses of their own",
			"egress.captureMode":                "all outbound traffic is captured alike",
			"ingress":                           "inbound listeners follow the services of the workload",
			"outboundTrafficPolicy.egressProxy": "there is no egress proxy for what the mesh does not know",
			"inboundConnectionPool":             "inbound connections are not limited",
		},
	}
}
