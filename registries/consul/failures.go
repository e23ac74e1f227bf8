package consul

import (
	"sync"
	"time"
)

// failingAfter is how long reads must fail before it is said of them alone. Where Consul
// as a whole is in trouble, the proofs, which the first failure brings about, end
// the session before.
const failingAfter = 2*requestTimeout + 2*time.Second

// listed is the key of the list of services; the others are names of services.
const listed = ""

// failures are the reads that fail although Consul proves to be in order, by
// service. A service with such a read keeps what was known of it.
type failures struct {
	mu sync.Mutex
	of map[string]*failure
}

type failure struct {
	since time.Time
	said  bool
}

// last notes a failure. It tells, once, that they have lasted too long.
func (f *failures) last(name string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.of == nil {
		f.of = map[string]*failure{}
	}
	now := f.of[name]
	if now == nil {
		now = &failure{since: time.Now()}
		f.of[name] = now
	}
	if now.said || time.Since(now.since) < failingAfter {
		return false
	}
	now.said = true
	return true
}

func (f *failures) end(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.of, name)
}
