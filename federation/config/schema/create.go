package schema

import (
	"slices"
	"time"
)

// create is Apply for an object that is not stored yet, without the library, which merges it
// with nothing in a dozen steps. It reports false for an object with which more would happen
// than that its applier owns all of its fields.
func (v *version) create(wanted map[string]any, o ApplyOptions) (Result, bool) {
	c, err := v.schema()
	if err != nil || c.shared || !c.readsAsItIs(wanted) || plainMetadata(wanted["metadata"]) == nil {
		return Result{}, false
	}
	fields := c.whole().ownedBesideIdentity(wanted)
	if len(fields) == 0 {
		return Result{}, false
	}
	metadata, _ := wanted["metadata"].(map[string]any)
	metadata["managedFields"] = []any{map[string]any{
		"manager": o.Manager, "operation": "Apply", "apiVersion": v.apiVersion(),
		"time": o.Now.UTC().Truncate(time.Second).Format(time.RFC3339), "fieldsType": "FieldsV1", "fieldsV1": fields,
	}}
	object, problems := v.admit(wanted, nil, asItIs)
	return Result{Object: object, Problems: problems}, true
}

// asItIs prepares an object that readsAsItIs.
func asItIs(*compiled, map[string]any) (conforms bool, problems []Problem) { return true, nil }

// ownedBesideIdentity are the fields of an object that has plain metadata, without those that
// nobody owns, as managedFields have them.
func (l *level) ownedBesideIdentity(object map[string]any) map[string]any {
	fields := l.owned(object, "apiVersion", "kind", "metadata")
	metadata, _ := object["metadata"].(map[string]any)
	if of := metadataLevel().owned(metadata, "name", "namespace"); len(of) > 0 {
		fields["f:metadata"] = of
	}
	return fields
}

// owned are the fields of an object that isPlain. Of a member of a map, and of an item of a
// list with keys, it says also that it is there.
func (l *level) owned(object map[string]any, without ...string) map[string]any {
	fields := make(map[string]any, len(object))
	for name, value := range object {
		if slices.Contains(without, name) {
			continue
		}
		at, declared := l.properties[name]
		if !declared {
			at = l.additional
		}
		of := at().ownedIn(value)
		if !declared && len(of) > 0 {
			of["."] = map[string]any{}
		}
		fields["f:"+name] = of
	}
	return fields
}

func (l *level) ownedIn(value any) map[string]any {
	switch value := value.(type) {
	case map[string]any:
		return l.owned(value)
	case []any:
		if l.keys != nil {
			return l.ownedItems(value)
		}
	}
	return map[string]any{} // as a whole
}

func (l *level) ownedItems(list []any) map[string]any {
	fields := make(map[string]any, len(list))
	for _, item := range list {
		of := l.items().ownedIn(item)
		of["."] = map[string]any{}
		name, _ := l.keyOf(item)
		fields["k:"+name] = of
	}
	return fields
}
