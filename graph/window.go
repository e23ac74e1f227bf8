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
		return asked, transport.Errorf(transport.BadUserInput, "%s takes first or last, not both", list)
	}
	for _, size := range []*int{first, last} {
		if size != nil && (*size < 1 || *size > maxPage) {
			return asked, transport.Errorf(transport.BadUserInput, "the page of %s has a size from 1 to %d", list, maxPage)
		}
	}
	for _, end := range []struct {
		cursor *string
		key    *string
	}{{after, &asked.After}, {before, &asked.Before}} {
		if end.cursor == nil {
			continue
		}
		key, ok := model.CursorKey(list, *end.cursor)
		if !ok {
			return asked, transport.Errorf(transport.BadUserInput, "a cursor is not one of the list %s; leave it out to begin anew", list)
		}
		*end.key = key
	}
	return asked, nil
}
