package listwatch

import (
	"context"

	"isthmus.dev/isthmus/federation"
)

// Keeper takes what Keep reads.
type Keeper[T any] interface {
	// Now are all objects of the resource, after each list and each change. The map is
	// valid during the call.
	Now(all map[Key]T)
	// Following reports that all changes come from now on (nil), or why they do not. What
	// was read before stays.
	Following(err error)
}

// Keep is Follow for a resource of few objects: it keeps them, and passes on all of them
// whenever one may have changed. All calls come from this goroutine.
func Keep[T any](ctx context.Context, c *Cluster, r Resource[T], key func(T) Key, limits federation.Limits, to Keeper[T]) {
	share := NewBudget(limits, nil).Share()
	Follow(ctx, c, r, share, &kept[T]{share: share, key: key, size: r.Size, to: to, now: map[Key]T{}})
}

// kept is the Sink of Keep.
type kept[T any] struct {
	share *Share
	key   func(T) Key
	size  func(T) int64
	to    Keeper[T]
	now   map[Key]T
	used  federation.Usage
}

// Listed is part of Sink.
func (k *kept[T]) Listed(_ context.Context, items []T, _ uint64) bool {
	clear(k.now)
	k.used = federation.Usage{}
	for _, value := range items {
		k.put(value)
	}
	k.share.Replaced(k.used)
	k.to.Now(k.now)
	return true
}

// Set is part of Sink.
func (k *kept[T]) Set(_ context.Context, value T) bool {
	k.put(value)
	k.share.Took(k.size(value), k.used)
	k.to.Now(k.now)
	return true
}

// Deleted is part of Sink.
func (k *kept[T]) Deleted(_ context.Context, key Key) bool {
	k.drop(key)
	k.share.Holds(k.used)
	k.to.Now(k.now)
	return true
}

// Following is part of Sink.
func (k *kept[T]) Following(_ context.Context, err error) { k.to.Following(err) }

func (k *kept[T]) put(value T) {
	k.drop(k.key(value))
	k.now[k.key(value)] = value
	k.used = k.used.Add(federation.Usage{Objects: 1, Bytes: k.size(value)})
}

func (k *kept[T]) drop(key Key) {
	if old, there := k.now[key]; there {
		delete(k.now, key)
		k.used = k.used.Add(federation.Usage{Objects: -1, Bytes: -k.size(old)})
	}
}
