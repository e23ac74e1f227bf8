package manifest

import (
	"slices"
	"strconv"
	"strings"
)

// place is where a value stands: a field at its key, an item at its value.
type place struct {
	spot
	key    string // within an object
	fields []place
	byKey  map[string]int // indexes of fields, once there are more than a few
	items  []place
}

// child returns the place of a field, or that of the object itself.
func (p *place) child(key string) *place {
	if i := p.field(key); i >= 0 {
		return &p.fields[i]
	}
	return p
}

// fewFields is how many fields of an object are looked through one by one.
const fewFields = 16

// field is the index of the field with that key, or -1. Of an object with very many fields each may be looked for.
func (p *place) field(key string) int {
	if p.byKey != nil {
		if i, has := p.byKey[key]; has {
			return i
		}
		return -1
	}
	return slices.IndexFunc(p.fields, func(f place) bool { return f.key == key })
}

// add takes a field that the object does not have yet.
func (p *place) add(field place) {
	p.fields = append(p.fields, field)
	switch {
	case p.byKey != nil:
		p.byKey[field.key] = len(p.fields) - 1
	case len(p.fields) > fewFields:
		p.byKey = make(map[string]int, 2*len(p.fields))
		for i, f := range p.fields {
			p.byKey[f.key] = i
		}
	}
}

func (p *place) index(i int) *place {
	if i >= 0 && i < len(p.items) {
		return &p.items[i]
	}
	return p
}

// Position tells where the field of that path stands, such as
// spec.http[0].route[1].destination.host or metadata.labels[app]. Where the path
// is not in the document, it is the place of the innermost part that is.
func (d Document) Position(path string) (line, column int) {
	at := d.place
	if at == nil {
		return d.Line, 1
	}
	for _, step := range steps(path) {
		next := at.child(step)
		if i, err := strconv.Atoi(step); err == nil && len(at.items) > 0 {
			next = at.index(i)
		}
		if next == at {
			break
		}
		at = next
	}
	return at.line, at.column
}

// steps takes a field path apart.
func steps(path string) []string {
	var list []string
	for path != "" {
		switch path[0] {
		case '.':
			path = path[1:]
		case '[':
			end := strings.IndexByte(path, ']')
			if end < 0 {
				return append(list, path[1:])
			}
			list = append(list, strings.Trim(path[1:end], `"'`))
			path = path[end+1:]
		default:
			end := strings.IndexAny(path, ".[")
			if end < 0 {
				end = len(path)
			}
			list = append(list, path[:end])
			path = path[end:]
		}
	}
	return list
}
