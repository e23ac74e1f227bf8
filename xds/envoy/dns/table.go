package dns

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"isthmus.dev/isthmus/xds/envoy/facet"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

// Table is what Istio's agent answers from: a NameTable with the addresses of each name.
// The agent reads the rest of it, which completes short names, only of registries that it
// knows; callers complete names by the search list of their own system.
func Table(v *facet.View, name string) proto.Message {
	if name != resource.NameTable {
		return nil
	}
	table := nameTable.New()
	entries := table.Mutable(tableField).Map()
	for _, n := range knownNames(v) {
		info := entries.NewValue()
		addresses := info.Message().Mutable(addressesField).List()
		for _, a := range n.addresses {
			addresses.Append(protoreflect.ValueOfString(a))
		}
		entries.Set(protoreflect.ValueOfString(n.name).MapKey(), info)
	}
	return table.Interface()
}

// The message, which no library has outside of Istio's own program. Its numbers are those
// of Istio's nds.proto.
var (
	nameTable      = newNameTable()
	tableField     = nameTable.Descriptor().Fields().ByNumber(1)
	addressesField = tableField.MapValue().Message().Fields().ByNumber(1)
)

func newNameTable() protoreflect.MessageType {
	field := func(name string, number int32, kind descriptorpb.FieldDescriptorProto_Type, label descriptorpb.FieldDescriptorProto_Label,
		message string,
	) *descriptorpb.FieldDescriptorProto {
		f := &descriptorpb.FieldDescriptorProto{Name: &name, Number: &number, Type: &kind, Label: &label}
		if message != "" {
			f.TypeName = &message
		}
		return f
	}
	const (
		text     = descriptorpb.FieldDescriptorProto_TYPE_STRING
		message  = descriptorpb.FieldDescriptorProto_TYPE_MESSAGE
		one      = descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL
		repeated = descriptorpb.FieldDescriptorProto_LABEL_REPEATED
		prefix   = ".istio.networking.nds.v1.NameTable."
	)
	file, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{
		Name: proto.String("dns/proto/nds.proto"), Package: proto.String("istio.networking.nds.v1"), Syntax: proto.String("proto3"),
		MessageType: []*descriptorpb.DescriptorProto{{
			Name:  proto.String("NameTable"),
			Field: []*descriptorpb.FieldDescriptorProto{field("table", 1, message, repeated, prefix+"TableEntry")},
			NestedType: []*descriptorpb.DescriptorProto{{
				Name: proto.String("NameInfo"),
				Field: []*descriptorpb.FieldDescriptorProto{
					field("ips", 1, text, repeated, ""), field("registry", 2, text, one, ""),
					field("shortname", 3, text, one, ""), field("namespace", 4, text, one, ""),
				},
			}, {
				Name:    proto.String("TableEntry"),
				Field:   []*descriptorpb.FieldDescriptorProto{field("key", 1, text, one, ""), field("value", 2, message, one, prefix+"NameInfo")},
				Options: &descriptorpb.MessageOptions{MapEntry: proto.Bool(true)},
			}},
		}},
	}, nil)
	if err != nil {
		panic(err) // of the text above
	}
	found := dynamicpb.NewMessageType(file.Messages().Get(0))
	if err := protoregistry.GlobalTypes.RegisterMessage(found); err != nil {
		panic(err) // another message has the name
	}
	return found
}
