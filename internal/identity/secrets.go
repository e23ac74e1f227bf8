package identity

import (
	"log/slog"
	"sync"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/kube/listwatch"
	"isthmus.dev/isthmus/internal/wake"
)

// Options are rarely set. Zero values have the defaults named here.
type Options struct {
	Now    func() time.Time // default time.Now
	Logger *slog.Logger     // default: slog.Default()
	Issuer Issuer           // of the own certificates of proxies; nil: there are none
	Roots  Roots            // that proxies verify certificates with; nil: there are none
}

// Secrets keeps what its sources have: folders, and clusters that were attached.
// It may be used by several goroutines; nothing of it blocks but Run.
type Secrets struct {
	options Options
	cache   *secretCache
	own     *own

	mu       sync.Mutex
	clusters map[federation.ClusterID]*listwatch.Cluster
	wanted   map[object]int
	changed  wake.Signal // clusters or wanted changed; has room for one notice
}

// New makes secrets without a source.
func New(o Options) *Secrets {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	cache := newSecretCache(o.Now)
	return &Secrets{
		options: o, cache: cache, own: newOwn(o, cache.announceChange),
		clusters: map[federation.ClusterID]*listwatch.Cluster{}, wanted: map[object]int{}, changed: wake.New(),
	}
}

// Secret is the secret as it is now; false: there is none that can be used.
func (s *Secrets) Secret(ref Ref) (Secret, bool) {
	if ref.Workload != "" {
		return s.own.secret(ref)
	}
	s.cache.mu.Lock()
	defer s.cache.mu.Unlock()
	return s.cache.find(ref)
}

// Changed is closed when a secret changes after the call.
func (s *Secrets) Changed() <-chan struct{} { return s.cache.changes() }

// Problems are what is wrong now, by names that stay, and a channel that is
// closed when that may have changed.
func (s *Secrets) Problems() (map[string]federation.Problem, <-chan struct{}) { return s.cache.wrong() }

// Follow keeps the secret up to date until done is called, once.
func (s *Secrets) Follow(ref Ref) (done func()) { return s.FollowProven(ref, nil) }

// FollowProven is Follow for who last proved who it is when proven says, which must
// not block; nil: it does so all the time. That counts for the own certificates of
// proxies.
func (s *Secrets) FollowProven(ref Ref, proven func() time.Time) (done func()) {
	if ref.Workload != "" {
		return s.own.follow(ref, proven)
	}
	s.count(ref, 1)
	return func() { s.count(ref, -1) }
}

func (s *Secrets) count(ref Ref, change int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.cache.follow(ref, change)
	for _, o := range ref.objects() {
		if s.wanted[o] == 0 && s.clusters[o.cluster] != nil {
			s.cache.await(o)
		}
		s.wanted[o] += change
		if s.wanted[o] <= 0 {
			delete(s.wanted, o)
			s.forget(o)
		}
	}
	s.changed.Notify()
}
