package xds

import (
	"slices"
	"time"
)

// sentResponse is a response that is not answered yet.
type sentResponse struct {
	nonce, version string
	sent           time.Time
	snapshot       uint64
	resources      []*resource // those in it that were not accepted before
	removed        []string
	repair         bool // it repeats what was removed in a refused response
}

// responses are what was sent of a type: those that are not answered yet, and which was the
// last. They say when the next push may go.
type responses struct {
	unanswered []*sentResponse // oldest first
	lastNonce  string
	lastSent   time.Time
}

// maxInflight bounds the unanswered responses that a stream remembers singly.
const maxInflight = 16

// add notes that the response is on its way.
func (r *responses) add(f *sentResponse) {
	if len(r.unanswered) == maxInflight {
		r.unanswered[1].follow(r.unanswered[0])
		r.unanswered = r.unanswered[1:]
	}
	r.unanswered = append(r.unanswered, f)
	r.lastNonce, r.lastSent = f.nonce, f.sent
}

// freeAt is when the next push may go.
func (r *responses) freeAt(t timing) time.Time {
	at := r.lastSent.Add(t.pace)
	if n := len(r.unanswered); n > 0 {
		if limit := r.unanswered[n-1].sent.Add(t.unanswered); limit.After(at) {
			at = limit
		}
	}
	return at
}

// answered returns the response with that nonce and all before it, and forgets them: they are answered.
func (r *responses) answered(nonce string) []*sentResponse {
	i := slices.IndexFunc(r.unanswered, func(f *sentResponse) bool { return f.nonce == nonce })
	answered := r.unanswered[:i+1]
	r.unanswered = slices.Clone(r.unanswered[i+1:]) // what has answered is kept no longer
	return answered
}

// follow adds what an earlier response changed and this one did not: an answer to this one
// answers both. A client that answers nothing has the hub keep each name once.
func (f *sentResponse) follow(earlier *sentResponse) {
	later := map[string]struct{}{}
	for _, r := range f.resources {
		later[r.name] = struct{}{}
	}
	for _, name := range f.removed {
		later[name] = struct{}{}
	}
	for _, r := range earlier.resources {
		if _, again := later[r.name]; !again {
			f.resources = append(f.resources, r)
		}
	}
	for _, name := range earlier.removed {
		if _, again := later[name]; !again {
			f.removed = append(f.removed, name)
		}
	}
}
