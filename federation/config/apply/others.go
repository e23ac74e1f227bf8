package apply

import (
	"cmp"
	"context"
	"slices"
)

// withOthers adds the errors of the manifests that could be read to those of the
// manifests that could not, so that all errors are reported at once, in the order of
// the input.
func (p planning) withOthers(ctx context.Context, on base, r Request, read []requested, errs []Error) []Error {
	r.Prune = false // what could not be read may belong to the set
	_, more := p.apply(ctx, on, r, read)
	errs = slices.Concat(errs, more)
	place := make(map[string]int, len(r.Manifests))
	for i, f := range r.Manifests {
		if _, named := place[f.Name]; !named {
			place[f.Name] = i
		}
	}
	slices.SortStableFunc(errs, func(a, b Error) int {
		return cmp.Or(
			cmp.Compare(place[a.Place.File], place[b.Place.File]), cmp.Compare(a.Place.Document, b.Place.Document),
			cmp.Compare(a.Place.Line, b.Place.Line), cmp.Compare(a.Place.Column, b.Place.Column),
		)
	})
	return errs
}
