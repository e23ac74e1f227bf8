package xds

import (
	"slices"
	"strings"
	"sync"

	"isthmus.dev/isthmus/federation"
)

// blame is what a group keeps for clients that refuse what it makes.
type blame struct {
	building sync.Mutex // held while causes are built, one after the other; taken before mu

	mu     sync.Mutex           // never held over a build: each ACK needs it
	last   map[string]*resource // by name, that a client accepted
	causes map[string]causes    // by name and parts
}

type causes struct {
	of      *resource
	objects map[string][]federation.ObjectKey // by part
}

// maxCauses bounds the causes that are kept; maxRetired the groups without a
// client of which is kept what was accepted.
const (
	maxCauses  = 256
	maxRetired = 64
)

// retired is what clients accepted from groups that are not used any more: an Envoy
// that starts again has nothing to go on with where it refuses what is new.
type retired struct {
	blames map[groupKey]*blame
	order  []groupKey // the oldest first
}

func (r *retired) add(key groupKey, b *blame) {
	if r.blames == nil {
		r.blames = map[groupKey]*blame{}
	}
	r.blames[key], r.order = b, append(r.order, key)
	if len(r.order) > maxRetired {
		delete(r.blames, r.order[0])
		r.order = r.order[1:]
	}
}

// take is what is known of the group, or what is known of a new one.
func (r *retired) take(key groupKey) *blame {
	b := r.blames[key]
	if b == nil {
		return newBlame()
	}
	delete(r.blames, key)
	r.order = slices.DeleteFunc(r.order, func(other groupKey) bool { return other == key })
	return b
}

func newBlame() *blame {
	return &blame{last: map[string]*resource{}, causes: map[string]causes{}}
}

// noteAccepted notes that a client accepted the resources, each of which some group made, or none.
func noteAccepted(all []*resource) {
	for len(all) > 0 {
		home, same := all[0].home, 1
		for same < len(all) && all[same].home == home {
			same++
		}
		if home != nil {
			home.blame.noteAccepted(all[:same])
		}
		all = all[same:]
	}
}

func (b *blame) noteAccepted(all []*resource) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range all {
		if b.last[r.name] != r {
			b.last[r.name] = r
		}
	}
}

// accepted is part of source.
func (g *group) accepted(name string) *resource {
	g.blame.mu.Lock()
	defer g.blame.mu.Unlock()
	return g.blame.last[name]
}

func (b *blame) forget(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.last, name)
}

// causes is part of source. It builds the resource once for all clients.
func (g *group) causes(name string, parts []string) map[string][]federation.ObjectKey {
	of, key := g.get(name), name+"\x00"+strings.Join(parts, "\x00")
	g.mu.Lock()
	snapshot := g.snapshot
	g.mu.Unlock()
	g.blame.building.Lock()
	defer g.blame.building.Unlock()
	if known, ok := g.blame.causesOf(key); ok && known.of == of {
		return known.objects
	}
	found := causes{of, g.make.causes(g.kind, name, g.facet, snapshot.Read(), parts)}
	g.blame.keep(key, found)
	return found.objects
}

func (b *blame) causesOf(key string) (causes, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	known, ok := b.causes[key]
	return known, ok
}

func (b *blame) keep(key string, found causes) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.causes) >= maxCauses {
		clear(b.causes)
	}
	b.causes[key] = found
}

// accepted is part of source: a secret has no parts.
func (*secretSource) accepted(string) *resource { return nil }

// causes is part of source.
func (*secretSource) causes(string, []string) map[string][]federation.ObjectKey { return nil }
