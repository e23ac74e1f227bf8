package consul

import (
	"errors"
	"sync"
	"time"
)

const (
	// failingAfter is how long the reads of one service must fail before the failure is
	// reported. If Consul as a whole is in trouble, the proof that the first failure
	// triggers ends the run of the syncer earlier.
	failingAfter = 2*requestTimeout + 2*time.Second
	// busyAfter is the same for reads that Consul answers with 429, which asks to wait.
	busyAfter = 30 * time.Second
)

// listed is the key of the list of services; the others are names of services.
const listed = ""

// failures are the reads that fail although Consul proves to be in order, by
// service. A service with such a read keeps what was known of it.
type failures struct {
	mu sync.Mutex
	of map[string]*failure
}

type failure struct {
	since    time.Time // zero: every read got an answer, whose content cannot be used
	reported bool
	busy     bool // the last answer was 429
	pauses   *backoff
	next     time.Time // when the service may be read again
}

// get needs the lock.
func (f *failures) get(name string) *failure {
	if f.of == nil {
		f.of = map[string]*failure{}
	}
	if f.of[name] == nil {
		f.of[name] = &failure{pauses: newBackoff()}
	}
	return f.of[name]
}

// last notes a failure. It returns true once: when the failures have lasted too long.
func (f *failures) last(name string, err error) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	now, limit := f.get(name), failingAfter
	if now.since.IsZero() {
		now.since = time.Now()
	}
	if isBusy(err) {
		limit = busyAfter
	}
	if now.reported || time.Since(now.since) < limit {
		return false
	}
	now.reported = true
	return true
}

// rateLimited notes a 429. It returns true if other reads got one, too: Consul as a whole then has
// too many requests. A 429 that one service gets alone, or for long, concerns that service.
func (f *failures) rateLimited(name string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	own := f.get(name)
	own.busy = true
	for _, other := range f.of {
		if other != own && other.busy && !other.reported {
			return true
		}
	}
	return name == listed
}

// pause returns how long to wait after a failure.
func (f *failures) pause(name string, err error) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.get(name)
	now.busy = isBusy(err)
	pause := now.pauses.next(err) + hotGap/2
	now.next = time.Now().Add(pause)
	return pause
}

// isReported reports whether the failure of the service was reported. Further failures of it
// are not.
func (f *failures) isReported(name string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.of[name] != nil && f.of[name].reported
}

// report notes that the failure of the service is reported.
func (f *failures) report(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.get(name).reported = true
}

// waits reports whether it is too early to read the service again.
func (f *failures) waits(name string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.of[name]
	return now != nil && time.Now().Before(now.next)
}

func (f *failures) end(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.of, name)
}

func isBusy(err error) bool {
	var full *busy
	return errors.As(err, &full)
}

// affectsDatacenter reports whether an error is never one service's own: a limit of the
// cluster, rights that hide something, or another Consul.
func affectsDatacenter(err error) bool {
	var r *refusal
	return isLimit(err) || errors.As(err, &r) && (r.blind || r.other)
}
