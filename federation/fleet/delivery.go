package fleet

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"isthmus.dev/isthmus/federation"
)

// Group is what builds the resources of a type for proxies that are alike. The
// numbers are those of the one who reports.
type Group uint64

// RolloutState is the progress of a proxy with something.
type RolloutState uint8

// The states, the worst last.
const (
	Unaffected RolloutState = iota // nothing of it is for the proxy
	Accepted                       // sent and accepted
	Delivered                      // sent, not answered yet
	Waiting                        // something is still to be sent
	Rejected                       // the proxy refused it, and has what it accepted before
)

// Delivery is what a stream was sent of one type, and what of that it has not
// accepted. It is read-only. Resources have numbers, which are those of the one
// who reports: one name has one number.
type Delivery struct {
	Sync
	Groups   []Group // that build what the stream is sent
	Wildcard bool    // it is sent all that they build
	Named    Numbers // it is sent these of them
	// Open are the resources that the proxy does not have as they are now, by number.
	Open []OpenResource
	// Bulk is the state of all resources of the type that Open does not list, while
	// too many are on their way to list them: Delivered (of those that Told says it lacks)
	// or Waiting; else 0.
	Bulk           RolloutState
	RefusedSecrets []string // names; no object is known that they were made from
	Waits          bool     // something is still to be sent
	InFlight       uint64   // snapshot of the newest response without an answer; 0: there is none
	Refused        uint64   // snapshot of what was refused last; 0: nothing that is wanted is refused
	// Told is what the proxy was sent and has accepted of each resource; nil: not said.
	Told Told
}

// Told is what a proxy was sent last of each resource of a type, and what of that it has
// accepted: a value of the one who reports, which is never changed.
type Told interface {
	// Lacks reports whether the proxy has not accepted the resource as it was sent last.
	Lacks(number uint32) bool
}

// OpenResource is a resource that a proxy does not have as it is now.
type OpenResource struct {
	Number  uint32
	State   RolloutState // Accepted, Delivered or Waiting: of what is sent in its stead, if it was refused
	Refused bool         // as it is now
	// Searching: which part of it is at fault is being found out, so that objects of other
	// parts look refused, too.
	Searching bool
	Parts     []RefusedPart // that were refused; none while Searching
}

// RefusedPart is what a proxy refuses: a virtual host, a filter chain, or a resource as
// a whole.
type RefusedPart struct {
	Title   string // for people: what it is, and of which resource
	Error   string // why, in the proxy's words, cut and escaped
	Objects []federation.ObjectKey
	// Whole: Objects are not known, because the part is the whole resource: all from which
	// that was built.
	Whole bool
}

// blames reports whether the object may be why the proxy refused the resource.
func (r OpenResource) blames(key federation.ObjectKey) bool {
	return r.Refused && (r.Searching || slices.ContainsFunc(r.Parts, func(p RefusedPart) bool { return p.madeOf(key) }))
}

func (p RefusedPart) madeOf(key federation.ObjectKey) bool {
	return p.Whole || slices.Contains(p.Objects, key)
}

func (p RefusedPart) equal(o RefusedPart) bool {
	return p.Title == o.Title && p.Error == o.Error && p.Whole == o.Whole && slices.Equal(p.Objects, o.Objects)
}

// Untraced yields the title and the error of parts that the proxy refuses and of which no
// object is known that they were made of.
func (d *Delivery) Untraced() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for _, r := range d.Open {
			for _, p := range r.Parts {
				if !p.Whole && len(p.Objects) == 0 && !yield(p.Title, p.Error) {
					return
				}
			}
		}
	}
}

// Searches reports whether the hub is finding out which part of some resource is at fault.
func (d *Delivery) Searches() bool {
	return slices.ContainsFunc(d.Open, func(r OpenResource) bool { return r.Searching })
}

// Refusals tells all that the proxy refuses: the same text, the same refusals. It is empty
// if the proxy refuses nothing.
func (p *Proxy) Refusals() string {
	var text strings.Builder
	for i, d := range p.deliveries {
		for _, r := range d.Open {
			if r.Refused {
				fmt.Fprintf(&text, "%d %d %t %#v\n", i, r.Number, r.Searching, r.Parts)
			}
		}
		if len(d.RefusedSecrets) > 0 {
			fmt.Fprintf(&text, "%d %q\n", i, d.RefusedSecrets)
		}
		if text.Len() > 0 {
			text.WriteString(d.LastError)
		}
	}
	return text.String()
}

// Equal reports whether both say the same.
func (d *Delivery) Equal(o *Delivery) bool {
	return d.Sync == o.Sync && d.Wildcard == o.Wildcard && d.Bulk == o.Bulk && d.Waits == o.Waits && d.InFlight == o.InFlight &&
		d.Refused == o.Refused && slices.Equal(d.Groups, o.Groups) && slices.Equal(d.RefusedSecrets, o.RefusedSecrets) &&
		slices.Equal(d.Named, o.Named) &&
		slices.EqualFunc(d.Open, o.Open, OpenResource.equal) && d.Told == o.Told
}

func (r OpenResource) equal(o OpenResource) bool {
	return r.Number == o.Number && r.State == o.State && r.Refused == o.Refused &&
		r.Searching == o.Searching && slices.EqualFunc(r.Parts, o.Parts, RefusedPart.equal)
}

func (d *Delivery) find(number uint32) (at int, open bool) {
	return slices.BinarySearchFunc(d.Open, number, func(r OpenResource, number uint32) int { return int(r.Number) - int(number) })
}

// has reports whether the stream is sent the resource if one of its groups builds it.
func (d *Delivery) has(number uint32) bool { return d.Wildcard || d.Named.Has(number) }

// stateSince is the progress of the stream with what snapshots of that version and
// later ones brought of the type.
func (d *Delivery) stateSince(version uint64) RolloutState {
	switch {
	case d.Refused != 0 && d.Refused >= version:
		return Rejected
	case d.Waits:
		return Waiting
	case d.InFlight != 0 && d.InFlight >= version:
		return Delivered
	case d.SnapshotSent >= version && d.VersionSent != "":
		return Accepted
	}
	return Unaffected
}

// stateOf is the progress of the stream with the resource, as far as that is due to the
// object.
func (d *Delivery) stateOf(number uint32, key federation.ObjectKey) RolloutState {
	at, open := d.find(number)
	switch {
	case open && d.Open[at].blames(key):
		return Rejected
	case !d.has(number):
		return Unaffected
	case open:
		return d.Open[at].State
	case d.Bulk == Delivered && d.Told != nil && !d.Told.Lacks(number):
		return Accepted
	}
	return max(d.Bulk, Accepted)
}

// Progress is the status of something at one proxy.
type Progress struct {
	ProxyID
	State RolloutState
	Error string // why it rejected, in its words, cut and escaped
	Part  string // what it rejected: the title of a RefusedPart
	// Objects are those of which the part is made; none: they are not known.
	Objects []federation.ObjectKey
	// Searching: it rejected, and whether the object is at fault is being found out.
	Searching bool
}

// IsAt reports whether every stream that is served knows what it is to get as of the
// snapshot of that version.
func (v *Value) IsAt(version uint64) bool {
	for p := range v.Proxies() {
		if p.Served && p.Snapshot < version {
			return false
		}
	}
	return true
}

// Rollout returns the progress of each affected proxy, by cluster and node ID, with what
// snapshots of that version and later ones changed: resources sent from earlier snapshots
// do not count. If a proxy has several streams, the one that is behind counts.
func (v *Value) Rollout(version uint64) []Progress {
	var found []Progress
	for _, p := range v.index().proxies {
		one := Progress{ProxyID: p.key}
		for _, s := range p.streams {
			if state, text := s.rollout(version); state > one.State {
				one.State, one.Error = state, text
			}
		}
		if one.State != Unaffected {
			found = append(found, one)
		}
	}
	return found
}

func (p *Proxy) rollout(version uint64) (state RolloutState, text string) {
	if p.Snapshot < version {
		state = Waiting
	}
	for _, d := range p.deliveries {
		if at := d.stateSince(version); at > state {
			state = at
			if at == Rejected {
				text = d.LastError
			}
		}
	}
	return state, text
}

// Numbers is a set of numbers.
type Numbers []uint64

// Has reports whether the number is in the set.
func (n Numbers) Has(number uint32) bool {
	at := int(number / 64)
	return at < len(n) && n[at]&(1<<(number%64)) != 0
}
