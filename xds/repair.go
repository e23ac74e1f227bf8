package xds

import (
	"slices"

	"isthmus.dev/isthmus/xds/envoy"
)

// repair finds the parts of resources because of which a client refuses them:
// Envoy refuses a resource as a whole and hardly ever says why in words that lead
// to a virtual host or a filter chain. After a refusal half of what is new is
// tried, until one part alone is refused; what is accepted meanwhile stays. It is
// part of nacks.
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

// narrow notes that one or more of the forms, which are all that is new in
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
		r.record(form)
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
	r.record(form)
}

// record keeps the digest: forms that were noted twice are so again only after
// something else changed, too.
func (r *repair) record(form formKey) {
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
		r.record(form)
	}
	r.held = r.held[n:]
	r.stride *= 2
	return n > 0
}
