package graph

import (
	"isthmus.dev/isthmus/graph/model"
	"isthmus.dev/isthmus/graph/transport"
)

const maxPage = 500

// window checks what a client asked for of the list of that name.
func window(list string, first *int, after *string, last *int, before *string) (model.Window, error) {
	asked := model.Window{First: first, Last: last}
	if first != nil && last != nil {
		return asked, transport.BadArgument("last", "%s takes first or last, not both", list)
	}
	for name, size := range map[string]*int{"first": first, "last": last} {
		if size != nil && (*size < 1 || *size > maxPage) {
			return asked, transport.BadArgument(name, "the page of %s has a size from 1 to %d", list, maxPage)
		}
	}
	for _, end := range []struct {
		name        string
		cursor, key *string
	}{{"after", after, &asked.After}, {"before", before, &asked.Before}} {
		if end.cursor == nil {
			continue
		}
		key, ok := model.CursorKey(list, *end.cursor)
		if !ok {
			return asked, transport.BadArgument(end.name, "this is not a cursor of %s; omit it to start with the first item", list)
		}
		*end.key = key
	}
	return asked, nil
}
