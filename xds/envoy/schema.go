package envoy

import (
	"fmt"
	"math"

	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
)

// maxSeconds is the longest duration that Envoy can count in nanoseconds.
const maxSeconds = math.MaxInt64/1_000_000_000 - 1

// schemaCheck applies the generated rules to one resource, also to what is
// packed inside, each packed message once.
type schemaCheck struct {
	packed map[string]bool        // checked already
	seen   map[proto.Message]bool // by identity
}

func newSchemaCheck() schemaCheck {
	return schemaCheck{packed: map[string]bool{}, seen: map[proto.Message]bool{}}
}

func (c schemaCheck) message(m proto.Message) error {
	if v, ok := m.(interface{ ValidateAll() error }); ok {
		if err := v.ValidateAll(); err != nil {
			return err
		}
	}
	return c.walk(m.ProtoReflect())
}

func (c schemaCheck) unpack(packed *anypb.Any) error {
	key := packed.GetTypeUrl() + "\x00" + string(packed.GetValue())
	if c.packed[key] {
		return nil
	}
	c.packed[key] = true
	inner, err := packed.UnmarshalNew()
	if err != nil {
		return fmt.Errorf("unpacking %q: %w", packed.GetTypeUrl(), err)
	}
	if manager, ok := inner.(*hcmv3.HttpConnectionManager); ok && manager.GetRouteConfig() != nil {
		if err := validateRoutes(manager.GetRouteConfig()); err != nil {
			return err
		}
	}
	return c.message(inner)
}

// walk finds the packed messages; a part that is in several places is looked at
// once.
func (c schemaCheck) walk(m protoreflect.Message) error {
	part := m.Interface()
	if packed, ok := part.(*anypb.Any); ok {
		return c.unpack(packed)
	}
	if d, ok := part.(*durationpb.Duration); ok && (d.GetSeconds() > maxSeconds || d.GetSeconds() < 0 || d.GetNanos() < 0) {
		return fmt.Errorf("a duration of %d seconds and %d nanoseconds is less than nothing, or more than Envoy can count", d.GetSeconds(), d.GetNanos())
	}
	if c.seen[part] {
		return nil
	}
	c.seen[part] = true
	var err error
	m.Range(func(field protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if holdsMessages(field) {
			err = c.field(field, v)
		}
		return err == nil
	})
	return err
}

func holdsMessages(field protoreflect.FieldDescriptor) bool {
	if field.IsMap() {
		return field.MapValue().Message() != nil
	}
	return field.Message() != nil
}

func (c schemaCheck) field(field protoreflect.FieldDescriptor, v protoreflect.Value) error {
	var err error
	switch {
	case field.IsMap():
		v.Map().Range(func(_ protoreflect.MapKey, v protoreflect.Value) bool {
			err = c.walk(v.Message())
			return err == nil
		})
	case field.IsList():
		for i := 0; i < v.List().Len() && err == nil; i++ {
			err = c.walk(v.List().Get(i).Message())
		}
	default:
		err = c.walk(v.Message())
	}
	return err
}
