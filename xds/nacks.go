package xds

import (
	"slices"

	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/xds/envoy"
)

// maxRefused bounds the refused contents that a stream remembers of one type.
const maxRefused = 4096

// nacks are what the client refuses of a type, and what it gets in its stead.
type nacks struct {
	kind     envoy.Type
	contents map[digest]string    // content that the client refused, and its words
	barred   map[string]rejection // names whose present content is refused: the type stays NACKED
	repair   repair
	shared   *fallbacks
}

func newNacks(kind envoy.Type, shared *fallbacks) nacks {
	return nacks{kind: kind, contents: map[digest]string{}, barred: map[string]rejection{}, repair: newRepair(), shared: shared}
}

// rejection is why a name is barred: the parts that the client refuses.
// searching: which parts they are is being found out.
type rejection struct {
	parts     []fleet.RefusedPart
	searching bool
}

// refuse notes that the client refused the resource as a whole.
func (n *nacks) refuse(r *resource, text string) {
	if len(n.contents) >= maxRefused {
		clear(n.contents)
	}
	n.contents[r.hash] = text
	n.barred[r.name] = refusedWhole(n.kind, r.name, text)
}

// inPlaceOf is what the client may get of the resource: the resource itself, or what it
// accepted last, or something of both.
func (n *nacks) inPlaceOf(r *resource, has *slots, from source) *resource {
	if text, bad := n.contents[r.hash]; bad {
		n.barred[r.name] = refusedWhole(n.kind, r.name, text)
		return has.get(r.name).acked
	}
	return n.permitted(r, has, from)
}

// search notes that the client refused the suspects. It returns those of which
// no part can be to blame.
func (n *nacks) search(suspects []*resource, text string, has *slots) (whole []*resource) {
	var fresh []envoy.Form
	for _, r := range suspects {
		forms := newForms(n.kind, r, has.get(r.name).acked)
		if len(forms) == 0 {
			whole = append(whole, r)
		}
		fresh = append(fresh, forms...)
	}
	if len(fresh) == 0 {
		return whole
	}
	n.repair.narrow(fresh, text, n.shared.isKnown)
	for form := range n.repair.refused {
		n.shared.know(form)
	}
	return nil
}

// newForms are those of the resource that the client has not accepted in the
// resource of that name, which is nil if it has accepted none.
func newForms(kind envoy.Type, r, acked *resource) []envoy.Form {
	forms, err := envoy.Forms(kind, r.value())
	if err != nil {
		return nil
	}
	has := map[formKey]bool{}
	if acked != nil && acked.sotw[1] != nil {
		accepted, _ := envoy.Forms(kind, acked.value())
		for _, f := range accepted {
			has[f.Digest] = true
		}
	}
	return slices.DeleteFunc(forms, func(f envoy.Form) bool { return has[f.Digest] })
}

// permitted is the resource as the client may get it: r itself, or r with other
// forms of the parts that it refuses; nil: neither.
func (n *nacks) permitted(r *resource, has *slots, from source) *resource {
	if n.repair.idle() || !n.kind.Has(envoy.InParts) {
		return r
	}
	accepted := has.get(r.name).acked
	if accepted == nil || accepted.sotw[1] == nil {
		accepted = from.accepted(r.name)
	}
	made := n.shared.fallback(n.kind, r, accepted, &n.repair)
	if len(made.parts) == 0 {
		return r
	}
	refused := rejection{searching: len(n.repair.held) > 0}
	if !refused.searching {
		refused.parts = n.blamed(r.name, made.parts, from)
	}
	n.barred[r.name] = refused
	if made.resource == nil || n.refusesWhole(made.resource) {
		return has.get(r.name).acked
	}
	return made.resource
}

// refusesWhole reports whether the client refused the content as a whole.
func (n *nacks) refusesWhole(r *resource) bool {
	_, refused := n.contents[r.hash]
	return refused
}

// blamed are the withheld forms of parts of the resource, with what they are made of.
func (n *nacks) blamed(name string, forms []envoy.Form, from source) []fleet.RefusedPart {
	names := make([]string, len(forms))
	for i, form := range forms {
		names[i] = form.Part
	}
	causes, parts := from.causes(name, names), make([]fleet.RefusedPart, len(forms))
	for i, form := range forms {
		parts[i] = fleet.RefusedPart{
			Title: envoy.PartTitle(n.kind, name, form.Part), Error: n.repair.refused[form.Digest],
			Objects: causes[form.Part],
		}
	}
	return parts
}

// refusedWhole is the rejection of a resource of which no part is known to be at fault.
// Many objects share a resource with parts: then none of them is blamed.
func refusedWhole(kind envoy.Type, name, text string) rejection {
	return rejection{parts: []fleet.RefusedPart{{Title: envoy.PartTitle(kind, name, ""), Error: text, Whole: !kind.Has(envoy.InParts)}}}
}
