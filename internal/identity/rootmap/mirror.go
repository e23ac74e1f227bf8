package rootmap

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/kube/listwatch"
)

// mirror is what was read of one resource, by namespace. It is a listwatch.Sink.
type mirror[T any] struct {
	share    *listwatch.Share
	key      func(T) listwatch.Key
	size     func(T) int64
	follower *follower // gets what changed

	mu    sync.Mutex
	now   map[string]T
	used  federation.Usage
	whole bool // a list was taken
}

func newMirror[T any](f *follower, share *listwatch.Share, key func(T) listwatch.Key, size func(T) int64) *mirror[T] {
	return &mirror[T]{share: share, key: key, size: size, follower: f, now: map[string]T{}}
}

// namespaceOf is the namespace that an object is about.
func namespaceOf(k listwatch.Key) string {
	if k.Namespace == "" {
		return k.Name
	}
	return k.Namespace
}

// Listed is part of listwatch.Sink.
func (m *mirror[T]) Listed(_ context.Context, items []T, _ uint64) bool {
	m.mu.Lock()
	clear(m.now)
	m.used, m.whole = federation.Usage{}, true
	for _, item := range items {
		m.put(item)
	}
	m.share.Replaced(m.used)
	m.mu.Unlock()
	m.follower.touchAll()
	return true
}

// Set is part of listwatch.Sink.
func (m *mirror[T]) Set(_ context.Context, item T) bool {
	m.mu.Lock()
	m.put(item)
	m.share.Took(m.size(item), m.used)
	m.mu.Unlock()
	m.follower.touch(namespaceOf(m.key(item)))
	return true
}

// Deleted is part of listwatch.Sink.
func (m *mirror[T]) Deleted(_ context.Context, k listwatch.Key) bool {
	m.mu.Lock()
	m.drop(namespaceOf(k))
	m.share.Holds(m.used)
	m.mu.Unlock()
	m.follower.touch(namespaceOf(k))
	return true
}

// Following is part of listwatch.Sink.
func (m *mirror[T]) Following(_ context.Context, err error) {
	if err != nil {
		m.follower.log.Debug("ConfigMaps with the roots of the mesh may be out of date", slog.Any("err", err))
	}
}

func (m *mirror[T]) put(item T) {
	name := namespaceOf(m.key(item))
	m.drop(name)
	m.now[name] = item
	m.used = m.used.Add(federation.Usage{Objects: 1, Bytes: m.size(item)})
}

func (m *mirror[T]) drop(name string) {
	if old, there := m.now[name]; there {
		delete(m.now, name)
		m.used = m.used.Add(federation.Usage{Objects: -1, Bytes: -m.size(old)})
	}
}

func (m *mirror[T]) get(name string) (T, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	item, exists := m.now[name]
	return item, exists
}

func (m *mirror[T]) names() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Collect(maps.Keys(m.now))
}

func (m *mirror[T]) listed() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.whole
}
