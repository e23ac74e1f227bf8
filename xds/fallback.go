package xds

import (
	"sync"

	"isthmus.dev/isthmus/xds/envoy"
)

// fallbacks are what streams share of the repair of refused resources: the
// resources made for it, and which forms were found to be bad.
type fallbacks struct {
	mu    sync.Mutex
	made  map[fallbackKey]fallback
	known map[formKey]struct{}
}

func newFallbacks() *fallbacks {
	return &fallbacks{made: map[fallbackKey]fallback{}, known: map[formKey]struct{}{}}
}

type fallbackKey struct {
	kind                       envoy.Type
	name                       string
	target, accepted, withheld digest
}

// fallback is what is sent in place of a resource of which parts are withheld.
type fallback struct {
	resource *resource    // nil: nothing can be, such as a listener without any filter chain
	parts    []envoy.Form // that are withheld; empty: nothing is
}

// maxFallbacks bounds the fallbacks that are kept; maxKnown the forms.
const (
	maxFallbacks = 256
	maxKnown     = 4096
)

// isKnown reports whether some client refuses the form. That orders a search and
// decides nothing: a client must not keep others from getting what is good.
func (f *fallbacks) isKnown(form formKey) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, known := f.known[form]
	return known
}

func (f *fallbacks) know(form formKey) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.known) >= maxKnown {
		clear(f.known)
	}
	f.known[form] = struct{}{}
}

func (f *fallbacks) fallback(kind envoy.Type, target, accepted *resource, r *repair) fallback {
	key := fallbackKey{kind: kind, name: target.name, target: target.hash, withheld: r.digest}
	if accepted != nil {
		key.accepted = accepted.hash
	}
	f.mu.Lock()
	made, known := f.made[key]
	f.mu.Unlock()
	if known {
		return made
	}
	made = makeFallback(kind, target, accepted, r.withholds)
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.made) >= maxFallbacks {
		clear(f.made)
	}
	f.made[key] = made
	return made
}

func makeFallback(kind envoy.Type, target, accepted *resource, withheld func(envoy.Form) bool) fallback {
	var before []byte
	if accepted != nil {
		before = accepted.value()
	}
	m, parts, err := envoy.Fallback(kind, target.value(), before, withheld)
	if err != nil || m == nil {
		return fallback{parts: parts}
	}
	r, err := newResource(kind, target.name, m)
	if err != nil {
		return fallback{parts: parts}
	}
	r.fixed = target.fixed
	return fallback{r, parts}
}
