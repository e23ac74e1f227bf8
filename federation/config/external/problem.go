package external

import "isthmus.dev/isthmus/federation"

// Codes of the problems that the translation finds.
const (
	codeAddress     = "ADDRESS_INVALID"
	codePort        = "PORT_INVALID"
	codeReserved    = "PORT_OF_SIDECAR"
	codePortUnknown = "PORT_UNKNOWN"
	codeProtocol    = "APP_PROTOCOL_UNKNOWN"
	codeEndpoint    = "ENDPOINT_UNUSED"
	codeWildcard    = "WILDCARD_WITHOUT_ENDPOINTS"
	codeOlder       = "DECIDED_BY_OLDER"
	codeMore        = federation.CodeMoreProblems
)

// objectProblems are the problems of one object.
type objectProblems = federation.ObjectProblems

func problemsOf(key federation.ObjectKey) *objectProblems {
	return &objectProblems{Object: key.Title()}
}
