package listwatch

import (
	"context"
	"maps"
	"slices"
	"sync"
)

// MirrorNews takes the news of a Mirror, which has them already. Its methods may be called by
// several mirrors at once.
type MirrorNews interface {
	// Changed is an object that may have changed.
	Changed(k Key)
	// ChangedAll reports that every object may have changed.
	ChangedAll()
}

// Mirror is what was read last of a resource: one goroutine follows the cluster, and others look
// objects up. It is a Sink.
type Mirror[T any] struct {
	news    MirrorNews
	trouble func(error)

	mu     sync.Mutex
	has    *holding[T]
	listed bool
}

// NewMirror makes a Mirror that counts in the share. Trouble is called as Sink.Following is.
func NewMirror[T any](share *Share, r Resource[T], key func(T) Key, news MirrorNews, trouble func(error)) *Mirror[T] {
	return &Mirror[T]{news: news, trouble: trouble, has: newHolding(share, key, r.Size)}
}

// Follow keeps the mirror up to date until the context ends.
func (m *Mirror[T]) Follow(ctx context.Context, c *Cluster, r Resource[T]) {
	Follow(ctx, c, r, m.has.share, m)
}

// Get returns an object by its key.
func (m *Mirror[T]) Get(k Key) (value T, exists bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	value, exists = m.has.now[k]
	return value, exists
}

// Keys are those of all objects, in any order.
func (m *Mirror[T]) Keys() []Key {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Collect(maps.Keys(m.has.now))
}

// Complete reports whether the objects were listed.
func (m *Mirror[T]) Complete() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.listed
}

// Listed is part of Sink.
func (m *Mirror[T]) Listed(_ context.Context, items []T, _ uint64) bool {
	m.mu.Lock()
	m.has.replace(items)
	m.listed = true
	m.mu.Unlock()
	m.news.ChangedAll()
	return true
}

// Set is part of Sink.
func (m *Mirror[T]) Set(_ context.Context, value T) bool {
	m.mu.Lock()
	m.has.set(value)
	m.mu.Unlock()
	m.news.Changed(m.has.key(value))
	return true
}

// Deleted is part of Sink.
func (m *Mirror[T]) Deleted(_ context.Context, k Key) bool {
	m.mu.Lock()
	m.has.delete(k)
	m.mu.Unlock()
	m.news.Changed(k)
	return true
}

// Following is part of Sink.
func (m *Mirror[T]) Following(_ context.Context, err error) { m.trouble(err) }
