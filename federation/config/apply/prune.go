package apply

import (
	"fmt"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/schema"
)

// planPrune finds the stored objects of the set that are not among the
// manifests. A protected one refuses the whole request: the missing
// manifest contradicts its annotation.
func planPrune(v base, r Request, all []requested) ([]Change, []Error) {
	stays := map[federation.ObjectKey]bool{}
	for _, w := range all {
		stays[w.key] = true
	}
	var gone []Change
	var errs []Error
	for o := range v.storedObjects() {
		if stays[o.Key] {
			continue
		}
		live, err := decode(o)
		if err != nil {
			errs = append(errs, Error{Code: Code(schema.Internal), Key: o.Key, Message: err.Error()})
			continue
		}
		m := metadataOf(live)
		if text(m, "labels", SetLabel) != r.Set {
			continue
		}
		if text(m, "annotations", PruneAnnotation) == "false" {
			errs = append(errs, Error{Code: Protected, Key: o.Key, Field: "metadata.annotations[" + PruneAnnotation + "]", Message: fmt.Sprintf(
				"%s belongs to the set %q, is not among its manifests and is protected: add it to them, or remove its annotation %s first",
				o.Key, r.Set, PruneAnnotation)})
			continue
		}
		gone = append(gone, removal(o.Key, o))
	}
	return gone, errs
}

func removal(key federation.ObjectKey, stored *config.Object) Change {
	return Change{Key: key, Action: config.Deleted, Before: stored}
}

// text returns m[field][key] where it is a text.
func text(m map[string]any, field, key string) string {
	inner, _ := m[field].(map[string]any)
	s, _ := inner[key].(string)
	return s
}
