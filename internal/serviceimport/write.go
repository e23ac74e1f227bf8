package serviceimport

import (
	"context"
	"errors"
	"log/slog"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/dynamic"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/kube/listwatch"
)

func title(key listwatch.Key) slog.Attr {
	return slog.String("object", "ServiceImport "+key.Namespace+"/"+key.Name)
}

// logForeign logs, once, that somebody else made the ServiceImport.
func (f *importWriter) logForeign(key listwatch.Key) {
	if !f.told[key] {
		f.told[key] = true
		f.log.Warn("a ServiceImport is not changed: the hub did not create it", title(key))
	}
}

// step is a kind of write of a ServiceImport.
type step struct {
	key  listwatch.Key
	todo action
}

// pause leaves a ServiceImport alone after it was written: until the hub sees it as it is now,
// and longer each time that the write fails or somebody undoes it.
func (f *importWriter) pause(at step, want *Import, err error) {
	key, wrote := at.key, ""
	if want != nil {
		wrote = want.digest()
	}
	undone := f.wrote[at] == wrote && want != nil
	f.wrote[at] = wrote
	if err == nil && !undone {
		f.pauses.Reset(key)
	}
	pause := f.pauses.Next(key)
	failed := failure(err)
	if failed == interrupted {
		return
	}
	f.options.count(f.id, failed)
	if failed != "" && failed != conflict {
		f.log.Warn("a ServiceImport cannot be written; the hub tries again", title(key), slog.Duration("retryIn", pause), slog.Any("err", err))
	}
}

const (
	// conflict is the failure of a write that came too late: somebody was faster.
	conflict = "conflict"
	// interrupted is a write that the hub canceled: it ends, or the cluster has to prove first
	// that it is the known one. Its status says so.
	interrupted = "interrupted"
)

// failure says why a write failed; empty: it did not.
func failure(err error) string {
	var answer apierrors.APIStatus
	switch {
	case err == nil:
		return ""
	case listwatch.Interrupted(err), errors.Is(err, context.Canceled):
		return interrupted
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err), apierrors.IsNotFound(err):
		return conflict
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return "forbidden"
	case errors.As(err, &answer):
		return "refused"
	}
	return "unreachable"
}

func (o Options) count(id federation.ClusterID, failed string) {
	switch {
	case o.Meter == nil:
	case failed == "":
		o.Meter.ImportWrote(id)
	default:
		o.Meter.ImportFailed(id, failed)
	}
}

// write does it, if the cluster is the known one and nobody else wrote meanwhile.
func (f *importWriter) write(ctx context.Context, key listwatch.Key, is found, todo action, want *Import) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return f.cluster.Write(ctx, func(ctx context.Context, client dynamic.Interface) error {
		on := client.Resource(resource).Namespace(key.Namespace)
		metadata := map[string]any{"uid": is.uid, "resourceVersion": is.version}
		switch todo {
		case create:
			object, err := manifest(key, want)
			if err == nil {
				_, err = on.Create(ctx, object, metav1.CreateOptions{})
			}
			return err
		case update:
			return patch(ctx, on, key.Name, map[string]any{"metadata": metadata, "spec": want.Spec})
		case status:
			return patch(ctx, on, key.Name, map[string]any{"metadata": metadata, "status": map[string]any{"clusters": clusters(want)}}, "status")
		case remove:
			uid := types.UID(is.uid)
			return on.Delete(ctx, key.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &is.version}})
		case nothing, leave:
		}
		return nil
	})
}

func patch(ctx context.Context, on dynamic.ResourceInterface, name string, what map[string]any, subresource ...string) error {
	text, err := json.Marshal(what)
	if err != nil {
		return err
	}
	_, err = on.Patch(ctx, name, types.MergePatchType, text, metav1.PatchOptions{}, subresource...)
	return err
}

// manifest is the ServiceImport as it is created.
func manifest(key listwatch.Key, want *Import) (*unstructured.Unstructured, error) {
	spec, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&want.Spec)
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": resource.GroupVersion().String(), "kind": federation.ServiceImportKind.Name, "spec": spec,
		"metadata": map[string]any{
			"name": key.Name, "namespace": key.Namespace,
			"labels": map[string]any{managedBy: "isthmus"}, "annotations": map[string]any{mark: "derived"},
		},
	}}, err
}

// clusters is the list of the status.
func clusters(want *Import) []any {
	list := []any{}
	for _, c := range want.Clusters {
		list = append(list, map[string]any{"cluster": c})
	}
	return list
}
