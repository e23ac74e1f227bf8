package envoy_test

import (
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy"
)

func ruleObject(rule *networking.DestinationRule) *federation.Object {
	return &federation.Object{Key: federation.ObjectKey{
		Group: "networking.istio.io", Kind: "DestinationRule",
		Namespace: "shop", Name: "n",
	}, Spec: rule}
}

// TLS that is not available is reported wherever a rule asks for it.
func TestTLSThatCannotBeHadIsReported(t *testing.T) {
	none := &networking.TrafficPolicy{Tls: &networking.ClientTLSSettings{Mode: networking.ClientTLSSettings_MUTUAL}}
	rule := &networking.DestinationRule{
		Host: "web", TrafficPolicy: proto.CloneOf(none),
		Subsets: []*networking.Subset{{Name: "v1"}, {Name: "v2", TrafficPolicy: none}},
	}
	rule.TrafficPolicy.PortLevelSettings = []*networking.TrafficPolicy_PortTrafficPolicy{
		{Tls: &networking.ClientTLSSettings{Mode: networking.ClientTLSSettings_SIMPLE}},
		{Tls: &networking.ClientTLSSettings{Mode: networking.ClientTLSSettings_MUTUAL}},
	}
	var got []string
	for _, f := range envoy.NotHonoured(ruleObject(rule)) {
		got = append(got, f.Path)
	}
	want := []string{"subsets[1].trafficPolicy.tls.mode", "trafficPolicy.portLevelSettings[1].tls.mode", "trafficPolicy.tls.mode"}
	if !slices.Equal(got, want) {
		t.Errorf("reported are %q, want %q", got, want)
	}
}

func TestSubsetsThatDifferByCaseAreReported(t *testing.T) {
	rule := &networking.DestinationRule{Host: "web", Subsets: []*networking.Subset{{Name: "v1"}, {Name: "v2"}, {Name: "V1"}}}
	if got := envoy.NotHonoured(ruleObject(rule)); len(got) != 1 || got[0].Path != "subsets[2].name" {
		t.Errorf("reported are %+v", got)
	}
}

// Every field is listed as supported or not.
func TestEveryFieldOfARuleIsKnown(t *testing.T) {
	for oneof := range 4 {
		rule := &networking.DestinationRule{}
		fill(rule.ProtoReflect(), oneof, 0)
		for _, f := range envoy.NotHonoured(ruleObject(rule)) {
			if f.Reason == "this field is not compiled yet" {
				t.Errorf("nothing is known of %s", f.Path)
			}
		}
	}
}

// fill says something in every field; of those that exclude each other, in the
// one of that number.
func fill(m protoreflect.Message, oneof, depth int) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		if group := f.ContainingOneof(); group != nil && !group.IsSynthetic() && group.Fields().Get(oneof%group.Fields().Len()) != f {
			continue
		}
		switch {
		case depth > 8 || f.IsMap():
		case f.IsList() && f.Message() != nil:
			fill(m.Mutable(f).List().AppendMutable().Message(), oneof, depth+1)
		case f.IsList():
			list := m.Mutable(f).List()
			list.Append(list.NewElement())
		case f.Message() != nil:
			fill(m.Mutable(f).Message(), oneof, depth+1)
		case f.Kind() == protoreflect.StringKind:
			m.Set(f, protoreflect.ValueOfString("x"))
		case f.Kind() == protoreflect.BoolKind:
			m.Set(f, protoreflect.ValueOfBool(true))
		case f.Kind() == protoreflect.EnumKind:
			m.Set(f, protoreflect.ValueOfEnum(1))
		default:
			set(m, f)
		}
	}
}

func set(m protoreflect.Message, f protoreflect.FieldDescriptor) {
	switch f.Kind() {
	case protoreflect.Int32Kind:
		m.Set(f, protoreflect.ValueOfInt32(1))
	case protoreflect.Uint32Kind:
		m.Set(f, protoreflect.ValueOfUint32(1))
	case protoreflect.Int64Kind:
		m.Set(f, protoreflect.ValueOfInt64(1))
	case protoreflect.Uint64Kind:
		m.Set(f, protoreflect.ValueOfUint64(1))
	case protoreflect.DoubleKind:
		m.Set(f, protoreflect.ValueOfFloat64(1))
	}
}
