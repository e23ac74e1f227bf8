package mcp

import (
	"strings"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/schema"
)

// fewest is from how many objects on the loss of more than half is held (F44).
const fewest = 20

// table is what the server has of one kind.
type table struct {
	kind     schema.Kind
	url      string
	answered bool
	version  string           // of the last answer that was taken
	items    map[string]*item // by name, as the protocol writes it
	bad      map[string]*item // of these, those with problems
	unnamed  []config.Problem // of resources without a name, in the last answer
	refused  *config.Problem  // why the last answer was not taken
	leaving  map[string]bool  // names that are missing, and stay until missing + Options.Hold
	missing  time.Time        // since when they are; zero: none are
}

func newTable(k schema.Kind) *table {
	return &table{kind: k, url: TypeURL(k), items: map[string]*item{}, bad: map[string]*item{}, leaving: map[string]bool{}}
}

// keyOf is the key of the object that the protocol names NAMESPACE/NAME.
func (t *table) keyOf(name string) federation.ObjectKey {
	namespace, short, _ := strings.Cut(name, "/")
	return federation.ObjectKey{Group: t.kind.Group, Kind: t.kind.Name, Namespace: namespace, Name: short}
}

func (t *table) object(key federation.ObjectKey) *config.Object {
	if i := t.items[key.Namespace+"/"+key.Name]; i != nil {
		return i.object
	}
	return nil
}

// versions are those of all objects, as delta xDS resumes with them.
func (t *table) versions() map[string]string {
	all := make(map[string]string, len(t.items))
	for name, i := range t.items {
		all[name] = i.wireVersion
	}
	return all
}

// take handles an answer. What it returns is why nothing of it is taken.
func (s *Source) take(t *table, a *answer, now time.Time) (refused *config.Problem) {
	t.refused = nil
	if n := s.used.Objects - len(t.items) + len(a.resources); !a.delta && n > s.o.Limits.Objects || len(a.resources) > s.o.Limits.Objects {
		return s.refuse(t, "objects", n, s.o.Limits.Objects)
	}
	found, unnamed := s.read(t, a)
	gone := s.missing(t, a, found)
	after := s.used
	for name, i := range found {
		after = after.Add(t.usageOf(name, -1)).Add(i.usage())
	}
	for name := range gone {
		after = after.Add(t.usageOf(name, -1))
	}
	switch {
	case after.Objects > s.o.Limits.Objects:
		return s.refuse(t, "objects", after.Objects, s.o.Limits.Objects)
	case after.Bytes > s.o.Limits.Bytes:
		return s.refuse(t, "bytes", after.Bytes, s.o.Limits.Bytes)
	}
	t.unnamed, t.answered = unnamed, true
	if !a.delta {
		clear(t.leaving)
		t.version = a.version
	}
	for name, i := range found {
		delete(t.leaving, name)
		s.set(t, name, i)
	}
	for name := range gone {
		t.leaving[name] = true
	}
	if len(t.leaving) == 0 || len(t.items) < fewest || 2*len(t.leaving) <= len(t.items) {
		s.leave(t)
	} else if t.missing.IsZero() {
		t.missing = now
	}
	return nil
}

func (s *Source) refuse(t *table, what string, n, limit any) *config.Problem {
	t.answered = true
	t.refused = &config.Problem{Code: codeMany, Object: t.url, Message: message(
		"with the server's last answer there would be %v %s, and the limit is %v: the answer is refused, and what was read before stays",
		n, what, limit)}
	return t.refused
}

// missing are the names of what is kept and gone on the server.
func (s *Source) missing(t *table, a *answer, found map[string]*item) map[string]bool {
	gone := map[string]bool{}
	if a.delta {
		for _, name := range a.removed {
			if _, said := found[normal(name)]; !said && t.items[normal(name)] != nil {
				gone[normal(name)] = true
			}
		}
		return gone
	}
	for name := range t.items {
		if _, said := found[name]; !said {
			gone[name] = true
		}
	}
	return gone
}

// leave removes what is missing.
func (s *Source) leave(t *table) {
	for name := range t.leaving {
		s.set(t, name, nil)
	}
	clear(t.leaving)
	t.missing = time.Time{}
}

// leaves removes what was missing for long enough. It returns after which time to look
// again; 0: nothing is missing.
func (s *Source) leaves(now time.Time) (next time.Duration) {
	for _, t := range s.asked {
		if t.missing.IsZero() {
			continue
		}
		if left := s.o.Hold - now.Sub(t.missing); left > 0 {
			next = max(next, left)
		} else {
			s.leave(t)
			next = max(next, time.Nanosecond) // what left is to be given
		}
	}
	return next
}

// set replaces or removes an item.
func (s *Source) set(t *table, name string, now *item) {
	if t.items[name] == now {
		return
	}
	s.used = s.used.Add(t.usageOf(name, -1))
	delete(t.items, name)
	delete(t.bad, name)
	if now != nil {
		s.used = s.used.Add(now.usage())
		t.items[name] = now
		if len(now.problems) > 0 {
			t.bad[name] = now
		}
	}
	s.touched[t.keyOf(name)] = t
}

// usageOf is what the item takes, times sign.
func (t *table) usageOf(name string, sign int) federation.Usage {
	i := t.items[name]
	if i == nil {
		return federation.Usage{}
	}
	u := i.usage()
	return federation.Usage{Objects: sign * u.Objects, Bytes: int64(sign) * u.Bytes}
}
