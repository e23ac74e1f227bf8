package serviceimport

import (
	"log/slog"
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"isthmus.dev/isthmus/internal/kube/listwatch"
)

var resource = schema.GroupVersionResource{Group: "multicluster.x-k8s.io", Version: "v1beta1", Resource: "serviceimports"}

// importsOf is how the ServiceImports of a cluster are read.
func importsOf(cluster *listwatch.Cluster) listwatch.Resource[found] {
	r := listwatch.Of(resource.Resource, cluster.Dynamic().Resource(resource), read, found.size)
	r.Reconcile = true
	return r
}

// kept is what was read of one resource. It is a listwatch.Keeper.
type kept[T any] struct {
	follower *follower // gets the changes

	mu    sync.Mutex
	now   map[listwatch.Key]T
	whole bool // a list was taken
	told  string
}

// Now is part of listwatch.Keeper.
func (k *kept[T]) Now(all map[listwatch.Key]T) {
	k.mu.Lock()
	k.now, k.whole = maps.Clone(all), true
	k.mu.Unlock()
	k.follower.signal()
}

// Following is part of listwatch.Keeper.
func (k *kept[T]) Following(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case err == nil:
		k.told = ""
	case !listwatch.Interrupted(err) && k.told != err.Error():
		k.told = err.Error()
		k.follower.log.Warn("what is needed to write ServiceImports cannot be read; they may be out of date", slog.Any("err", err))
	}
}

// latest is what was read last, which nobody changes; false: nothing was yet.
func (k *kept[T]) latest() (map[listwatch.Key]T, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.now, k.whole
}
