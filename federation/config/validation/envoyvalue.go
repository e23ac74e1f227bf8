package validation

import (
	_ "embed"
	"slices"
	"strings"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	api "istio.io/api/networking/v1alpha3"

	"isthmus.dev/isthmus/internal/text"
)

// patched is what each patch is part of, or all of.
var patched = map[api.EnvoyFilter_ApplyTo]proto.Message{
	api.EnvoyFilter_CLUSTER:             &clusterv3.Cluster{},
	api.EnvoyFilter_LISTENER:            &listenerv3.Listener{},
	api.EnvoyFilter_FILTER_CHAIN:        &listenerv3.FilterChain{},
	api.EnvoyFilter_NETWORK_FILTER:      &listenerv3.Filter{},
	api.EnvoyFilter_LISTENER_FILTER:     &listenerv3.ListenerFilter{},
	api.EnvoyFilter_HTTP_FILTER:         &hcmv3.HttpFilter{},
	api.EnvoyFilter_ROUTE_CONFIGURATION: &routev3.RouteConfiguration{},
	api.EnvoyFilter_VIRTUAL_HOST:        &routev3.VirtualHost{},
	api.EnvoyFilter_HTTP_ROUTE:          &routev3.Route{},
	api.EnvoyFilter_EXTENSION_CONFIG:    &corev3.TypedExtensionConfig{},
	api.EnvoyFilter_BOOTSTRAP:           &bootstrapv3.Bootstrap{},
}

// patchValue says why the value is not one of Envoy's type. Fields that the type does
// not have may be those of a newer Envoy: they are not a mistake here, nor in Istio.
func patchValue(p *configPatch) string {
	kind, value := patched[p.GetApplyTo()], p.GetPatch().GetValue()
	if kind == nil || value == nil {
		return ""
	}
	encoded, err := protojson.Marshal(value)
	if err != nil {
		return when(true, "the value has a number that JSON does not have: remove it")
	}
	into := kind.ProtoReflect().New().Interface()
	err = protojson.UnmarshalOptions{
		AllowPartial: true, DiscardUnknown: true,
		Resolver: envoyTypes{protoregistry.GlobalTypes},
	}.Unmarshal(encoded, into)
	if err == nil {
		return ""
	}
	name := into.ProtoReflect().Descriptor().FullName()
	return when(true, "%s patches a value of the type %s, which this is not: %s; correct it by Envoy's API reference",
		p.GetApplyTo(), name, text.OfProtoJSON(err))
}

// envoyTypes resolves the types of typed_config. The hub is built with few of them. For
// others that Envoy has, the name alone is checked: all of them in the binary would cost
// 30 MB of memory (ADR 75).
type envoyTypes struct{ *protoregistry.Types }

//go:embed envoytypes.txt
var envoyTypeNames string

func (r envoyTypes) FindMessageByURL(url string) (protoreflect.MessageType, error) {
	known, err := r.Types.FindMessageByURL(url)
	if err == nil {
		return known, nil
	}
	name := url[strings.LastIndexByte(url, '/')+1:]
	if _, listed := slices.BinarySearch(strings.Fields(envoyTypeNames), name); !listed {
		return nil, err
	}
	return (&corev3.AggregatedConfigSource{}).ProtoReflect().Type(), nil // has no fields: all are unknown, and ignored
}
