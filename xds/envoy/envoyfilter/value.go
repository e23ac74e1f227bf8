package envoyfilter

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	typev3 "github.com/cncf/xds/go/xds/type/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"

	"isthmus.dev/isthmus/internal/text"
)

// maxValue bounds the bytes of a value as JSON.
const maxValue = 256 << 10

// readValue makes the value of a patch a new message of the type. Extensions that the hub is
// not built with stay as they are written: a TypedStruct, which Envoy reads (ADR 136).
func readValue(value *structpb.Struct, of proto.Message) (proto.Message, error) {
	if err := forbidden("value", value); err != nil {
		return nil, err
	}
	wrapped, ok := wrap(structpb.NewStructValue(value)).GetKind().(*structpb.Value_StructValue)
	if !ok {
		return nil, fmt.Errorf("the value is not an object")
	}
	encoded, err := protojson.Marshal(wrapped.StructValue)
	if err != nil {
		return nil, fmt.Errorf("the value has a number that JSON does not have: remove it")
	}
	if len(encoded) > maxValue {
		return nil, fmt.Errorf("the value has %d bytes, at most %d are used", len(encoded), maxValue)
	}
	m := of.ProtoReflect().New().Interface()
	if err := protojson.Unmarshal(encoded, m); err != nil {
		return nil, fmt.Errorf("the value is no %s: %s", m.ProtoReflect().Descriptor().FullName(), text.OfProtoJSON(err))
	}
	return m, nil
}

// typeURLs begin those of packed messages.
const typeURLs = "type.googleapis.com/"

// typedStructs are the names of messages that hold another one as it is written.
var typedStructs = []string{"xds.type.v3.TypedStruct", "udpa.type.v1.TypedStruct"}

// wrap returns the value with each packed message of an unknown type as a TypedStruct, and each
// TypedStruct of a known type as that type, so that patches can be merged.
func wrap(v *structpb.Value) *structpb.Value {
	switch kind := v.GetKind().(type) {
	case *structpb.Value_StructValue:
		return wrapObject(kind.StructValue)
	case *structpb.Value_ListValue:
		list := &structpb.ListValue{}
		for _, item := range kind.ListValue.GetValues() {
			list.Values = append(list.Values, wrap(item))
		}
		return structpb.NewListValue(list)
	}
	return v
}

func wrapObject(s *structpb.Struct) *structpb.Value {
	url := s.GetFields()["@type"].GetStringValue()
	if slices.Contains(typedStructs, nameIn(url)) {
		inner := &structpb.Struct{Fields: maps.Clone(s.GetFields()["value"].GetStructValue().GetFields())}
		if inner.Fields == nil {
			inner.Fields = map[string]*structpb.Value{}
		}
		inner.Fields["@type"] = structpb.NewStringValue(innerType(s))
		return wrapPacked(inner)
	}
	if url != "" {
		return wrapPacked(s)
	}
	return inside(s)
}

// innerType is the type in a TypedStruct.
func innerType(s *structpb.Struct) string {
	if url := s.GetFields()["type_url"].GetStringValue(); url != "" {
		return url
	}
	return s.GetFields()["typeUrl"].GetStringValue()
}

// wrapPacked returns a packed message, with its type and fields.
func wrapPacked(s *structpb.Struct) *structpb.Value {
	url := s.GetFields()["@type"].GetStringValue()
	if _, err := protoregistry.GlobalTypes.FindMessageByURL(url); err == nil {
		return inside(s)
	}
	fields := maps.Clone(s.GetFields())
	delete(fields, "@type")
	return structpb.NewStructValue(&structpb.Struct{Fields: map[string]*structpb.Value{
		"@type":   structpb.NewStringValue(typeURLs + string((&typev3.TypedStruct{}).ProtoReflect().Descriptor().FullName())),
		"typeUrl": structpb.NewStringValue(url),
		"value":   structpb.NewStructValue(&structpb.Struct{Fields: fields}),
	}})
}

// inside wraps what the fields of an object have.
func inside(s *structpb.Struct) *structpb.Value {
	fields := make(map[string]*structpb.Value, len(s.GetFields()))
	for name, field := range s.GetFields() {
		fields[name] = wrap(field)
	}
	return structpb.NewStructValue(&structpb.Struct{Fields: fields})
}

// nameIn is the name of the message in the URL of a type.
func nameIn(url string) string { return url[strings.LastIndexByte(url, '/')+1:] }

// typeOf is the name of the packed message, also of one that is in a TypedStruct.
func typeOf(packed *anypb.Any) string {
	typed := &typev3.TypedStruct{}
	if packed.MessageIs(typed) && packed.UnmarshalTo(typed) == nil {
		return nameIn(typed.GetTypeUrl())
	}
	return string(packed.MessageName())
}

// files are fields by which a proxy would read a file or its environment, and hand on what is in it.
var files = map[string]string{
	"filename": "a file of the proxy", "environmentvariable": "the environment of the proxy", "pathconfigsource": "a file of the proxy",
}

// sources are fields whose path is that of a file with configuration.
var sources = []string{"configsource", "edsconfig", "sdsconfig", "cdsconfig", "ldsconfig", "rdsconfig"}

// forbidden reports what a value must not have (ADR 136), wherever it is and however it is
// written.
func forbidden(at string, s *structpb.Struct) error {
	for _, name := range slices.Sorted(maps.Keys(s.GetFields())) {
		here := at + "." + name
		plain := plainName(name)
		if what, is := files[plain]; is {
			return fmt.Errorf("%s: reading %s is not allowed: write the content inline", here, what)
		}
		if plain == "path" && slices.Contains(sources, plainName(at[strings.LastIndexByte(at, '.')+1:])) {
			return fmt.Errorf("%s: reading a file of the proxy is not allowed", here)
		}
		if err := forbiddenIn(here, s.GetFields()[name]); err != nil {
			return err
		}
	}
	return nil
}

func forbiddenIn(at string, v *structpb.Value) error {
	if inner := v.GetStructValue(); inner != nil {
		return forbidden(at, inner)
	}
	for _, item := range v.GetListValue().GetValues() {
		if err := forbiddenIn(at, item); err != nil {
			return err
		}
	}
	return nil
}

func plainName(field string) string { return strings.ToLower(strings.ReplaceAll(field, "_", "")) }
