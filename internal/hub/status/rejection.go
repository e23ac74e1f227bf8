package status

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protopath"
	"google.golang.org/protobuf/reflect/protorange"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/apply"
	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/xds/envoy/supported"
)

// rejectedByProxy is the code of findings about what proxies refuse.
const rejectedByProxy = "REJECTED_BY_PROXY"

// shownRejections is how many proxies a finding names.
const shownRejections = 3

// rejection is what proxies reject of an object, and why; field is the part of the object, if it is known.
type rejection struct{ part, text, field string }

// derivedFrom are the objects that the hub derived of the object.
func derivedFrom(r *federation.Reader, key federation.ObjectKey) (found []federation.ObjectKey) {
	if !supported.Derives(key.Of()) {
		return nil
	}
	for _, of := range []federation.Kind{federation.GatewayKind, federation.VirtualServiceKind} {
		for o := range r.Objects().Of(of) {
			if o.Origin.Has(key) {
				found = append(found, o.Key)
			}
		}
	}
	return found
}

// fieldOf is the field of the object of which the derived one is made.
func fieldOf(r *federation.Reader, key, derived federation.ObjectKey) string {
	if o, exists := r.Object(derived); exists && o.Origin.Key == key {
		return o.Origin.Field
	}
	return ""
}

// others are the objects that people wrote of which something is made besides the object.
func others(r *federation.Reader, key federation.ObjectKey, of []federation.ObjectKey) (found []federation.ObjectKey) {
	for _, made := range of {
		if o, exists := r.Object(made); exists {
			found = append(append(found, o.Subject()), o.Origin.Parts...)
		}
	}
	slices.SortFunc(found, federation.ObjectKey.Compare)
	return slices.DeleteFunc(slices.Compact(found), func(other federation.ObjectKey) bool { return other == key })
}

// rejections say which proxies reject what was made from the object, and why: one finding
// for each part and error.
func (s *Objects) rejections(of reading, proxies *fleet.Value, key federation.ObjectKey) []apply.Finding {
	if !proxies.Refused() {
		return nil // as nearly always: who gets what of the object need not be found out
	}
	nodes, with := map[rejection][]string{}, map[rejection][]federation.ObjectKey{}
	for _, made := range append(derivedFrom(of.Reader, key), key) {
		affected := s.Proxies.Object(of.snapshot, proxies, made)
		if affected.Refused == 0 {
			continue
		}
		field := fieldOf(of.Reader, key, made)
		for p := range affected.Proxies() {
			if p.State == fleet.Rejected && !p.Searching {
				one := rejection{p.Part, p.Error, field}
				if _, known := with[one]; !known {
					with[one] = others(of.Reader, key, p.Objects)
				}
				nodes[one] = append(nodes[one], p.NodeID)
			}
		}
	}
	var found []apply.Finding
	for _, one := range slices.SortedFunc(maps.Keys(nodes),
		func(a, b rejection) int {
			return cmp.Or(cmp.Compare(a.part, b.part), cmp.Compare(a.text, b.text), cmp.Compare(a.field, b.field))
		}) {
		found = append(found, apply.Finding{
			Code: rejectedByProxy, Severity: apply.Warning, Key: key, Message: one.message(nodes[one], with[one]),
			Field: cmp.Or(one.field, fieldSaid(of.Reader, key, one.text)), Related: with[one],
		})
	}
	return found
}

func (r rejection) message(nodes []string, with []federation.ObjectKey) string {
	names := strings.Join(nodes[:min(len(nodes), shownRejections)], ", ")
	if more := len(nodes) - shownRejections; more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	part := cmp.Or(r.part, "the configuration")
	from, correct := "this object", "the object"
	if len(with) > 0 {
		from, correct = "this object and others", "the object that the proxy's words are about"
	}
	return fmt.Sprintf("%s rejected %s, made from %s: %q; the last accepted form stays in use; correct %s",
		names, part, from, r.text, correct)
}

// fieldSaid is the field of the object whose value the text repeats; empty if none or
// several could be meant. Only values that cannot be words of a sentence count.
func fieldSaid(r *federation.Reader, key federation.ObjectKey, text string) string {
	o, ok := r.Object(key)
	if !ok {
		return ""
	}
	spec := o.Spec
	if spec == nil && o.Decode != nil {
		spec = o.Decode()
	}
	m, ok := spec.(proto.Message)
	if !ok {
		return ""
	}
	longest, field := 0, ""
	_ = protorange.Range(m.ProtoReflect(), func(at protopath.Values) error { // fails only if the function does
		value, _ := at.Index(-1).Value.Interface().(string)
		weight := len(value)
		if strings.HasPrefix(value, "/") && strings.Count(value, "/") > 1 {
			weight += heavier // the name of a resource repeats the host, whatever is wrong; a file is named because of it
		}
		switch {
		case weight < longest || !strings.ContainsAny(value, `/\.*-_:{}[]()+?$%=`) || !strings.Contains(text, value):
		case weight == longest:
			field = ""
		default:
			longest, field = weight, fieldAt(at.Path)
		}
		return nil
	})
	return field
}

// heavier than the length of any host.
const heavier = 1 << 10

// fieldAt is the path as findings name fields.
func fieldAt(path protopath.Path) string {
	at := "spec"
	for _, step := range path {
		switch step.Kind() {
		case protopath.FieldAccessStep:
			at += "." + step.FieldDescriptor().JSONName()
		case protopath.ListIndexStep:
			at += fmt.Sprintf("[%d]", step.ListIndex())
		case protopath.MapIndexStep:
			at += "[" + step.MapIndex().String() + "]"
		}
	}
	return at
}
