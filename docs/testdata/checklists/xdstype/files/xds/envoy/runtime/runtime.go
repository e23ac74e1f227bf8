// Package runtime makes layers of Envoy's runtime, for the check list.
package runtime

import (
	runtimev3 "github.com/envoyproxy/go-control-plane/envoy/service/runtime/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"isthmus.dev/isthmus/xds/envoy/facet"
)

// Layer is the layer of that name.
func Layer(_ *facet.View, name string) proto.Message {
	layer := &structpb.Struct{Fields: map[string]*structpb.Value{"re2.max_program_size.error_level": structpb.NewNumberValue(100)}}
	return &runtimev3.Runtime{Name: name, Layer: layer}
}
