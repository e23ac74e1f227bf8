package fleet

import (
	"fmt"
	"maps"
	"slices"
	"sync"
)

// Fleet collects what the streams report. Reports are cheap: they are folded
// into a new value when a reader asks for the latest one.
type Fleet struct {
	mu       sync.Mutex
	latest   *Value
	stale    bool // latest was superseded
	streams  map[Key]*Stream
	reported map[Key]bool // since latest
	next     uint64
}

// New starts with no proxies, version 0.
func New() *Fleet {
	return &Fleet{latest: emptyValue(), streams: map[Key]*Stream{}, reported: map[Key]bool{}}
}

// Latest returns the fleet with everything that was reported so far.
func (f *Fleet) Latest() *Value {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.stale {
		return f.latest
	}
	changed := make(map[Key]*Proxy, len(f.reported))
	for key := range f.reported {
		if s := f.streams[key]; s != nil {
			changed[key] = s.proxy()
		} else {
			changed[key] = nil
		}
	}
	f.latest, f.stale = f.latest.with(changed), false
	clear(f.reported)
	return f.latest
}

// Stream is the writer of one live stream. Its methods may be called from any
// goroutine; after Close they do nothing.
type Stream struct {
	fleet *Fleet
	base  Proxy
	// All of this is guarded by fleet.mu.
	sync       map[string]Sync
	deliveries map[string]*Delivery // by type URL
	snapshot   uint64
	served     bool
}

// Connect adds a live stream of the proxy; what the proxy's Sync holds is kept.
// Streams of one node are independent of each other.
func (f *Fleet) Connect(p Proxy) *Stream {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.next++
	p.StreamID = fmt.Sprintf("%016x", f.next)
	s := &Stream{fleet: f, base: p, sync: maps.Clone(p.Sync), deliveries: map[string]*Delivery{}}
	if s.sync == nil {
		s.sync = map[string]Sync{}
	}
	f.streams[p.Key()] = s
	f.report(p.Key())
	return s
}

// Report sets the status of the type on the stream.
func (s *Stream) Report(typeURL string, sync Sync) {
	s.fleet.mu.Lock()
	defer s.fleet.mu.Unlock()
	if key := s.base.Key(); s.fleet.streams[key] == s {
		s.sync[typeURL] = sync
		s.fleet.report(key)
	}
}

// Deliver says what was delivered of the types that changed, now that the stream
// knows what it is to get as of the snapshot. Deliveries are not changed any more.
func (s *Stream) Deliver(snapshot uint64, changed map[string]*Delivery) {
	s.fleet.mu.Lock()
	defer s.fleet.mu.Unlock()
	if key := s.base.Key(); s.fleet.streams[key] == s {
		for typeURL, d := range changed {
			s.sync[typeURL], s.deliveries[typeURL] = d.Sync, d
		}
		s.snapshot, s.served = snapshot, true
		s.fleet.report(key)
	}
}

// Close removes the stream from the fleet.
func (s *Stream) Close() {
	s.fleet.mu.Lock()
	defer s.fleet.mu.Unlock()
	if key := s.base.Key(); s.fleet.streams[key] == s {
		delete(s.fleet.streams, key)
		s.fleet.report(key)
		if _, published := s.fleet.latest.changedAt.Get(key.sortKey()); !published {
			delete(s.fleet.reported, key)
		}
	}
}

// ID is the stream's ID within the fleet.
func (s *Stream) ID() string { return s.base.StreamID }

// Built says that what is built for proxies changed, or what builders say of it. The next
// value differs then even if no stream reports anything, so that what was computed from a
// value and from what is built is computed again.
func (f *Fleet) Built() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.supersede()
}

// report notes that the stream changed; the caller holds mu.
func (f *Fleet) report(key Key) {
	f.reported[key] = true
	f.supersede()
}

// supersede is for a caller that holds mu.
func (f *Fleet) supersede() {
	if !f.stale {
		f.stale = true
		close(f.latest.superseded)
	}
}

// proxy is the stream as it is now; the caller holds mu.
func (s *Stream) proxy() *Proxy {
	p := s.base
	p.Sync = maps.Clone(s.sync)
	p.Snapshot, p.Served = s.snapshot, s.served
	p.types = slices.Sorted(maps.Keys(s.deliveries))
	for _, typeURL := range p.types {
		p.deliveries = append(p.deliveries, s.deliveries[typeURL])
	}
	return &p
}
