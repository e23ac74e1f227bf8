// Package prototest changes messages field by field, for tests of what each field does.
package prototest

import (
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// WithoutEach takes one field that is set after the other out of the message, calls try
// with its path, and puts it back. Of a list of values it takes the last one.
func WithoutEach(m proto.Message, try func(path string)) { withoutEach(m.ProtoReflect(), "", try) }

func withoutEach(m protoreflect.Message, path string, try func(path string)) {
	m.Range(func(field protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		below := strings.TrimPrefix(path+"."+field.JSONName(), ".")
		switch {
		case IsLeaf(field) && field.IsList():
			fewer := m.NewField(field)
			for i := range v.List().Len() - 1 {
				fewer.List().Append(v.List().Get(i))
			}
			whole := proto.Clone(m.Interface()).ProtoReflect()
			m.Set(field, fewer)
			try(below)
			m.Set(field, whole.Get(field))
		case IsLeaf(field):
			whole := proto.Clone(m.Interface()).ProtoReflect()
			m.Clear(field)
			try(below)
			m.Set(field, whole.Get(field))
		case field.IsMap():
			v.Map().Range(func(_ protoreflect.MapKey, value protoreflect.Value) bool {
				withoutEach(value.Message(), below, try)
				return true
			})
		case field.IsList():
			for i := range v.List().Len() {
				withoutEach(v.List().Get(i).Message(), below, try)
			}
		default:
			withoutEach(v.Message(), below, try)
		}
		return true
	})
}

// IsLeaf reports whether the field is one value for those who write the message: a scalar, a
// map or list of them, or one of protobuf's own types, such as a duration.
func IsLeaf(field protoreflect.FieldDescriptor) bool {
	message := field.Message()
	if field.IsMap() {
		message = field.MapValue().Message()
	}
	return message == nil || strings.HasPrefix(string(message.FullName()), "google.protobuf.")
}
