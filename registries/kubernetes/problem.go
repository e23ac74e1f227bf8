package kubernetes

import (
	"fmt"
	"unicode/utf8"

	"isthmus.dev/isthmus/federation"
)

// Codes of the problems that the translation finds.
const (
	codeAddress     = "ADDRESS_INVALID"
	codeAddressType = "ADDRESS_TYPE_UNSUPPORTED"
	codePort        = "PORT_INVALID"
	codeProtocol    = "PROTOCOL_UNSUPPORTED"
	codeAppProtocol = "APP_PROTOCOL_UNKNOWN"
	codeExport      = "EXPORT_TO_INVALID"
	codeExternal    = "EXTERNAL_NAME_REFUSED"
	codeNoPorts     = "EXTERNAL_NAME_NO_PORTS"
	codeTarget      = "TARGET_MISMATCH"
	codePod         = "POD_UNKNOWN"
	codeLocality    = "LOCALITY_INVALID"
	codeNetwork     = "NETWORK_INVALID"
	codeProbe       = "PROBE_INVALID"
	codeDistribute  = "TRAFFIC_DISTRIBUTION_NOT_HONOURED"
	codeMore        = "MORE_PROBLEMS"
	codeFault       = "HUB_FAULT"

	codeInternalPolicy = "INTERNAL_TRAFFIC_POLICY_NOT_SUPPORTED"
)

// mostProblems bounds what one object may say.
const mostProblems = 16

// notes collects the problems of one object, at most mostProblems and a count
// of the rest.
type notes struct {
	object string
	part   string // sets apart what two readers of one object find
	found  []federation.Problem
	more   int
}

func notesOn(kind string, k key) notes { return notes{object: kind + " " + k.String()} }

func (n *notes) add(code, field, format string, args ...any) {
	if len(n.found) == mostProblems {
		n.more++
		return
	}
	n.found = append(n.found, federation.Problem{Code: code, Object: n.object, Field: field, Message: fmt.Sprintf(format, args...)})
}

// all returns the problems.
func (n *notes) all() []federation.Problem {
	if n.more == 0 {
		return n.found
	}
	return append(n.found, federation.Problem{
		Code: codeMore, Object: n.object, Field: n.part + "(more)",
		Message: fmt.Sprintf("%d more problems of this object are not listed", n.more),
	})
}

// problemName is the name by which the registry finds a problem again.
func problemName(p federation.Problem) string { return p.Object + " " + p.Field }

// quote shows a value from outside: escaped, and cut to a readable length.
func quote(value string) string {
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
