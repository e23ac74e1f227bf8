package check

import (
	"errors"
	"fmt"
	"math"
	"regexp/syntax"
	"strings"
	"sync"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
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

// walk finds the messages that have rules of their own; a part that is in several places
// is looked at once.
func (c schemaCheck) walk(m protoreflect.Message) error {
	if err := c.rule(m); err != nil {
		return err
	}
	return c.follow(m, waysFrom(m.Descriptor()))
}

// rule checks what the generated rules do not say of the message itself.
func (c schemaCheck) rule(m protoreflect.Message) error {
	if !hasRule(m.Descriptor().FullName()) {
		return nil
	}
	switch part := m.Interface().(type) {
	case *anypb.Any:
		return c.unpack(part)
	case *durationpb.Duration:
		if part.GetSeconds() > maxSeconds || part.GetSeconds() < 0 || part.GetNanos() < 0 {
			return fmt.Errorf("a duration of %d seconds and %d nanoseconds is less than nothing, or more than Envoy can count",
				part.GetSeconds(), part.GetNanos())
		}
	case *matcherv3.RegexMatcher:
		return validateExpression(part.GetRegex())
	case *routev3.WeightedCluster:
		return validateWeights(part)
	}
	return nil
}

// validateExpression demands RE2. Go's parser refuses \C, a single byte in RE2. It may be where \A may be.
func validateExpression(expression string) error {
	_, err := syntax.Parse(expression, syntax.Perl)
	var mistake *syntax.Error
	if errors.As(err, &mistake) && mistake.Expr == `\C` {
		_, err = syntax.Parse(strings.ReplaceAll(expression, `\C`, `\A`), syntax.Perl)
	}
	if err != nil {
		return fmt.Errorf("the regular expression %q is not RE2: %w", expression, err)
	}
	return nil
}

// validateWeights demands a sum by which requests can be shared.
func validateWeights(c *routev3.WeightedCluster) error {
	sum := uint64(0)
	for _, cluster := range c.GetClusters() {
		sum += uint64(cluster.GetWeight().GetValue())
	}
	if sum == 0 || sum > math.MaxUint32 {
		return fmt.Errorf("weighted_clusters: the weights add up to %d, which is not in 1 to 2³²−1", sum)
	}
	return nil
}

// hasRule reports whether messages of the type have rules beyond the generated ones.
func hasRule(name protoreflect.FullName) bool {
	switch name {
	case "google.protobuf.Any", "google.protobuf.Duration", "envoy.type.matcher.v3.RegexMatcher", "envoy.config.route.v3.WeightedCluster":
		return true
	}
	return false
}

func (c schemaCheck) follow(m protoreflect.Message, ways []protoreflect.FieldDescriptor) error {
	if len(ways) == 0 {
		return nil
	}
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

// waysFrom are the fields by which messages with rules of their own can be reached;
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
	if hasRule(d.FullName()) {
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
