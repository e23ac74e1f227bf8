package rootmap

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/kube/listwatch"
	"isthmus.dev/isthmus/internal/retry"
	"isthmus.dev/isthmus/internal/wake"
)

// rootWriter writes to one cluster. One goroutine writes; those that read tell it which namespaces
// to look at.
type rootWriter struct {
	options      Options
	log          *slog.Logger
	id           federation.ClusterID
	cluster      *listwatch.Cluster
	mayOverwrite bool
	wake         wake.Signal
	spaces       *listwatch.Mirror[listwatch.Namespace]
	maps         *listwatch.Mirror[found]

	mu    sync.Mutex
	dirty map[string]bool // namespaces

	// What follows is the writer's alone.
	pauses retry.Pauses[string] // of namespaces whose write failed or was undone
	told   map[string]bool      // namespaces whose owner was logged
}

// Changed is part of listwatch.MirrorNews: the writer looks at the namespace that the object is,
// or is in.
func (f *rootWriter) Changed(k listwatch.Key) { f.touch(cmp.Or(k.Namespace, k.Name)) }

// ChangedAll is part of listwatch.MirrorNews: the writer looks at every namespace that is known.
func (f *rootWriter) ChangedAll() { f.touch(f.namespaces()...) }

// touch has the writer look at namespaces.
func (f *rootWriter) touch(namespaces ...string) {
	f.mu.Lock()
	for _, name := range namespaces {
		f.dirty[name] = true
	}
	f.mu.Unlock()
	f.wake.Notify()
}

// namespaces are those of the cluster.
func (f *rootWriter) namespaces() (names []string) {
	for _, key := range f.spaces.Keys() {
		names = append(names, key.Name)
	}
	return names
}

// following logs why what was read may be out of date.
func (f *rootWriter) following(err error) {
	if err != nil {
		f.log.Debug("ConfigMaps with the roots of the mesh may be out of date", slog.Any("err", err))
	}
}

// run writes until the context ends.
func (f *rootWriter) run(ctx context.Context) {
	last := ""
	for ctx.Err() == nil {
		changed := f.options.Roots.Changed()
		content := f.options.content()
		if content != last {
			last = content
			f.ChangedAll()
		}
		f.work(ctx, content)
		f.measure(content)
		retry.Await(ctx, f.pauses.Wait(time.Now()), f.wake, changed)
	}
}

// work looks at each namespace that may have changed and is not paused.
func (f *rootWriter) work(ctx context.Context, content string) {
	if !f.spaces.Complete() || !f.maps.Complete() {
		return
	}
	for _, name := range f.take(time.Now()) {
		if ctx.Err() != nil {
			return
		}
		s, exists := f.spaces.Get(listwatch.Key{Name: name})
		m, has := f.maps.Get(keyIn(name))
		todo := decide(s, exists, m, has, content, f.mayOverwrite)
		switch todo {
		case nothing:
			delete(f.told, name)
			if !exists {
				f.pauses.Reset(name)
			}
			continue
		case leave:
			f.logForeign(name)
			continue
		case create, update, overwrite:
		}
		err := f.write(ctx, name, m, todo, content)
		if err != nil || todo == overwrite {
			f.pause(name, err)
		}
		retry.Sleep(ctx, pace)
	}
}

// take are the namespaces to look at now, in order.
func (f *rootWriter) take(now time.Time) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var names []string
	for name := range f.dirty {
		if !f.pauses.Has(name, now) {
			names = append(names, name)
			delete(f.dirty, name)
		}
	}
	slices.Sort(names)
	return names
}

func title(namespace string) string { return "ConfigMap " + namespace + "/" + Name }

// logForeign logs, once, that a namespace has the roots of somebody else.
func (f *rootWriter) logForeign(name string) {
	if !f.told[name] {
		f.told[name] = true
		f.log.Warn("a ConfigMap is not changed: another program, such as istiod, wrote other roots", slog.String("object", title(name)))
	}
}

// pause leaves a namespace alone for some time. It does not fight another writer of the ConfigMap
// over and over.
func (f *rootWriter) pause(name string, err error) {
	pause := f.pauses.Next(name)
	if err == nil {
		return
	}
	f.touch(name)
	if !listwatch.Interrupted(err) && !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
		f.log.Warn("a ConfigMap with the roots of the mesh cannot be written; the hub tries again",
			slog.String("object", title(name)), slog.Duration("retryIn", pause), slog.Any("err", err))
	}
}

// write creates or changes the ConfigMap of the namespace, if the cluster is the known one.
func (f *rootWriter) write(ctx context.Context, name string, m found, todo action, content string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return f.cluster.Write(ctx, func(ctx context.Context, client dynamic.Interface) error {
		objects := client.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace(name)
		metadata := map[string]any{"annotations": map[string]any{mark: digest(content)}}
		object := map[string]any{"metadata": metadata, "data": map[string]any{key: content}}
		if todo == create {
			object["apiVersion"], object["kind"], metadata["name"] = "v1", federation.ConfigMapKind.Name, Name
			_, err := objects.Create(ctx, &unstructured.Unstructured{Object: object}, metav1.CreateOptions{})
			return err
		}
		metadata["resourceVersion"] = m.version
		patch, err := json.Marshal(object)
		if err != nil {
			return fmt.Errorf("writing the patch: %w", err)
		}
		_, err = objects.Patch(ctx, Name, types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	})
}

// measure counts the namespaces.
func (f *rootWriter) measure(content string) {
	have, others, wanted := 0, 0, digest(content)
	for _, name := range f.namespaces() {
		if m, has := f.maps.Get(keyIn(name)); has && m.digest == wanted {
			have++
		} else if has && m.mark != m.digest {
			others++
		}
	}
	f.options.Metrics.RootMaps(f.id, have, others)
}
