// Package memory is a store of configuration that lives as long as the process, for tests
// and experiments. It keeps its whole history. It uses the clock of package time, so that
// testing/synctest controls it.
package memory

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
)

// Store is a config.Source, config.Log and config.Leases. Its methods may be
// called at the same time.
type Store struct {
	kinds []federation.Kind

	mu      sync.Mutex
	log     []config.Record                        // of revision 1 and so on
	steps   map[federation.ObjectKey][]config.Step // the oldest first
	objects map[federation.ObjectKey]*config.Object
	once    map[string]int64
	leased  map[federation.ObjectKey]lease
	secrets map[federation.ObjectKey][]byte
	moved   chan struct{} // closed at the next change
	fails   error
}

type lease struct {
	object *config.Object
	ttl    time.Duration
	until  time.Time
}

// New returns an empty store whose source gives the kinds.
func New(kinds ...federation.Kind) *Store {
	return &Store{
		kinds: kinds, steps: map[federation.ObjectKey][]config.Step{}, objects: map[federation.ObjectKey]*config.Object{},
		once:   map[string]int64{},
		leased: map[federation.ObjectKey]lease{}, secrets: map[federation.ObjectKey][]byte{}, moved: make(chan struct{}),
	}
}

// Kinds is part of config.Source.
func (s *Store) Kinds() []federation.Kind { return s.kinds }

// Fail makes every later call fail with config.ErrUnavailable and says so to who
// follows the source, until it is called with nil.
func (s *Store) Fail(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fails = why
	s.signal()
}

func (s *Store) signal() {
	close(s.moved)
	s.moved = make(chan struct{})
}

func (s *Store) answers(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%w (%w)", config.ErrUnavailable, err)
	}
	if s.fails != nil {
		return fmt.Errorf("%w (%w)", config.ErrUnavailable, s.fails)
	}
	return nil
}

// Commit is part of config.Log.
func (s *Store) Commit(ctx context.Context, c config.Commit) (int64, error) {
	if err := c.Refusal(); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.answers(ctx); err != nil {
		return 0, err
	}
	if earlier := s.once[c.IdempotencyKey]; earlier != 0 {
		return 0, &config.Repeated{Revision: earlier}
	}
	if now := int64(len(s.log)); c.Base != now {
		return 0, &config.Moved{Base: c.Base, Now: now}
	}
	if c.Time.IsZero() {
		c.Time = time.Now()
	}
	r := config.Record{Revision: c.Base + 1, Note: c.Note, Changes: make([]config.RecordedChange, len(c.Changes))}
	for i, change := range c.Changes {
		r.Changes[i] = s.change(change, r.Revision)
		if action := r.Changes[i].Action; action != config.Unchanged {
			s.steps[change.Key] = append(s.steps[change.Key], config.StepOf(r.Revision, action, r.Note))
		}
	}
	s.log = append(s.log, r)
	s.keep(c.Secrets)
	if c.IdempotencyKey != "" {
		s.once[c.IdempotencyKey] = r.Revision
	}
	s.signal()
	return r.Revision, nil
}

func (s *Store) change(c config.Change, revision int64) config.RecordedChange {
	old, o := s.objects[c.Key], c.Object
	r := config.RecordedChange{Key: c.Key, Action: config.Unchanged}
	switch {
	case o == nil && old != nil:
		r.Action = config.Deleted
		delete(s.objects, c.Key)
	case o == nil, old != nil && old.APIVersion == o.APIVersion && bytes.Equal(old.Manifest, o.Manifest):
	default:
		r.Action = config.Created
		if old != nil {
			r.Action = config.Updated
		}
		r.Object = &config.Object{Key: o.Key, APIVersion: o.APIVersion, Revision: revision, Manifest: bytes.Clone(o.Manifest)}
		s.objects[c.Key] = r.Object
	}
	return r
}

// Records is part of config.Log.
func (s *Store) Records(ctx context.Context, before int64, limit int) ([]config.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.answers(ctx); err != nil {
		return nil, err
	}
	last := int64(len(s.log))
	if before > 0 {
		last = min(last, before-1)
	}
	var records []config.Record
	for ; last > 0 && len(records) < limit; last-- {
		records = append(records, s.log[last-1])
	}
	return records, nil
}

// History is part of config.Log. It answers from memory, as other stores do once
// they were read, also while the store fails.
func (s *Store) History(_ context.Context, key federation.ObjectKey) (config.ObjectHistory, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	steps := slices.Clone(s.steps[key])
	slices.Reverse(steps)
	return config.ObjectHistory{Steps: steps}, nil
}

// At is part of config.Log.
func (s *Store) At(ctx context.Context, revision int64) ([]config.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.answers(ctx); err != nil {
		return nil, err
	}
	if revision < 0 || revision > int64(len(s.log)) {
		return nil, config.ErrUnknownRevision
	}
	then := map[federation.ObjectKey]*config.Object{}
	for _, r := range s.log[:revision] {
		replay(then, r)
	}
	return sorted(then), nil
}

// Find is part of config.Log.
func (s *Store) Find(ctx context.Context, idempotencyKey string) (*config.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.answers(ctx); err != nil {
		return nil, err
	}
	revision := s.once[idempotencyKey]
	if revision == 0 {
		return nil, nil
	}
	r := s.log[revision-1]
	return &r, nil
}

// Register is part of config.Leases.
func (s *Store) Register(ctx context.Context, o config.Object, ttl time.Duration) (time.Time, error) {
	if err := o.Refusal(); err != nil {
		return time.Time{}, err
	}
	if ttl <= 0 {
		return time.Time{}, &config.Refused{Limit: "invalid object", Message: fmt.Sprintf("%s cannot be registered for %v", o.Key, ttl)}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.answers(ctx); err != nil {
		return time.Time{}, err
	}
	o.Revision, o.Expires, o.Manifest = int64(len(s.log)), time.Now().Add(ttl), bytes.Clone(o.Manifest)
	s.leased[o.Key] = lease{object: &o, ttl: ttl, until: o.Expires}
	s.signal()
	return o.Expires, nil
}

// Renew is part of config.Leases.
func (s *Store) Renew(ctx context.Context, key federation.ObjectKey) (time.Time, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.answers(ctx); err != nil {
		return time.Time{}, err
	}
	s.expire()
	l, found := s.leased[key]
	if !found {
		return time.Time{}, config.ErrNoLease
	}
	l.until = time.Now().Add(l.ttl)
	s.leased[key] = l
	s.signal()
	return l.until, nil
}

// Release is part of config.Leases.
func (s *Store) Release(ctx context.Context, key federation.ObjectKey) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.answers(ctx); err != nil {
		return err
	}
	delete(s.leased, key)
	s.signal()
	return nil
}

// expire removes what was not renewed and returns when the next one goes.
func (s *Store) expire() (next time.Time) {
	now := time.Now()
	for key, l := range s.leased {
		if !l.until.After(now) {
			delete(s.leased, key)
		} else if next.IsZero() || l.until.Before(next) {
			next = l.until
		}
	}
	return next
}
