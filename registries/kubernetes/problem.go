package kubernetes

import "isthmus.dev/isthmus/federation"

// Codes of the problems that the translation finds.
const (
	codeAddress     = "ADDRESS_INVALID"
	codeAddressType = "ADDRESS_TYPE_UNSUPPORTED"
	codePort        = "PORT_INVALID"
	codeProtocol    = "PROTOCOL_UNSUPPORTED"
	codeAppProtocol = "APP_PROTOCOL_UNKNOWN"
	codeExport      = "EXPORT_TO_INVALID"
	codeAccount     = "SERVICE_ACCOUNT_INVALID"
	codeExternal    = "EXTERNAL_NAME_REFUSED"
	codeNoPorts     = "EXTERNAL_NAME_NO_PORTS"
	codeTarget      = "TARGET_MISMATCH"
	codePod         = "POD_UNKNOWN"
	codeLocality    = "LOCALITY_INVALID"
	codeNetwork     = "NETWORK_INVALID"
	codeProbe       = "PROBE_INVALID"
	codeDistribute  = "TRAFFIC_DISTRIBUTION_NOT_HONOURED"
	codeMore        = federation.CodeMoreProblems
	codeFault       = federation.CodeHubFault

	codeInternalPolicy = "INTERNAL_TRAFFIC_POLICY_NOT_SUPPORTED"
	codeAffinity       = "SESSION_AFFINITY_NOT_SUPPORTED"
)

// objectProblems are the problems of one object.
type objectProblems = federation.ObjectProblems

func problemsOf(kind string, k key) objectProblems { return about(kind + " " + k.String()) }

// about has a field for the count of the rest: problems are found again by it.
func about(object string) objectProblems { return objectProblems{Object: object, Rest: "(more)"} }

// problemName is the name by which the registry recognizes a problem.
func problemName(p federation.Problem) string { return p.Object + " " + p.Field }
