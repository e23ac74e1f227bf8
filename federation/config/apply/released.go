package apply

import (
	"k8s.io/apimachinery/pkg/util/json"

	"isthmus.dev/isthmus/federation/config/schema"
)

// manyDocuments is how many documents of a request are kept as they were read. What
// was read of the others is released until they are merged (R63).
const manyDocuments = 256

// released is the manifest without what was read of it, which takes many times its text. Its
// value stays as JSON, which is about as long as the text and is read at a fraction of the cost.
func (w requested) released() requested {
	w.document = w.document.Released()
	if w.document.Value != nil {
		return w // it cannot be read again
	}
	if !hasFractions(w.value) {
		w.compact, _ = schema.JSON(w.value) // nil: it is read again
	}
	w.value = nil
	return w
}

// again is the manifest with its value. Where its fields are, only reread knows.
func (w requested) again() requested {
	switch {
	case w.value != nil:
		return w
	case w.compact == nil || json.Unmarshal(w.compact, &w.value) != nil:
		return w.reread()
	}
	return w
}

// reread is the manifest as it was before it was released.
func (w requested) reread() requested {
	w.document = w.document.Again()
	w.value = w.document.Value
	keyOf(w.kind, w.value, w.key.Namespace) // fills in the namespace
	return w
}

// placed are the errors of a manifest, with the places of their fields.
func (w requested) placed(errs []Error) []Error {
	if len(errs) == 0 {
		return nil
	}
	w = w.reread()
	for i := range errs {
		errs[i].Place = w.place(errs[i].Field)
	}
	return errs
}

// hasFractions reports whether a value has a number that JSON may give back as another type:
// 1.0 as 1.
func hasFractions(value any) bool {
	switch value := value.(type) {
	case float64:
		return true
	case map[string]any:
		for _, member := range value {
			if hasFractions(member) {
				return true
			}
		}
	case []any:
		for _, item := range value {
			if hasFractions(item) {
				return true
			}
		}
	}
	return false
}
