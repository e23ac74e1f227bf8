package consul

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"isthmus.dev/isthmus/federation"
)

// maxProblems bounds what one service can say wrong of itself.
const maxProblems = 20

// report collects the problems of one service.
type report struct {
	service string
	found   []federation.Problem
	dropped []string // tags and meta that make no label
}

func (r *report) ofService(code, field, message string) {
	r.found = append(r.found, federation.Problem{Code: code, Object: "Service " + plain(r.service), Field: field, Message: message})
}

func (r *report) ofInstance(id, code, field, message string) {
	r.found = append(r.found, federation.Problem{Code: code, Object: "instance " + plain(id), Field: field, Message: message})
}

func (r *report) ignored(entries []string) { r.dropped = append(r.dropped, entries...) }

// problems are the collected ones, one for a code, object and field, sorted.
func (r *report) problems() []federation.Problem {
	if len(r.dropped) > 0 {
		slices.Sort(r.dropped)
		r.dropped = slices.Compact(r.dropped)
		shown := make([]string, 0, 3)
		for _, s := range r.dropped[:min(3, len(r.dropped))] {
			shown = append(shown, quote(s))
		}
		r.ofService("LABEL_IGNORED", "Tags and Meta", fmt.Sprintf("%d entries make no label and are not used: %s",
			len(r.dropped), strings.Join(shown, ", ")))
	}
	slices.SortFunc(r.found, func(a, b federation.Problem) int {
		return cmp.Or(cmp.Compare(a.Code, b.Code), cmp.Compare(a.Object, b.Object), cmp.Compare(a.Field, b.Field),
			cmp.Compare(a.Message, b.Message))
	})
	r.found = slices.CompactFunc(r.found, func(a, b federation.Problem) bool {
		return a.Code == b.Code && a.Object == b.Object && a.Field == b.Field
	})
	if more := len(r.found) - maxProblems; more > 0 {
		r.found = r.found[:maxProblems]
		r.ofService("LIMIT", "", fmt.Sprintf("%d more problems are not shown", more))
	}
	return r.found
}
