package federation

import (
	"fmt"
	"unicode/utf8"
)

// Codes of problems that several rooms report.
const (
	CodeWorkloadUnhealthy = "WORKLOAD_UNHEALTHY" // the agent of the workload does not report that it is healthy
	CodeHubFault          = "HUB_FAULT"          // the hub panicked over the object, or cannot build what it asks for
	CodeMoreProblems      = "MORE_PROBLEMS"      // the object has more than are listed
)

// MostProblems bounds the problems that are reported of one object.
const MostProblems = 16

// ObjectProblems collects the problems of one object, at most MostProblems and a count
// of the rest.
type ObjectProblems struct {
	Object string // as in Problem
	Rest   string // the field of the count of the rest
	found  []Problem
	more   int
}

// Add adds a problem with the field.
func (o *ObjectProblems) Add(code, field, format string, args ...any) {
	if len(o.found) == MostProblems {
		o.more++
		return
	}
	o.found = append(o.found, Problem{Code: code, Object: o.Object, Field: field, Message: fmt.Sprintf(format, args...)})
}

// All returns the problems.
func (o *ObjectProblems) All() []Problem {
	if o.more == 0 {
		return o.found
	}
	return append(o.found, Problem{
		Code: CodeMoreProblems, Object: o.Object, Field: o.Rest,
		Message: fmt.Sprintf("%d more problems of this object are not listed", o.more),
	})
}

// Quote shows a value from outside in a message: escaped, and cut to a readable length.
func Quote(value string) string {
	const most = 64
	if len(value) <= most {
		return fmt.Sprintf("%q", value)
	}
	cut := most
	for cut > 0 && !utf8.RuneStart(value[cut]) {
		cut--
	}
	return fmt.Sprintf("%q (cut)", value[:cut])
}
