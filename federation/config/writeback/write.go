package writeback

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/crd"
	"isthmus.dev/isthmus/internal/kube/listwatch"
)

// Pauses after a write that failed, and between writes that repeat.
const (
	mostPause = 5 * time.Minute
	contested = 4 // writes of the same status in a row, from which on it is a problem
)

// named names a resource: two groups have gateways.
func named(resource schema.GroupVersionResource) string { return resource.GroupResource().String() }

// write writes into one cluster, and returns the objects that are to be looked at again.
func (w *Writer) write(ctx context.Context, id federation.ClusterID, uid string, batch []job) (again []ref) {
	for _, j := range batch {
		again = append(again, j.at)
	}
	cluster, limit := w.client(id, uid)
	if cluster == nil {
		return nil // a cluster reader that comes has all looked at
	}
	ctx, cancel := context.WithTimeout(ctx, batchTime)
	defer cancel()
	err := cluster.Write(ctx, func(ctx context.Context, client dynamic.Interface) error {
		for _, j := range batch {
			if !w.o.Leader.Leads() || !limit.Allow() {
				return nil
			}
			if w.waits(j.at, j.r, time.Now()) > 0 {
				continue // the resource was refused for an object before
			}
			err := w.writeOne(ctx, client, j)
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if apierrors.IsConflict(err) {
				w.refresh(ctx, client, j)
			}
			if !w.wrote(j, err) {
				again = slices.DeleteFunc(again, func(at ref) bool { return at == j.at })
			}
		}
		return nil
	})
	w.reached(id, err)
	return again
}

// client is the latest client of the cluster with that UID, and how often it may be used. A
// client that is not in use yet may speak to another cluster.
func (w *Writer) client(id federation.ClusterID, uid string) (*listwatch.Cluster, interface{ Allow() bool }) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.clusters[id]
	if t == nil {
		return nil, nil
	}
	for _, c := range slices.Backward(t.clusters) {
		if c.UID() == uid {
			return c, t.rate
		}
	}
	return nil, nil
}

// writeOne writes one status, unless somebody changed the object meanwhile.
func (w *Writer) writeOne(ctx context.Context, client dynamic.Interface, j job) error {
	metadata := map[string]any{"uid": j.r.UID, "resourceVersion": j.r.Version}
	body, err := json.Marshal(map[string]any{"metadata": metadata, "status": j.patch})
	if err != nil {
		return fmt.Errorf("writing the status as JSON: %w", err)
	}
	on := client.Resource(j.r.Resource).Namespace(j.at.key.Namespace)
	after, err := on.Patch(ctx, j.at.key.Name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: crd.StatusManager}, "status")
	if err != nil {
		return listwatch.AccessError{Verb: "patch", Resource: j.r.Resource.GroupResource().String(), Err: err}
	}
	w.took(j, after)
	return nil
}

// refresh reads what somebody else changed meanwhile. A watch tells more, and may be over.
func (w *Writer) refresh(ctx context.Context, client dynamic.Interface, j job) {
	list, err := client.Resource(j.r.Resource).Namespace(j.at.key.Namespace).List(ctx,
		metav1.ListOptions{FieldSelector: listwatch.Named(j.at.key.Name)})
	if err != nil {
		return // the next write conflicts, too, and asks again
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.records[j.at]
	if r == nil {
		return
	}
	if len(list.Items) == 0 || string(list.Items[0].GetUID()) != r.UID {
		if j.removes {
			delete(w.records, j.at)
		}
		return
	}
	if now := &list.Items[0]; j.removes || now.GetGeneration() == r.Generation {
		r.replace(now)
	}
}

// replace records a later form of the object; the caller holds mu.
func (r *record) replace(now *unstructured.Unstructured) {
	if !older(r.Version, now.GetResourceVersion()) {
		return
	}
	next := *r.Original
	next.Version, next.Ours = now.GetResourceVersion(), crd.IsOurs(now)
	next.Status, _, _ = unstructured.NestedMap(now.Object, "status")
	r.Original = &next
}

// took notes what an object is after a write.
func (w *Writer) took(j job, after *unstructured.Unstructured) {
	said, _ := json.Marshal(j.patch) // it was written
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.records[j.at]
	if r == nil || r.UID != j.r.UID {
		return
	}
	now := time.Now()
	// The write succeeded: this is not a pause of a retry but the pace of writes that repeat.
	r.pause = min(max(2*r.pause, w.o.Pause), mostPause)
	if now.Sub(r.wrote) > 4*r.pause {
		r.pause = w.o.Pause
	}
	if timeless(said) == r.body {
		r.undone++
	} else {
		r.undone = 0
	}
	mark(w.troubled, j.at, r.undone >= contested)
	r.body, r.wrote, r.notBefore = timeless(said), now, now.Add(r.pause)
	r.replace(after)
}

// wrote notes how a write went. It reports whether the object is to be looked at again
// without a change of it.
func (w *Writer) wrote(j job, err error) (again bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case err == nil:
		delete(w.clusters[j.at.cluster].blocked, named(j.r.Resource))
		if r := w.records[j.at]; r != nil {
			r.refused = nil
		}
		w.o.count(j.at.cluster, "")
		return false
	case apierrors.IsConflict(err):
		w.o.count(j.at.cluster, "conflict")
		if r := w.records[j.at]; r != nil {
			r.notBefore = time.Now().Add(w.o.Pause) // the watch tells what it is now
		}
		return true
	case apierrors.IsNotFound(err):
		w.o.count(j.at.cluster, "gone")
		return false
	}
	if isForbidden(err) {
		j.forbid(w)
	} else {
		j.refuse(w, err)
	}
	return true
}

// reached notes whether the cluster could be written at all.
func (w *Writer) reached(id federation.ClusterID, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.clusters[id]
	if err == nil {
		delete(t.blocked, "")
		return
	}
	if !errors.Is(err, context.Canceled) {
		w.o.count(id, "unreachable")
	}
	if t.blocked[""] == nil {
		t.blocked[""] = w.o.newBlock()
	}
	t.blocked[""].again()
}

// count counts a write; failed is why it failed, or empty.
func (o Options) count(id federation.ClusterID, failed string) {
	switch {
	case o.Meter == nil:
	case failed == "":
		o.Meter.StatusWrote(string(id))
	default:
		o.Meter.StatusFailed(string(id), failed)
	}
}
