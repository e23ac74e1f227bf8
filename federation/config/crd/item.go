package crd

import (
	"fmt"
	"log/slog"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/kind"
	"isthmus.dev/isthmus/federation/config/schema"
	"isthmus.dev/isthmus/internal/kube/listwatch"
)

// item is an object as it was read. It is never changed.
type item struct {
	at       listwatch.Key
	uid      types.UID
	version  string         // of the cluster; an object that has it again is the same
	object   *config.Object // nil: not valid, and never was; or without problems: of no use
	problems []schema.Problem
	unknown  []schema.Problem // fields without an effect; the hub does not know them
	state    *state           // nil: its status is not written
}

// itemOverhead is about what an item takes beside its manifest, which is kept as text and
// decoded.
const itemOverhead = 512

func (i *item) size() int64 {
	n := int64(itemOverhead + len(i.at.Namespace) + len(i.at.Name))
	if i.object != nil {
		n += 2 * int64(len(i.object.Manifest))
	}
	if i.state != nil {
		n += i.state.size
	}
	return n
}

// keyOf is the key under which an object is stored in its cluster, and under which it is configuration
// if it is for all proxies.
func keyOf(kind federation.Kind, at listwatch.Key) federation.ObjectKey {
	return federation.ObjectKey{Group: kind.Group, Kind: kind.Name, Namespace: at.Namespace, Name: at.Name}
}

// item reads an object of a kind.
func (s *Source) item(kind schema.Kind, in *unstructured.Unstructured) *item {
	i := &item{at: listwatch.Key{Namespace: in.GetNamespace(), Name: in.GetName()}, uid: in.GetUID(), version: in.GetResourceVersion()}
	i.object, i.unknown, i.problems = s.admit(kind, i.at, in)
	return i
}

// isFaulty reports whether there is something to say about the object.
func (i *item) isFaulty() bool { return len(i.problems)+len(i.unknown) > 0 }

// admit validates an object and fills in its defaults. Of what the cluster wrote into its
// metadata, it keeps uid and creationTimestamp, and of the status what has a meaning: the rest changes
// without a change of what the object means.
func (s *Source) admit(of schema.Kind, at listwatch.Key, in *unstructured.Unstructured) (
	object *config.Object, unknown, problems []schema.Problem,
) {
	from, _ := in.Object["metadata"].(map[string]any)
	wanted := maps.Clone(in.Object)
	wanted["metadata"] = maps.Clone(from)
	admitted, refused := s.o.Schema.Admit(wanted)
	if len(refused) > 0 || admitted.Object == nil {
		return nil, nil, refused
	}
	metadata, _ := admitted.Object["metadata"].(map[string]any)
	for _, field := range []string{"uid", "creationTimestamp"} {
		if set, has := from[field]; has {
			metadata[field] = set
		}
	}
	if status := kind.KeptStatus(of.Kind, in.GetAnnotations(), in.Object["status"]); status != nil {
		admitted.Object["status"] = status
	}
	object, err := config.NewObject(keyOf(of.Kind, at), of.APIVersion(), admitted)
	if err != nil {
		return nil, nil, []schema.Problem{{Code: schema.Invalid, Message: err.Error()}}
	}
	return object, admitted.Unknown, nil
}

// fault is what is known of an object over which the hub panicked.
func (s *Source) fault(id federation.ClusterID, kind schema.Kind, at listwatch.Key, cause any, stack []byte) *item {
	s.o.Logger.Error("the hub panicked over a custom resource of a cluster", slog.String("cluster", string(id)),
		slog.String("object", keyOf(kind.Kind, at).Title()), slog.Any("panic", cause), slog.String("stack", string(stack)))
	return &item{at: at, problems: []schema.Problem{{
		Code: federation.CodeHubFault,
		Message: fmt.Sprintf("the hub cannot read this object, which is a fault of the hub; report it with the stack in the hub's log (%.200v)",
			cause),
	}}}
}
