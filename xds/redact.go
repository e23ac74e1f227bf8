package xds

import (
	"fmt"

	"github.com/cncf/xds/go/udpa/annotations"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"
)

const redacted = "[redacted]"

// redact takes out of the message, and of those that it packs, the fields that Envoy's
// API marks as sensitive, as Envoy's own config dump does.
func redact(m protoreflect.Message) error {
	if packed, is := m.Interface().(*anypb.Any); is {
		return redactPacked(packed)
	}
	var err error
	m.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		if sensitive, _ := proto.GetExtension(field.Options(), annotations.E_Sensitive).(bool); sensitive {
			hide(m, field)
			return true
		}
		err = redactField(field, value)
		return err == nil
	})
	return err
}

func redactPacked(packed *anypb.Any) error {
	if packed.GetTypeUrl() == "" {
		return nil
	}
	inner, err := packed.UnmarshalNew()
	if err != nil {
		return fmt.Errorf("reading %s: %w", packed.GetTypeUrl(), err)
	}
	if err := redact(inner.ProtoReflect()); err != nil {
		return err
	}
	if packed.Value, err = (proto.MarshalOptions{Deterministic: true}).Marshal(inner); err != nil {
		return fmt.Errorf("writing %s: %w", packed.GetTypeUrl(), err)
	}
	return nil
}

// hide leaves a text that shows that there was a value, and nothing of it.
func hide(m protoreflect.Message, field protoreflect.FieldDescriptor) {
	if field.Kind() == protoreflect.StringKind && field.Cardinality() != protoreflect.Repeated {
		m.Set(field, protoreflect.ValueOfString(redacted))
		return
	}
	m.Clear(field)
}

func redactField(field protoreflect.FieldDescriptor, value protoreflect.Value) error {
	switch {
	case field.IsMap():
		if field.MapValue().Message() == nil {
			return nil
		}
		var err error
		value.Map().Range(func(_ protoreflect.MapKey, v protoreflect.Value) bool {
			err = redact(v.Message())
			return err == nil
		})
		return err
	case field.Message() == nil:
		return nil
	case field.IsList():
		for i := range value.List().Len() {
			if err := redact(value.List().Get(i).Message()); err != nil {
				return err
			}
		}
		return nil
	}
	return redact(value.Message())
}
