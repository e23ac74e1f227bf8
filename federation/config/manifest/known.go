package manifest

// fewFields is how many fields of an object are looked through one by one.
const fewFields = 16

// known finds out whether an object has a key twice.
type known struct {
	of    *place
	lines map[string]int // once there are more than a few fields
}

// line is where the object has the key already.
func (k *known) line(key string) (line int, seen bool) {
	if k.lines != nil {
		line, seen = k.lines[key]
		return line, seen
	}
	for i := range k.of.fields {
		if k.of.fields[i].key == key {
			return k.of.fields[i].line, true
		}
	}
	return 0, false
}

// add takes a field that the object has not yet.
func (k *known) add(field place) {
	k.of.fields = append(k.of.fields, field)
	switch {
	case k.lines != nil:
		k.lines[field.key] = field.line
	case len(k.of.fields) > fewFields:
		k.lines = make(map[string]int, 2*len(k.of.fields))
		for _, f := range k.of.fields {
			k.lines[f.key] = f.line
		}
	}
}
