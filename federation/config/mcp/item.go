package mcp

import (
	"crypto/sha256"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	mcpapi "istio.io/api/mcp/v1alpha1"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
)

// item is an object as it was read. It is never changed.
type item struct {
	sum         [sha256.Size]byte // of what came
	wireVersion string            // of the resource, as delta xDS resumes with it
	version     string            // of the object
	created     time.Time
	object      *config.Object // nil: not valid, and never was
	problems    []config.Problem
}

// itemOverhead is about what an item takes beside its manifest, which is kept as text and
// decoded.
const itemOverhead = 512

func (i *item) usage() federation.Usage {
	if i == nil {
		return federation.Usage{}
	}
	n := int64(itemOverhead)
	if i.object != nil {
		n += 2 * int64(len(i.object.Manifest))
	}
	return federation.Usage{Objects: 1, Bytes: n}
}

// normal is the name of a namespaced object without a leading slash.
func normal(name string) string { return strings.TrimPrefix(name, "/") }

// read reads the objects of an answer. Those of this hub itself, and those without a body,
// are nil.
func (s *Source) read(t *table, a *answer) (found map[string]*item, unnamed []config.Problem) {
	found = make(map[string]*item, len(a.resources))
	for n, r := range a.resources {
		m := &mcpapi.Resource{}
		err := proto.Unmarshal(r.value, m)
		name := normal(m.GetMetadata().GetName())
		if err == nil {
			err = checkName(name)
		}
		if err != nil {
			unnamed = append(unnamed, config.Problem{
				Code: codeUndecodable, Object: t.url,
				Message: message("resource %d of the answer is excluded: %v", n, err),
			})
			continue
		}
		if s.o.Origin != "" && m.GetMetadata().GetAnnotations()[OriginAnnotation] == s.o.Origin || m.GetBody() == nil {
			found[name] = nil
			continue
		}
		i := s.item(t, name, r, m)
		if other := found[name]; other != nil && other.sum != i.sum {
			i = &item{problems: []config.Problem{{
				Code:    codeTwice,
				Message: "one answer of the server has several objects of this name, and none of them is used",
			}}}
			if old := t.items[name]; old != nil {
				i.object, i.version, i.created = old.object, old.version, old.created
			}
		}
		found[name] = i
	}
	return found, unnamed
}

// mostName bounds a name and a version in bytes, which are kept and shown. Kubernetes has
// names of 317.
const mostName = 512

func checkName(name string) error {
	if len(name) > mostName {
		return fmt.Errorf("its name has %d bytes, and the limit is %d", len(name), mostName)
	}
	namespace, short, two := strings.Cut(name, "/")
	if !two || namespace == "" || short == "" || strings.Contains(short, "/") {
		return fmt.Errorf("its name is %.200q, not NAMESPACE/NAME", name)
	}
	return nil
}

// item reads one object. The last valid form of one that is not valid stays, and so does
// the newer form of one that comes back older.
func (s *Source) item(t *table, name string, r resource, m *mcpapi.Resource) *item {
	old, sum := t.items[name], sha256.Sum256(r.value)
	if old != nil && old.sum == sum && old.wireVersion == r.version {
		return old
	}
	i := &item{sum: sum, wireVersion: r.version, version: m.GetMetadata().GetVersion(), created: m.GetMetadata().GetCreateTime().AsTime()}
	switch longest := max(len(i.version), len(i.wireVersion)); {
	case longest > mostName:
		i.version, i.wireVersion = "", ""
		i.problems = []config.Problem{{
			Code:    codeLarge,
			Message: fmt.Sprintf("the object has a version of %d bytes, and the limit is %d", longest, mostName),
		}}
	case len(r.value) > s.o.Object:
		i.problems = []config.Problem{{Code: codeLarge, Message: fmt.Sprintf("the object has %d bytes, and the limit is %d",
			len(r.value), s.o.Object)}}
	case old != nil && old.object != nil && older(i, old):
		i.version, i.created, i.object = old.version, old.created, old.object
		i.problems = []config.Problem{{Code: codeBackwards, Message: message(
			"the server had version %s of this object and now has version %s; delete it on the server and create it again, or restart the hub",
			old.version, m.GetMetadata().GetVersion())}}
		return i
	default:
		i.object, i.problems = s.admit(t, name, m)
	}
	if i.object == nil && old != nil {
		i.object = old.object
	}
	return i
}

// older reports whether the object went back in time. Only versions that are numbers have
// an order, and only those of one object that was not created again.
func older(now, before *item) bool {
	a, errA := strconv.ParseUint(now.version, 10, 64)
	b, errB := strconv.ParseUint(before.version, 10, 64)
	return errA == nil && errB == nil && a < b && now.created.Equal(before.created)
}

// admit makes an object of the resource, validates it and fills in its defaults.
func (s *Source) admit(t *table, name string, m *mcpapi.Resource) (object *config.Object, problems []config.Problem) {
	key := t.keyOf(name)
	defer func() {
		if cause := recover(); cause != nil {
			s.o.Logger.Error("the hub panicked over an object of a configuration server",
				slog.String("object", key.Title()), slog.Any("panic", cause), slog.String("stack", string(debug.Stack())))
			object, problems = nil, []config.Problem{{Code: federation.CodeHubFault, Message: message(
				"the hub cannot read this object, which is a fault of the hub; report it with the stack in the hub's log (%.200v)", cause)}}
		}
	}()
	spec, err := m.GetBody().UnmarshalNew()
	if err == nil && string(spec.ProtoReflect().Descriptor().Name()) != t.kind.Name {
		err = fmt.Errorf("its body is a %s", spec.ProtoReflect().Descriptor().FullName())
	}
	var plain any
	if err == nil {
		plain, err = plainJSON(spec)
	}
	if err != nil {
		return nil, []config.Problem{{Code: codeUndecodable, Message: message("it is not a %s: %v", t.kind.Name, err)}}
	}
	admitted, refused := s.o.Schema.Admit(map[string]any{
		"apiVersion": t.kind.APIVersion(), "kind": t.kind.Name, "spec": plain,
		"metadata": metadataOf(key, m.GetMetadata()),
	})
	for _, p := range refused {
		problems = append(problems, config.Problem{Code: string(p.Code), Field: p.Field, Message: cut(p.Message)})
	}
	if len(refused) > 0 {
		return nil, problems
	}
	if metadata, has := admitted.Object["metadata"].(map[string]any); has {
		metadata["uid"] = config.UIDOf("mcp", key)
		if created := m.GetMetadata().GetCreateTime(); created.IsValid() {
			metadata["creationTimestamp"] = created.AsTime().UTC().Format(time.RFC3339)
		}
	}
	object, err = config.NewObject(key, t.kind.APIVersion(), admitted)
	if err != nil {
		return nil, []config.Problem{{Code: codeUndecodable, Message: cut(err.Error())}}
	}
	return object, nil
}

func metadataOf(key federation.ObjectKey, m *mcpapi.Metadata) map[string]any {
	metadata := map[string]any{"namespace": key.Namespace, "name": key.Name}
	for field, values := range map[string]map[string]string{"labels": m.GetLabels(), "annotations": m.GetAnnotations()} {
		if len(values) > 0 {
			of := map[string]any{}
			for k, v := range values {
				of[k] = v
			}
			metadata[field] = of
		}
	}
	return metadata
}

// plainJSON is the message as Kubernetes writes it: protobuf's JSON writes 64-bit numbers
// as text, and the schemas of Istio's kinds want numbers.
func plainJSON(m proto.Message) (any, error) {
	data, err := protojson.Marshal(m)
	if err != nil {
		return nil, err
	}
	value := map[string]any{}
	if err := utiljson.Unmarshal(data, &value); err != nil {
		return nil, err
	}
	numbers(m.ProtoReflect(), value)
	return value, nil
}

func numbers(m protoreflect.Message, value any) {
	object, is := value.(map[string]any)
	if !is {
		return
	}
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		name := f.JSONName()
		switch {
		case f.IsMap():
			if f.MapValue().Message() != nil {
				of, _ := object[name].(map[string]any)
				v.Map().Range(func(k protoreflect.MapKey, v protoreflect.Value) bool {
					numbers(v.Message(), of[k.String()])
					return true
				})
			}
		case f.IsList():
			if f.Message() != nil {
				all, _ := object[name].([]any)
				for i := range min(v.List().Len(), len(all)) {
					numbers(v.List().Get(i).Message(), all[i])
				}
			}
		case f.Message() != nil:
			numbers(v.Message(), object[name])
		case f.Kind() == protoreflect.Uint64Kind || f.Kind() == protoreflect.Int64Kind:
			if n, err := strconv.ParseInt(fmt.Sprint(object[name]), 10, 64); err == nil {
				object[name] = n
			}
		}
		return true
	})
}
