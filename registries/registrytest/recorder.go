package registrytest

import (
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	"isthmus.dev/isthmus/federation"
)

// Patience is how long a test waits before it fails: long enough for a machine
// that is busy with other tests.
const Patience = 5 * time.Minute

// View is all that a registry has said so far, edits applied one after another.
type View struct {
	Services  map[federation.ServiceKey]*federation.Shard
	Workloads map[federation.WorkloadKey]*federation.Workload
	Problems  map[string]federation.Problem
	Identity  federation.ClusterIdentity
	Status    federation.RegistryStatus
	Edits     int // edits so far
}

// Recorder is a Sink that remembers. Its zero value is ready for use.
type Recorder struct {
	mu      sync.Mutex
	changed chan struct{} // closed and replaced by every change
	view    View
	edits   []federation.Edit
	states  []federation.RegistryStatus
	watches []func(View, federation.Edit) string
	broken  []string
	closed  bool
}

// Update applies the edit and judges it.
func (r *Recorder) Update(e federation.Edit) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		r.broken = append(r.broken, "an edit came after Run had returned")
	}
	if first := len(r.edits) == 0; first && (!e.Services.Full || !e.Workloads.Full || !e.Problems.Full || e.Identity == nil) {
		r.broken = append(r.broken, "the first edit is not full")
	}
	r.edits = append(r.edits, e)
	fold(&r.view.Services, e.Services)
	fold(&r.view.Workloads, e.Workloads)
	fold(&r.view.Problems, e.Problems)
	if e.Identity != nil {
		r.view.Identity = *e.Identity
	}
	r.view.Edits++
	for _, watch := range r.watches {
		if wrong := watch(r.view, e); wrong != "" {
			r.broken = append(r.broken, fmt.Sprintf("edit %d: %s", r.view.Edits, wrong))
		}
	}
	r.signal()
}

// Status remembers the status.
func (r *Recorder) Status(s federation.RegistryStatus) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.view.Status = s
	r.states = append(r.states, s)
	r.signal()
}

// Always judges every later edit: the view after it and the edit itself. What
// the function returns, if not empty, fails the test in Check.
func (r *Recorder) Always(judge func(View, federation.Edit) string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.watches = append(r.watches, judge)
}

// View returns what was said so far; the maps are the caller's.
func (r *Recorder) View() View {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.copy()
}

// Edits returns the edits so far.
func (r *Recorder) Edits() []federation.Edit {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]federation.Edit(nil), r.edits...)
}

// Statuses returns the statuses so far.
func (r *Recorder) Statuses() []federation.RegistryStatus {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]federation.RegistryStatus(nil), r.states...)
}

// Wait blocks until the view fulfils the condition and returns it; after
// Patience it fails the test.
func (r *Recorder) Wait(t testing.TB, what string, fulfilled func(View) bool) View {
	t.Helper()
	limit := time.NewTimer(Patience)
	defer limit.Stop()
	for {
		r.mu.Lock()
		view, changed := r.copy(), r.next()
		r.mu.Unlock()
		if fulfilled(view) {
			return view
		}
		select {
		case <-changed:
		case <-limit.C:
			t.Fatalf("waited %v for: %s\nstatus: %+v\n%d services, %d workloads, problems: %v", Patience, what, view.Status, len(view.Services),
				len(view.Workloads), view.Problems)
		}
	}
}

// WaitPhase waits for the phase.
func (r *Recorder) WaitPhase(t testing.TB, phase federation.Phase) View {
	t.Helper()
	return r.Wait(t, "phase "+string(phase), func(v View) bool { return v.Status.Phase == phase })
}

// Check fails the test with what the recorder found wrong.
func (r *Recorder) Check(t testing.TB) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, wrong := range r.broken {
		t.Error(wrong)
	}
}

// close makes every later edit an error.
func (r *Recorder) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
}

func (r *Recorder) copy() View {
	v := r.view
	v.Services, v.Workloads, v.Problems = maps.Clone(v.Services), maps.Clone(v.Workloads), maps.Clone(v.Problems)
	return v
}

func (r *Recorder) next() <-chan struct{} {
	if r.changed == nil {
		r.changed = make(chan struct{})
	}
	return r.changed
}

func (r *Recorder) signal() {
	if r.changed != nil {
		close(r.changed)
		r.changed = nil
	}
}

func fold[K comparable, V any](into *map[K]V, d federation.Delta[K, V]) {
	if d.Full {
		maps.DeleteFunc(*into, func(k K, _ V) bool { return d.Keep == nil || !d.Keep(k) })
	}
	if *into == nil {
		*into = map[K]V{}
	}
	maps.Copy(*into, d.Set)
	for _, gone := range d.Gone {
		delete(*into, gone)
	}
}
