package manifest

import (
	"fmt"
	"strings"
)

// take keeps a document, or the items of the list that it is.
func (p *parser) take(d Document) {
	kind, _ := d.Value["kind"].(string)
	items, isList := d.Value["items"].([]any)
	if !isList || !strings.HasSuffix(kind, "List") {
		p.keep(d)
		return
	}
	for i, item := range items {
		place := d.place.child("items").index(i)
		object, ok := item.(map[string]any)
		if !ok {
			p.report(place.spot, fmt.Sprintf("items[%d]", i), NotAnObject,
				"the item is %s where an object with apiVersion and kind is expected", describe(item))
			continue
		}
		p.take(Document{File: d.File, Index: d.Index, Item: i, Line: place.line, Value: object, place: place})
	}
}

func (p *parser) keep(d Document) {
	if p.used < p.limits.Documents {
		p.used++
		p.use(d)
		return
	}
	for _, seen := range p.problems {
		if seen.Code == TooManyDocuments {
			return
		}
	}
	p.report(d.place.spot, "", TooManyDocuments, "the file has more than the %d documents allowed: split it", p.limits.Documents)
}

// describe names the type of a value.
func describe(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case string:
		return "a string"
	case bool:
		return "a boolean"
	case int64, float64:
		return "a number"
	case []any:
		return "a list"
	}
	return "an object"
}
