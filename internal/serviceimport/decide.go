package serviceimport

import (
	"encoding/json"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/kube/listwatch"
)

var resource = schema.GroupVersionResource{Group: federation.ServiceImportKind.Group, Version: "v1beta1", Resource: "serviceimports"}

const (
	// mark is the annotation of the ServiceImports that the hub made.
	mark = federation.MeshGroup + "/service-import"
	// managedBy is the label by which people find them.
	managedBy = "app.kubernetes.io/managed-by"
)

// found is a ServiceImport as it is.
type found struct {
	at           listwatch.Key
	uid, version string
	ours, ending bool
	digest       string   // of the Spec
	clusters     []string // of the status, in order
}

func (f found) key() listwatch.Key { return f.at }

func (f found) size() int64 {
	return int64(256 + len(f.at.Namespace) + len(f.at.Name) + 32*len(f.clusters))
}

// read reads what the hub needs of a ServiceImport. One that it cannot read differs from all
// that it would write.
func read(in *unstructured.Unstructured) found {
	f := found{
		at: listwatch.Key{Namespace: in.GetNamespace(), Name: in.GetName()}, uid: string(in.GetUID()), version: in.GetResourceVersion(),
		ours: in.GetAnnotations()[mark] != "", ending: in.GetDeletionTimestamp() != nil,
	}
	var object struct {
		Spec   Spec
		Status struct{ Clusters []struct{ Cluster string } }
	}
	text, err := json.Marshal(in.Object)
	if err == nil {
		err = json.Unmarshal(text, &object)
	}
	if err != nil {
		return f
	}
	f.digest = object.Spec.digest()
	for _, c := range object.Status.Clusters {
		f.clusters = append(f.clusters, c.Cluster)
	}
	slices.Sort(f.clusters)
	return f
}

// importsOf is how the ServiceImports of a cluster are read.
func importsOf(cluster *listwatch.Cluster) listwatch.Resource[found] {
	r := listwatch.Of(resource.Resource, cluster.Dynamic().Resource(resource), read, found.size)
	r.Reconcile = true
	return r
}

// action is what is to be done about a ServiceImport.
type action int

const (
	nothing action = iota
	create
	update
	status // its list of clusters alone
	remove
	leave // the service is exported, but somebody else made the ServiceImport
)

// decide says what to do so that the cluster has the import; nil: the service is not exported.
// One namespace means the same in all clusters; a cluster without it gets nothing.
func decide(want *Import, f found, has, namespace bool) action {
	switch {
	case f.ending:
		return nothing
	case has && !f.ours && want != nil:
		return leave
	case has && !f.ours, !has && (want == nil || !namespace):
		return nothing
	case want == nil:
		return remove
	case !has:
		return create
	case f.digest != want.Spec.digest():
		return update
	case !slices.Equal(f.clusters, want.Clusters):
		return status
	}
	return nothing
}
