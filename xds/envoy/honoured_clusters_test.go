package envoy_test

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"
	networking "istio.io/api/networking/v1"
	"sigs.k8s.io/yaml"

	"isthmus.dev/isthmus/xds/envoy"
)

func TestWhatARuleSaysInVainIsReported(t *testing.T) {
	json, err := yaml.YAMLToJSON([]byte(`
host: web.shop.svc.cluster.local
trafficPolicy:
  loadBalancer: {simple: RANDOM, localityLbSetting: {enabled: true}}
  tls: {mode: ISTIO_MUTUAL}
  proxyProtocol: {version: V2}
  portLevelSettings:
  - {port: {number: 80}, tls: {mode: SIMPLE}}
  - {port: {number: 81}, loadBalancer: {warmup: {duration: 10s}}}
subsets:
- {name: v1, labels: {version: v1}}
- {name: v2, trafficPolicy: {connectionPool: {http: {maxRetries: 3, http2KeepAlive: {interval: 1s}}}}}
`))
	if err != nil {
		t.Fatal(err)
	}
	rule := &networking.DestinationRule{}
	if err := protojson.Unmarshal(json, rule); err != nil {
		t.Fatal(err)
	}
	var fields []string
	for _, n := range envoy.NotHonouredDestinationRule(rule) {
		fields = append(fields, n.Field)
	}
	want := []string{
		"spec.trafficPolicy.loadBalancer.localityLbSetting", "spec.trafficPolicy.tls",
		"spec.trafficPolicy.portLevelSettings[1].loadBalancer.warmup", "spec.trafficPolicy.proxyProtocol",
		"spec.subsets[1].trafficPolicy.connectionPool.http.http2KeepAlive",
	}
	if got := strings.Join(fields, " "); got != strings.Join(want, " ") {
		t.Errorf("reported are %q, want %q", fields, want)
	}
}

// Of each field it is known whether it is honoured.
func TestEveryFieldOfARuleIsKnown(t *testing.T) {
	for oneof := range 4 {
		rule := &networking.DestinationRule{}
		fill(rule.ProtoReflect(), oneof, 0)
		for _, n := range envoy.NotHonouredDestinationRule(rule) {
			if strings.Contains(n.Reason, "not known") {
				t.Errorf("%s: %s", n.Field, n.Reason)
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
