package envoy

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// toAny packs a message in deterministic bytes. The messages of this package
// can always be packed; what cannot is caught by Validate as an empty Any.
func toAny(m proto.Message) *anypb.Any {
	packed := &anypb.Any{}
	if err := anypb.MarshalFrom(packed, m, proto.MarshalOptions{Deterministic: true}); err != nil {
		return &anypb.Any{}
	}
	return packed
}
