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
	h := newHolding(NewBudget(limits, nil).Share(), key, r.Size)
	Follow(ctx, c, r, h.share, &kept[T]{h, to})
}

// kept is the Sink of Keep.
type kept[T any] struct {
	*holding[T]
	to Keeper[T]
}

// Listed is part of Sink.
func (k *kept[T]) Listed(_ context.Context, items []T, _ uint64) bool {
	k.replace(items)
	k.to.Now(k.now)
	return true
}

// Set is part of Sink.
func (k *kept[T]) Set(_ context.Context, value T) bool {
	k.set(value)
	k.to.Now(k.now)
	return true
}

// Deleted is part of Sink.
func (k *kept[T]) Deleted(_ context.Context, key Key) bool {
	k.delete(key)
	k.to.Now(k.now)
	return true
}

// Following is part of Sink.
func (k *kept[T]) Following(_ context.Context, err error) { k.to.Following(err) }
