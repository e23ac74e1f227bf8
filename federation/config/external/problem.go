package external

import (
	"fmt"

	"isthmus.dev/isthmus/federation"
)

// Codes of the problems that the translation finds.
const (
	codeAddress     = "ADDRESS_INVALID"
	codePort        = "PORT_INVALID"
	codePortUnknown = "PORT_UNKNOWN"
	codeProtocol    = "APP_PROTOCOL_UNKNOWN"
	codeEndpoint    = "ENDPOINT_UNUSED"
	codeNotHonoured = "NOT_HONOURED"
	codeWildcard    = "WILDCARD_WITHOUT_ENDPOINTS"
	codeOlder       = "DECIDED_BY_OLDER"
	codeMore        = "MORE_PROBLEMS"
)

// mostProblems bounds what one object may say.
const mostProblems = 16

// notes collects the problems of one object, at most mostProblems and a count
// of the rest.
type notes struct {
	object string
	found  []federation.Problem
	more   int
}

func notesOn(key federation.ObjectKey) *notes {
	return &notes{object: key.Title()}
}

func (n *notes) add(code, field, format string, args ...any) {
	if len(n.found) == mostProblems {
		n.more++
		return
	}
	n.found = append(n.found, federation.Problem{Code: code, Object: n.object, Field: field, Message: fmt.Sprintf(format, args...)})
}

func (n *notes) all() []federation.Problem {
	if n.more == 0 {
		return n.found
	}
	return append(n.found, federation.Problem{
		Code: codeMore, Object: n.object, Message: fmt.Sprintf("%d more problems of this object are not listed", n.more),
	})
}

// quote shows a value from outside: escaped, and cut to a readable length.
func quote(value string) string {
	if len(value) > 64 {
		return fmt.Sprintf("%.64q (cut)", value)
	}
	return fmt.Sprintf("%q", value)
}
