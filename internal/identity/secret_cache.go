package identity

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"isthmus.dev/isthmus/federation"
)

// The codes of problems with secrets.
const (
	ProblemUnusable = "SECRET_UNUSABLE" // what was read last stays in use
	ProblemExpires  = "SECRET_EXPIRES"  // a certificate in it ends within 14 days, or has ended
	ProblemMissing  = "SECRET_MISSING"  // it is referred to, and no source has it
	ProblemSource   = "SECRET_SOURCE"   // a source cannot be read; what was read last stays in use
)

// expiresSoon is how long before a certificate's end it is a problem.
const expiresSoon = 14 * 24 * time.Hour

// secretCache is what a source has at hand: the last content that could be used, and
// what is wrong. It may be used by several goroutines.
type secretCache struct {
	now func() time.Time

	mu       sync.Mutex
	secrets  map[Ref]Secret
	problems map[string]federation.Problem
	follows  map[Ref]int
	awaited  map[object]bool // that are being read for the first time
	changed  chan struct{}   // closed when a secret changes
	trouble  chan struct{}   // closed when a problem does
}

func newSecretCache(now func() time.Time) *secretCache {
	return &secretCache{
		now: now, secrets: map[Ref]Secret{}, problems: map[string]federation.Problem{}, follows: map[Ref]int{}, awaited: map[object]bool{},
		changed: make(chan struct{}), trouble: make(chan struct{}),
	}
}

// secret is what is kept under exactly that reference.
func (s *secretCache) secret(ref Ref) (Secret, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, ok := s.secrets[ref]
	return found, ok
}

// find is what a proxy means, of its own namespace alone: of files, which are for
// every cluster, else of its own cluster. What is granted is of its own cluster.
func (s *secretCache) find(ref Ref) (Secret, bool) {
	for _, own := range []Ref{{Namespace: ref.Namespace}, {Cluster: ref.Cluster, Namespace: ref.Namespace}} {
		if ref.Granted && own.Cluster == "" {
			continue
		}
		for _, name := range ref.names() {
			own.Name, own.Authorities = name, ref.Authorities
			if found, ok := s.secrets[own]; ok {
				return found, true
			}
		}
	}
	return Secret{}, false
}

// names are those of the folders and objects that may hold what is meant, the
// best first.
func (r Ref) names() []string {
	if r.Authorities {
		return []string{r.Name, r.Name + authoritySuffix}
	}
	return []string{r.Name}
}

// follow counts who refers to the secret.
func (s *secretCache) follow(ref Ref, change int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.follows[ref] += change
	if s.follows[ref] <= 0 {
		delete(s.follows, ref)
	}
	s.alarm()
}

// await has the object not said to be missing before it was looked for.
func (s *secretCache) await(o object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.awaited[o] = true
}

// answered notes that the object was looked for, or cannot be.
func (s *secretCache) answered(o object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.awaited[o] {
		delete(s.awaited, o)
		s.alarm()
	}
}

// detached is answered for all objects of the cluster.
func (s *secretCache) detached(id federation.ClusterID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.awaited, func(o object, _ bool) bool { return o.cluster == id })
	s.alarm()
}

// awaits reports whether an object that may hold what is meant was not looked for yet.
func (s *secretCache) awaits(ref Ref) bool {
	return slices.ContainsFunc(ref.objects(), func(o object) bool { return s.awaited[o] })
}

// set stores what a source has for the reference; nil: it has nothing. Parts
// that cannot be used change nothing but the problems.
func (s *secretCache) set(ref Ref, p parts) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p == nil {
		if _, had := s.secrets[ref]; had {
			delete(s.secrets, ref)
			s.announce()
		}
		s.report(ref, nil)
		return
	}
	found, err := p.read(ref.Authorities, s.now())
	if err != nil {
		_, stays := s.secrets[ref]
		s.report(ref, unusable(ref, err, stays))
		return
	}
	if s.secrets[ref].Fingerprint != found.Fingerprint {
		s.secrets[ref] = found
		s.announce()
	}
	s.report(ref, s.expiring(ref, found))
}

func unusable(ref Ref, err error, stays bool) *federation.Problem {
	effect := "there is no such secret until it is put right"
	if stays {
		effect = "what was read before stays in use"
	}
	return &federation.Problem{Code: ProblemUnusable, Object: ref.Title(), Message: fmt.Sprintf("%v; %s", err, effect)}
}

func (s *secretCache) expiring(ref Ref, found Secret) *federation.Problem {
	if found.Expires.Sub(s.now()) > expiresSoon {
		return nil
	}
	return &federation.Problem{
		Code: ProblemExpires, Object: ref.Title(),
		Message: fmt.Sprintf("a certificate in it is valid until %s; renew it", found.Expires.UTC().Format(time.RFC3339)),
	}
}

// place is where the secret is; what comes from files belongs to no cluster.
func (r Ref) place() string {
	at := r.Namespace + "/" + r.String()
	if r.Cluster == "" {
		return at
	}
	return string(r.Cluster) + "/" + at
}

// Title names the secret in problems.
func (r Ref) Title() string { return "secret " + r.place() }

// complain sets or, with nil, clears a problem that is not of one secret.
func (s *secretCache) complain(name string, problem *federation.Problem) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.setProblem(name, problem)
}

func (s *secretCache) report(ref Ref, problem *federation.Problem) {
	s.setProblem(ref.place(), problem)
}

func (s *secretCache) setProblem(name string, problem *federation.Problem) {
	before, had := s.problems[name]
	switch {
	case problem == nil && !had, problem != nil && had && before == *problem:
		return
	case problem == nil:
		delete(s.problems, name)
	default:
		s.problems[name] = *problem
	}
	s.alarm()
}

func (s *secretCache) alarm() {
	close(s.trouble)
	s.trouble = make(chan struct{})
}

// announceChange announces that something changed that is not in the cache.
func (s *secretCache) announceChange() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.announce()
}

func (s *secretCache) announce() {
	close(s.changed)
	s.changed = make(chan struct{})
	s.alarm()
}

func (s *secretCache) changes() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

// wrong returns the problems by name, and a channel that is closed when they change.
func (s *secretCache) wrong() (map[string]federation.Problem, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := maps.Clone(s.problems)
	for ref := range s.follows {
		if _, ok := s.find(ref); !ok && !s.awaits(ref) {
			all["missing "+ref.place()] = federation.Problem{
				Code: ProblemMissing, Object: ref.Title(),
				Message: "a Gateway, or a listener or a cluster of a proxy, refers to it, and no source has it; its connections fail until one does",
			}
		}
	}
	return all, s.trouble
}
