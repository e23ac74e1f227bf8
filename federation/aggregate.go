package federation

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Operator is the source of what operators say of the hub: which clusters are
// attached, and the settings.
const Operator Provider = "Operator"

// Observer sees every published version. It must not block.
type Observer interface {
	Published(s *Snapshot, c ChangeSet, took time.Duration)
}

// Aggregate is the one writer around Next: it applies edits one after the other
// and publishes what follows. It knows no reader; readers take Latest and wait
// for Superseded.
type Aggregate struct {
	mu       sync.Mutex // held while a version is made
	latest   atomic.Pointer[Snapshot]
	current  map[ShardKey]*Writer
	observer Observer
}

// NewAggregate starts from an empty snapshot. The observer may be nil.
func NewAggregate(observer Observer) *Aggregate {
	a := &Aggregate{current: map[ShardKey]*Writer{}, observer: observer}
	a.latest.Store(Empty())
	return a
}

// Latest returns the newest published snapshot. It never blocks.
func (a *Aggregate) Latest() *Snapshot { return a.latest.Load() }

// Open gives the source a writer. While the source has an open writer, a
// further one stands by: its edits are kept and published only when ReplaceBy
// swaps it in. Sources are independent of each other.
func (a *Aggregate) Open(source ShardKey) *Writer {
	a.mu.Lock()
	defer a.mu.Unlock()
	w := &Writer{aggregate: a, source: source, state: standby}
	if a.current[source] == nil {
		w.state = writing
		a.current[source] = w
	}
	return w
}

// publish makes and publishes the version that follows from the edits; the
// caller holds mu.
func (a *Aggregate) publish(edits ...Edit) {
	began := time.Now()
	old := a.latest.Load()
	next, changes := old, ChangeSet{}
	for _, e := range edits {
		next, changes = Next(next, e.Timed(began))
	}
	if next == old {
		return
	}
	next.published = began
	a.latest.Store(next)
	close(old.superseded)
	if a.observer != nil {
		if changes.From != old.version {
			changes = next.ChangesSince(old.version)
		}
		a.observer.Published(next, changes, time.Since(began))
	}
}

type writerState int

const (
	standby writerState = iota
	writing
	closed
)

// Writer applies the edits of one source. A closed or replaced writer changes
// nothing any more, however late its edits come.
type Writer struct {
	aggregate *Aggregate
	source    ShardKey
	state     writerState // guarded by aggregate.mu, as is staged
	staged    []Edit
}

// Update applies the edit and returns when its version is published, so that
// who reads Latest afterwards sees it or something newer.
func (w *Writer) Update(e Edit) {
	w.aggregate.mu.Lock()
	defer w.aggregate.mu.Unlock()
	e.Source = w.source
	switch w.state {
	case writing:
		w.aggregate.publish(e)
	case standby:
		w.staged = append(w.staged, e)
	}
}

// ReplaceBy closes the writer and puts in its place one that stood by, with all
// that it was told, as one version: no reader sees a state between the two.
func (w *Writer) ReplaceBy(next *Writer) error {
	w.aggregate.mu.Lock()
	defer w.aggregate.mu.Unlock()
	if w.state != writing || next.state != standby || next.source != w.source {
		return fmt.Errorf("replacing the writer of %s: it is closed already, or the new one does not stand by", w.source)
	}
	w.state, next.state = closed, writing
	w.aggregate.current[w.source] = next
	w.aggregate.publish(next.staged...)
	next.staged = nil
	return nil
}

// Close ends the writer. It removes nothing: what the source said stays until
// an edit removes its cluster or a later writer of the source replaces it.
func (w *Writer) Close() {
	w.aggregate.mu.Lock()
	defer w.aggregate.mu.Unlock()
	if w.state == writing {
		delete(w.aggregate.current, w.source)
	}
	w.state, w.staged = closed, nil
}
