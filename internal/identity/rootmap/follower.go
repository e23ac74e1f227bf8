package rootmap

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientset "k8s.io/client-go/kubernetes"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/kube/listwatch"
	"isthmus.dev/isthmus/internal/retry"
)

// follower is one cluster. One goroutine writes; those that read tell it which namespaces
// to look at.
type follower struct {
	options      Options
	log          *slog.Logger
	id           federation.ClusterID
	cluster      *listwatch.Cluster
	mayOverwrite bool
	wake         chan struct{}
	spaces       *mirror[listwatch.Namespace]
	maps         *mirror[found]

	mu    sync.Mutex
	dirty map[string]bool // namespaces

	// What follows is the writer's alone.
	pauses map[string]*retry.Backoff // of namespaces whose write failed or was undone
	due    map[string]time.Time      // before which they are left alone
	told   map[string]bool           // namespaces whose owner was logged
}

// touch has the writer look at a namespace.
func (f *follower) touch(namespace string) {
	f.mu.Lock()
	f.dirty[namespace] = true
	f.mu.Unlock()
	f.signal()
}

// touchAll has the writer look at every namespace that is known.
func (f *follower) touchAll() {
	for _, name := range f.spaces.names() {
		f.mu.Lock()
		f.dirty[name] = true
		f.mu.Unlock()
	}
	f.signal()
}

func (f *follower) signal() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// run writes until the context ends.
func (f *follower) run(ctx context.Context) {
	last := ""
	for ctx.Err() == nil {
		changed := f.options.Roots.Changed()
		content := f.options.content()
		if content != last {
			last = content
			f.touchAll()
		}
		f.work(ctx, content)
		f.measure(content)
		timer := time.NewTimer(f.untilDue(time.Now()))
		select {
		case <-f.wake:
		case <-changed:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// work looks at each namespace that may have changed and is not paused.
func (f *follower) work(ctx context.Context, content string) {
	if !f.spaces.listed() || !f.maps.listed() {
		return
	}
	for _, name := range f.take(time.Now()) {
		if ctx.Err() != nil {
			return
		}
		s, exists := f.spaces.get(name)
		m, has := f.maps.get(name)
		todo := decide(s, exists, m, has, content, f.mayOverwrite)
		switch todo {
		case nothing:
			delete(f.told, name)
			if !exists {
				delete(f.pauses, name)
			}
			continue
		case leave:
			f.tell(name)
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
func (f *follower) take(now time.Time) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	maps.DeleteFunc(f.due, func(_ string, at time.Time) bool { return !now.Before(at) })
	var names []string
	for name := range f.dirty {
		if _, paused := f.due[name]; !paused {
			names = append(names, name)
			delete(f.dirty, name)
		}
	}
	slices.Sort(names)
	return names
}

// untilDue is how long nothing is to be done.
func (f *follower) untilDue(now time.Time) time.Duration {
	wait := longestPause
	for _, at := range f.due {
		wait = min(wait, max(at.Sub(now), 0))
	}
	return wait
}

func title(namespace string) string { return "ConfigMap " + namespace + "/" + Name }

// tell logs, once, that a namespace has the roots of somebody else.
func (f *follower) tell(name string) {
	if !f.told[name] {
		f.told[name] = true
		f.log.Warn("a ConfigMap is left alone: somebody else, such as istiod, wrote other roots", slog.String("object", title(name)))
	}
}

// pause leaves a namespace alone for some time. It does not fight another writer of the ConfigMap
// over and over.
func (f *follower) pause(name string, err error) {
	b := f.pauses[name]
	if b == nil {
		b = &retry.Backoff{First: firstPause, Longest: longestPause}
		f.pauses[name] = b
	}
	pause := b.Next()
	f.due[name] = time.Now().Add(pause)
	if err == nil {
		return
	}
	f.mu.Lock()
	f.dirty[name] = true
	f.mu.Unlock()
	if !listwatch.Interrupted(err) && !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
		f.log.Warn("a ConfigMap with the roots of the mesh cannot be written; the hub tries again",
			slog.String("object", title(name)), slog.Duration("retryIn", pause), slog.Any("err", err))
	}
}

// write creates or changes the ConfigMap of the namespace, if the cluster is the known one.
func (f *follower) write(ctx context.Context, name string, m found, todo action, content string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return f.cluster.Read(ctx, func(ctx context.Context, client clientset.Interface) error {
		// The gate may be open for a server that has just taken the place of the known one.
		if err := f.cluster.Verify(ctx, client, f.cluster.UID()); err != nil {
			return err
		}
		objects := client.CoreV1().ConfigMaps(name)
		if todo == create {
			_, err := objects.Create(ctx, &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Name: Name, Annotations: map[string]string{mark: digest(content)}}, Data: map[string]string{key: content},
			}, metav1.CreateOptions{})
			return err
		}
		patch, err := json.Marshal(map[string]any{
			"metadata": map[string]any{"resourceVersion": m.version, "annotations": map[string]string{mark: digest(content)}},
			"data":     map[string]string{key: content},
		})
		if err != nil {
			return fmt.Errorf("writing the patch: %w", err)
		}
		_, err = objects.Patch(ctx, Name, types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	})
}

// measure counts the namespaces.
func (f *follower) measure(content string) {
	have, others, wanted := 0, 0, digest(content)
	for _, name := range f.spaces.names() {
		if m, has := f.maps.get(name); has && m.digest == wanted {
			have++
		} else if has && m.mark != m.digest {
			others++
		}
	}
	f.options.Metrics.RootMaps(f.id, have, others)
}
