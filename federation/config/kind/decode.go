package kind

import (
	"encoding/json"
	"fmt"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"isthmus.dev/isthmus/federation"
)

// Known reports whether the hub knows the kind.
func (r *Row) Known() bool { return r.empty != nil }

// Decode reads the spec of an object of that kind into the kind's own Go type.
func Decode(kind federation.Kind, raw json.RawMessage) (any, error) {
	r := Of(kind)
	if !r.Known() {
		return nil, fmt.Errorf("kind %s is unknown to this hub", kind)
	}
	spec := r.empty()
	if err := decodeSpec(raw, spec); err != nil {
		return nil, fmt.Errorf("its spec cannot be read: %w", err)
	}
	return spec, nil
}

// decodeSpec reads a spec as the kind's own module does: Istio's take durations
// such as 3m, and unknown fields. What is in protobuf's own JSON is
// read by protobuf, at a fraction of the cost.
func decodeSpec(raw json.RawMessage, into any) error {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	if m, ok := into.(proto.Message); ok {
		if protojson.Unmarshal(raw, m) == nil {
			return nil
		}
		proto.Reset(m)
	}
	return json.Unmarshal(raw, into)
}
