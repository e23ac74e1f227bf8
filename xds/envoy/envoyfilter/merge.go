package envoyfilter

import (
	"fmt"

	typev3 "github.com/cncf/xds/go/xds/type/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"
)

// merger merges as Istio does: messages are merged field by field, lists are appended, durations
// and other values of Google's types are replaced, and packed messages are merged inside.
type merger struct {
	replaceLists bool // MERGE_AND_REPLACE_LIST
}

// merge puts what value has into the message. After an error, into is undefined.
func (g merger) merge(into, value proto.Message) error {
	return g.message(into.ProtoReflect(), value.ProtoReflect())
}

func (g merger) message(into, value protoreflect.Message) (err error) {
	switch into := into.Interface().(type) {
	case *anypb.Any:
		return g.packed(into, value.Interface().(*anypb.Any))
	case *structpb.Struct:
		g.values(into, value.Interface().(*structpb.Struct))
		return nil
	}
	value.Range(func(field protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		err = g.field(into, field, v)
		return err == nil
	})
	return err
}

func (g merger) field(into protoreflect.Message, field protoreflect.FieldDescriptor, v protoreflect.Value) error {
	switch {
	case field.IsList():
		if g.replaceLists {
			into.Clear(field)
		}
		list := into.Mutable(field).List()
		for i := range v.List().Len() {
			list.Append(v.List().Get(i))
		}
	case field.IsMap():
		of := into.Mutable(field).Map()
		v.Map().Range(func(key protoreflect.MapKey, v protoreflect.Value) bool {
			of.Set(key, v)
			return true
		})
	case field.Message() != nil && into.Has(field) && !isValue(field.Message()):
		return g.message(into.Mutable(field).Message(), v.Message())
	default:
		into.Set(field, v)
	}
	return nil
}

// isValue reports whether messages of the type are single values, such as durations.
func isValue(d protoreflect.MessageDescriptor) bool {
	switch d.FullName() {
	case "google.protobuf.Any", "google.protobuf.Struct":
		return false
	}
	return d.FullName().Parent() == "google.protobuf"
}

// packed merges packed messages of one type.
func (g merger) packed(into, value *anypb.Any) error {
	if into.GetTypeUrl() != value.GetTypeUrl() {
		return fmt.Errorf("the value has the type %s, and what it is merged with has %s", value.MessageName(), into.MessageName())
	}
	now, err := into.UnmarshalNew()
	if err != nil {
		return fmt.Errorf("unpacking %s: %w", into.MessageName(), err)
	}
	more, err := value.UnmarshalNew()
	if err != nil {
		return fmt.Errorf("unpacking %s: %w", value.MessageName(), err)
	}
	if typed, is := now.(*typev3.TypedStruct); is && typed.GetTypeUrl() != more.(*typev3.TypedStruct).GetTypeUrl() {
		return fmt.Errorf("the value has the type %s, and what it is merged with has %s",
			more.(*typev3.TypedStruct).GetTypeUrl(), typed.GetTypeUrl())
	}
	if err := g.merge(now, more); err != nil {
		return err
	}
	return anypb.MarshalFrom(into, now, proto.MarshalOptions{Deterministic: true})
}

// values merges what Envoy reads as a message: objects are merged, lists appended.
func (g merger) values(into, value *structpb.Struct) {
	if into.Fields == nil {
		into.Fields = map[string]*structpb.Value{}
	}
	for key, v := range value.GetFields() {
		old := into.Fields[key]
		switch {
		case old.GetStructValue() != nil && v.GetStructValue() != nil:
			g.values(old.GetStructValue(), v.GetStructValue())
		case old.GetListValue() != nil && v.GetListValue() != nil && !g.replaceLists:
			old.GetListValue().Values = append(old.GetListValue().Values, v.GetListValue().GetValues()...)
		default:
			into.Fields[key] = v
		}
	}
}
