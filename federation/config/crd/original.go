package crd

import (
	"encoding/json"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/schema"
	"isthmus.dev/isthmus/internal/kube/listwatch"
)

// StatusManager is the field manager of what the hub writes into the status of objects.
const StatusManager = "isthmus-status"

// Original is an object as its cluster has it. It is never changed.
type Original struct {
	Cluster    federation.ClusterID
	Key        federation.ObjectKey // in its cluster: it names none
	Resource   apischema.GroupVersionResource
	UID        string
	Version    string // of the cluster
	Generation int64
	Status     map[string]any
	Ours       bool             // the hub wrote some of the status
	Manifest   []byte           // as configuration; nil: it never was valid
	Problems   []schema.Problem // why it is not valid
	Unknown    []schema.Problem // fields that the hub does not know
	Spec       map[string]any   // as the cluster has it, of one that is not valid; not to be changed
}

// Originals is notified of the objects whose status is written. Its methods are called under a lock:
// they return at once, and call nothing of the source.
type Originals interface {
	Read(o *Original)
	Deleted(cluster federation.ClusterID, key federation.ObjectKey)
}

// state is what is needed to write the status of an object.
type state struct {
	resource   apischema.GroupVersionResource
	generation int64
	status     map[string]any
	ours       bool
	spec       map[string]any // of an object that is not valid
	size       int64
}

func stateOf(resource apischema.GroupVersionResource, in *unstructured.Unstructured) *state {
	s := &state{resource: resource, generation: in.GetGeneration(), ours: IsOurs(in)}
	s.status, _, _ = unstructured.NestedMap(in.Object, "status") // a copy
	if text, err := json.Marshal(s.status); err == nil {
		s.size = 2 * int64(len(text))
	}
	return s
}

// refused keeps the spec of an object that is not valid: status says where it would belong.
func (s *state) refused(in *unstructured.Unstructured) {
	s.spec, _, _ = unstructured.NestedMap(in.Object, "spec") // a copy
	if text, err := json.Marshal(s.spec); err == nil {
		s.size += 2 * int64(len(text))
	}
}

// IsOurs reports whether the hub wrote some of the status of the object.
func IsOurs(in *unstructured.Unstructured) bool {
	for _, f := range in.GetManagedFields() {
		if f.Manager == StatusManager && f.Subresource == "status" {
			return true
		}
	}
	return false
}

// report reports an object; the caller holds mu.
func (s *Source) report(c *cluster, p place, i *item) {
	if s.o.Originals == nil || i == nil || i.state == nil {
		return
	}
	o := &Original{
		Cluster: c.id, Key: keyOf(p.kind, i.at), Resource: i.state.resource, UID: string(i.uid), Version: i.version,
		Generation: i.state.generation, Status: i.state.status, Ours: i.state.ours, Problems: i.problems,
		Unknown: i.unknown, Spec: i.state.spec,
	}
	if i.object != nil {
		o.Manifest = i.object.Manifest
	}
	s.o.Originals.Read(o)
}

// reportDeleted reports that an object was deleted; the caller holds mu.
func (s *Source) reportDeleted(c *cluster, p place, at listwatch.Key) {
	if s.o.Originals != nil {
		s.o.Originals.Deleted(c.id, keyOf(p.kind, at))
	}
}

// StatusTrouble replaces why status of the cluster's objects is not written, which is part of
// what is wrong with the source.
func (s *Source) StatusTrouble(id federation.ClusterID, problems []config.Problem) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.clusters[id]; c != nil && !slices.Equal(c.unwritten, problems) {
		c.unwritten, s.stale = slices.Clone(problems), true
		s.wake.Notify()
	}
}
