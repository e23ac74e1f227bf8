package check

import (
	"fmt"
	"math"
	"sync"

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

// Part checks a part of a resource, such as a virtual host, by the generated
// rules.
func Part(m proto.Message) error { return newSchemaCheck().message(m) }

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

// walk finds the packed messages and durations; a part that is in several places
// is looked at once.
func (c schemaCheck) walk(m protoreflect.Message) error {
	ways := waysFrom(m.Descriptor())
	if len(ways) > 0 {
		return c.follow(m, ways)
	}
	switch part := m.Interface().(type) {
	case *anypb.Any:
		return c.unpack(part)
	case *durationpb.Duration:
		if part.GetSeconds() > maxSeconds || part.GetSeconds() < 0 || part.GetNanos() < 0 {
			return fmt.Errorf("a duration of %d seconds and %d nanoseconds is less than nothing, or more than Envoy can count",
				part.GetSeconds(), part.GetNanos())
		}
	}
	return nil
}

func (c schemaCheck) follow(m protoreflect.Message, ways []protoreflect.FieldDescriptor) error {
	part := m.Interface()
	if c.seen[part] {
		return nil
	}
	c.seen[part] = true
	for _, field := range ways {
		if !m.Has(field) {
			continue
		}
		if err := c.field(field, m.Get(field)); err != nil {
			return err
		}
	}
	return nil
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

// knownWays remembers waysFrom: descriptors never change.
var knownWays sync.Map //nolint:gochecknoglobals // by protoreflect.MessageDescriptor

// waysFrom are the fields by which packed messages and durations can be reached;
// most of a resource needs no look.
func waysFrom(d protoreflect.MessageDescriptor) []protoreflect.FieldDescriptor {
	if known, ok := knownWays.Load(d); ok {
		return known.([]protoreflect.FieldDescriptor)
	}
	var found []protoreflect.FieldDescriptor
	for i := range d.Fields().Len() {
		field := d.Fields().Get(i)
		if inner := messageOf(field); inner != nil && leads(inner, map[protoreflect.FullName]bool{}) {
			found = append(found, field)
		}
	}
	knownWays.Store(d, found)
	return found
}

// leads reports whether messages of the type are, or may hold, what is looked at.
func leads(d protoreflect.MessageDescriptor, been map[protoreflect.FullName]bool) bool {
	switch d.FullName() {
	case "google.protobuf.Any", "google.protobuf.Duration":
		return true
	}
	if been[d.FullName()] {
		return false
	}
	been[d.FullName()] = true
	for i := range d.Fields().Len() {
		if inner := messageOf(d.Fields().Get(i)); inner != nil && leads(inner, been) {
			return true
		}
	}
	return false
}

// messageOf is the type of the messages in the field, nil where it has none.
func messageOf(field protoreflect.FieldDescriptor) protoreflect.MessageDescriptor {
	if field.IsMap() {
		return field.MapValue().Message()
	}
	return field.Message()
}
