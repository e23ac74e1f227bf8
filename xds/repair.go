package xds

import (
	"slices"
	"time"

	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/xds/envoy"
)

// repair finds the parts of resources because of which a client refuses them:
// Envoy refuses a resource as a whole and hardly ever says why in words that lead
// to a virtual host or a filter chain. After a refusal half of what is new is
// tried, until one part alone is refused; what is accepted meanwhile stays. It is
// part of a subscription.
type repair struct {
	refused map[formKey]string   // forms that the client does not accept, and its words
	held    []formKey            // forms that wait for those before them to be accepted, in order
	waits   map[formKey]struct{} // the same
	stride  int                  // how many of them come next
	last    []formKey            // what was new in the last response that was refused
	rounds  int                  // refusals since the first of them waited
	digest  digest               // of both
}

// formKey is the digest of an envoy.Form.
type formKey [16]byte

// maxRounds bounds the refusals of one search: about log2(n) are needed for each
// of the bad ones among n new parts. After that all that is new is held to be bad.
const maxRounds = 200

func newRepair() repair {
	return repair{refused: map[formKey]string{}, waits: map[formKey]struct{}{}}
}

func (r *repair) idle() bool { return len(r.refused) == 0 && len(r.held) == 0 }

func (r *repair) withholds(f envoy.Form) bool {
	_, refused := r.refused[f.Digest]
	_, waits := r.waits[f.Digest]
	return refused || waits
}

// narrow takes up that one or more of the forms, which are all that is new in
// what was refused with the text, are bad. known are forms that other clients refused.
func (r *repair) narrow(forms []envoy.Form, text string, known func(formKey) bool) {
	if len(r.held) == 0 {
		r.rounds = 0
	}
	r.rounds++
	fresh := keysOf(forms)
	repeats := slices.Equal(fresh, r.last)
	r.last = fresh
	if len(fresh) == 1 || repeats || r.rounds > maxRounds {
		for _, form := range culprits(forms, repeats) {
			r.refuse(form, text)
		}
		r.stride = 1
		return
	}
	later := slices.DeleteFunc(slices.Clone(fresh), func(form formKey) bool { return !known(form) })
	r.stride = 1
	if len(later) == 0 || len(later) == len(fresh) {
		half := len(fresh) / 2
		later, r.stride = fresh[half:], half
	}
	for _, form := range later {
		r.waits[form] = struct{}{}
		r.note(form)
	}
	r.held = append(slices.Clone(later), r.held...)
}

// culprits are the forms to blame. What was refused twice cannot be divided: a new
// listener is nothing without a filter chain. Then the parts are to blame rather
// than what is around them, which others may share.
func culprits(forms []envoy.Form, repeats bool) []formKey {
	parts := slices.DeleteFunc(slices.Clone(forms), func(f envoy.Form) bool { return f.Part == "" })
	if repeats && len(parts) > 0 {
		return keysOf(parts)
	}
	return keysOf(forms)
}

func keysOf(forms []envoy.Form) []formKey {
	keys := make([]formKey, len(forms))
	for i, f := range forms {
		keys[i] = f.Digest
	}
	return keys
}

func (r *repair) refuse(form formKey, text string) {
	if len(r.refused) >= maxRefused {
		clear(r.refused)
	}
	r.refused[form] = text
	r.note(form)
}

// note keeps the digest: forms that were noted twice are so again only after
// something else changed, too.
func (r *repair) note(form formKey) {
	sum := digestOf(form[:])
	r.digest = digest{r.digest[0]*31 + sum[0], r.digest[1]*31 + sum[1]}
}

// end forgets what was refused: none of it is wanted any more.
func (r *repair) end() {
	if !r.idle() {
		*r = newRepair()
	}
}

// release lets the next forms go; false: none waits.
func (r *repair) release() bool {
	n := min(len(r.held), max(r.stride, 1))
	for _, form := range r.held[:n] {
		delete(r.waits, form)
		r.note(form)
	}
	r.held = r.held[n:]
	r.stride *= 2
	return n > 0
}

// search takes up that the client refused the suspects. It returns those of which
// no part can be to blame.
func (s *subscription) search(suspects []*resource) (whole []*resource) {
	var fresh []envoy.Form
	for _, r := range suspects {
		forms := s.newForms(r)
		if len(forms) == 0 {
			whole = append(whole, r)
		}
		fresh = append(fresh, forms...)
	}
	if len(fresh) == 0 {
		return whole
	}
	s.repair.narrow(fresh, s.sync.LastError, s.shared.isKnown)
	for form := range s.repair.refused {
		s.shared.know(form)
	}
	return nil
}

// newForms are those of the resource that the client has not accepted in the
// resource of that name.
func (s *subscription) newForms(r *resource) []envoy.Form {
	forms, err := envoy.Forms(s.kind, r.value())
	if err != nil {
		return nil
	}
	has := map[formKey]bool{}
	if acked := s.slots.get(r.name).acked; acked != nil && acked.sotw[1] != nil {
		accepted, _ := envoy.Forms(s.kind, acked.value())
		for _, f := range accepted {
			has[f.Digest] = true
		}
	}
	return slices.DeleteFunc(forms, func(f envoy.Form) bool { return has[f.Digest] })
}

// setAside puts what the client has in place of the refused resource; what may be
// sent in its stead is decided when the name is looked at.
func (s *subscription) setAside(r *resource, now time.Time) {
	s.barred[r.name] = rejection{searching: true}
	if e := s.slots.get(r.name); e.sent == r {
		s.tell(r.name, e.acked)
	}
	s.look(r.name, want{since: now, urgent: true})
}

// proceed tries the next of the forms that wait.
func (s *subscription) proceed(now time.Time) bool {
	if !s.repair.release() {
		return false
	}
	for name := range s.barred {
		s.look(name, want{since: now, urgent: true})
	}
	return true
}

// permitted is the resource as the client may get it: r itself, or r with other
// forms of the parts that it refuses; nil: neither.
func (s *subscription) permitted(r *resource, from source) *resource {
	if s.repair.idle() || !envoy.HasParts(s.kind) {
		return r
	}
	accepted := s.slots.get(r.name).acked
	if accepted == nil || accepted.sotw[1] == nil {
		accepted = from.accepted(r.name)
	}
	made := s.shared.fallback(s.kind, r, accepted, &s.repair)
	if len(made.parts) == 0 {
		return r
	}
	refused := rejection{searching: len(s.repair.held) > 0}
	if !refused.searching {
		refused.parts = s.blamed(r.name, made.parts, from)
	}
	s.barred[r.name] = refused
	if made.resource == nil {
		return s.slots.get(r.name).acked
	}
	return made.resource
}

// rejection is why a name is barred: the parts that the client refuses.
// searching: which parts they are is being found out.
type rejection struct {
	parts     []fleet.RefusedPart
	searching bool
}

// blamed are the withheld forms of parts of the resource, with what they are made of.
func (s *subscription) blamed(name string, forms []envoy.Form, from source) []fleet.RefusedPart {
	names := make([]string, len(forms))
	for i, form := range forms {
		names[i] = form.Part
	}
	causes, parts := from.causes(name, names), make([]fleet.RefusedPart, len(forms))
	for i, form := range forms {
		parts[i] = fleet.RefusedPart{Title: envoy.PartTitle(s.kind, name, form.Part), Error: s.repair.refused[form.Digest], Objects: causes[form.Part]}
	}
	return parts
}

// refusedWhole is the rejection of a resource of which no part is known to be at fault.
// Many objects share a resource with parts: then none of them is blamed.
func (s *subscription) refusedWhole(name, text string) rejection {
	return rejection{parts: []fleet.RefusedPart{{Title: envoy.PartTitle(s.kind, name, ""), Error: text, Whole: !envoy.HasParts(s.kind)}}}
}
