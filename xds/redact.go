package xds

import (
	"fmt"

	"github.com/cncf/xds/go/udpa/annotations"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protopath"
	"google.golang.org/protobuf/reflect/protorange"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"
)

const redacted = "[redacted]"

// redact takes out of the message, and of those that it packs, the fields that Envoy's
// API marks as sensitive, as Envoy's own config dump does.
func redact(m protoreflect.Message) error {
	return protorange.Range(m, func(at protopath.Values) error {
		step := at.Index(-1).Step
		if step.Kind() != protopath.FieldAccessStep {
			return nil
		}
		of, field := at.Index(-2).Value.Message(), step.FieldDescriptor()
		if packed, is := of.Interface().(*anypb.Any); is { // one that could be unpacked has no fields here
			return fmt.Errorf("reading %s: it is not a message of that type, or the type is not known", packed.GetTypeUrl())
		}
		if sensitive, _ := proto.GetExtension(field.Options(), annotations.E_Sensitive).(bool); sensitive {
			hide(of, field)
		}
		return nil
	})
}

// hide leaves a text that shows that there was a value, and nothing of it.
func hide(m protoreflect.Message, field protoreflect.FieldDescriptor) {
	if field.Kind() == protoreflect.StringKind && field.Cardinality() != protoreflect.Repeated {
		m.Set(field, protoreflect.ValueOfString(redacted))
		return
	}
	m.Clear(field)
}
