package listwatch

import "isthmus.dev/isthmus/federation"

// holding is the objects of a resource, which count in a share.
type holding[T any] struct {
	share *Share
	key   func(T) Key
	size  func(T) int64
	now   map[Key]T
	used  federation.Usage
}

func newHolding[T any](share *Share, key func(T) Key, size func(T) int64) *holding[T] {
	return &holding[T]{share: share, key: key, size: size, now: map[Key]T{}}
}

func (h *holding[T]) replace(items []T) {
	clear(h.now)
	h.used = federation.Usage{}
	for _, value := range items {
		h.put(value)
	}
	h.share.Replaced(h.used)
}

func (h *holding[T]) set(value T) {
	h.put(value)
	h.share.Took(h.size(value), h.used)
}

func (h *holding[T]) delete(key Key) {
	h.drop(key)
	h.share.Holds(h.used)
}

func (h *holding[T]) put(value T) {
	key := h.key(value)
	h.drop(key)
	h.now[key] = value
	h.used = h.used.Add(federation.Usage{Objects: 1, Bytes: h.size(value)})
}

func (h *holding[T]) drop(key Key) {
	if old, there := h.now[key]; there {
		delete(h.now, key)
		h.used = h.used.Add(federation.Usage{Objects: -1, Bytes: -h.size(old)})
	}
}
