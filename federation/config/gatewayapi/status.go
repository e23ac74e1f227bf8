package gatewayapi

import (
	"fmt"
	"slices"
	"strings"

	gateway "sigs.k8s.io/gateway-api/apis/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
)

// Codes of problems that are not reasons of conditions.
const (
	codeClass = "GATEWAY_CLASS_UNKNOWN" // the Gateway names a class that does not exist
	codeTaken = "ROUTE_TAKEN"           // an older route has the host
)

// Condition is a condition of the Gateway API.
type Condition struct {
	Type    string
	Status  bool
	Reason  string // of the Gateway API, such as RefNotPermitted
	Field   string // that is at fault
	Message string
}

// ListenerStatus is how a listener of a Gateway is.
type ListenerStatus struct {
	Name       string
	Attached   int      // routes
	Kinds      []string // of routes that may attach
	Secrets    []Secret // from which gateways have what the listener needs
	Conditions []Condition
}

// Secret is a reference of a Gateway or of a listener to a Secret.
type Secret struct {
	Namespace, Name string
	Authorities     bool // those that sign the certificates of clients
	Granted         bool // it is of another namespace than the proxies
}

// ParentStatus is how a route attaches to one of its parents.
type ParentStatus struct {
	Parent     string // NAMESPACE/NAME, with /SECTION if the reference has one
	Ref        gateway.ParentReference
	Controller string // of the class of the Gateway
	Conditions []Condition
}

// Status is how an object is, as the Gateway API tells it. It is a function of the snapshot.
type Status struct {
	Object     federation.ObjectKey
	Digest     string                 // of the object of which this is the status
	Controller string                 // of the class of a Gateway that the hub serves
	Made       []federation.ObjectKey // what a Gateway was translated to
	Conditions []Condition            // of a Gateway and a GatewayClass
	Listeners  []ListenerStatus       // of a Gateway
	Secrets    []Secret               // of a Gateway: what its proxies present to backends
	Sets       int                    // ListenerSets that give a Gateway listeners
	Parents    []ParentStatus         // of a route
	notes      []config.Problem       // what is wrong beside conditions
}

// problems are what the status says that is wrong, each once.
func (s *Status) problems() []config.Problem {
	all := slices.Clone(s.notes)
	add := func(conditions []Condition) {
		for _, c := range conditions {
			if !c.Status {
				all = append(all, config.Problem{Code: codeOf(c.Reason), Object: s.Object.String(), Field: c.Field, Message: c.Message})
			}
		}
	}
	add(s.Conditions)
	for _, l := range s.Listeners {
		add(l.Conditions)
	}
	for _, p := range s.Parents {
		add(p.Conditions)
	}
	slices.SortFunc(all, config.Problem.Compare)
	all = slices.Compact(all)
	return slices.DeleteFunc(all, func(p config.Problem) bool { return p.Message == "" })
}

// reasons are those of the Gateway API that are problems, with their codes.
var reasons = []struct{ Reason, Code string }{
	{Reason: string(gateway.ListenerReasonUnsupportedProtocol), Code: "UNSUPPORTED_PROTOCOL"},
	{Reason: string(gateway.ListenerReasonUnsupportedValue), Code: "UNSUPPORTED_VALUE"},
	{Reason: string(gateway.ListenerReasonProtocolConflict), Code: "PROTOCOL_CONFLICT"},
	{Reason: string(gateway.ListenerReasonHostnameConflict), Code: "HOSTNAME_CONFLICT"},
	{Reason: string(gateway.ListenerReasonInvalidRouteKinds), Code: "INVALID_ROUTE_KINDS"},
	{Reason: string(gateway.ListenerReasonInvalidCertificateRef), Code: "INVALID_CERTIFICATE_REF"},
	{Reason: string(gateway.GatewayReasonInvalidClientCertificateRef), Code: "INVALID_CLIENT_CERTIFICATE_REF"},
	{Reason: string(gateway.ListenerReasonInvalidCACertificateRef), Code: "INVALID_CA_CERTIFICATE_REF"},
	{Reason: string(gateway.ListenerReasonInvalidCACertificateKind), Code: "INVALID_CA_CERTIFICATE_KIND"},
	{Reason: string(gateway.ListenerSetReasonNotAllowed), Code: "NOT_ALLOWED"},
	{Reason: string(gateway.ListenerEntryReasonTooManyListeners), Code: "TOO_MANY_LISTENERS"},
	{Reason: string(gateway.RouteReasonRefNotPermitted), Code: "REF_NOT_PERMITTED"},
	{Reason: string(gateway.RouteReasonNoMatchingParent), Code: "NO_MATCHING_PARENT"},
	{Reason: string(gateway.RouteReasonNotAllowedByListeners), Code: "NOT_ALLOWED_BY_LISTENERS"},
	{Reason: string(gateway.RouteReasonNoMatchingListenerHostname), Code: "NO_MATCHING_LISTENER_HOSTNAME"},
	{Reason: string(gateway.RouteReasonBackendNotFound), Code: "BACKEND_NOT_FOUND"},
	{Reason: string(gateway.RouteReasonInvalidKind), Code: "INVALID_KIND"},
	{Reason: string(gateway.BackendTLSPolicyReasonNoValidCACertificate), Code: "NO_VALID_CA_CERTIFICATE"},
	{Reason: string(gateway.PolicyReasonTargetNotFound), Code: "TARGET_NOT_FOUND"},
	{Reason: string(gateway.PolicyReasonConflicted), Code: "CONFLICTED"},
	{Reason: string(gateway.PolicyReasonInvalid), Code: "INVALID_POLICY"},
}

// codeOf is the code of a reason.
func codeOf(reason string) string {
	for _, r := range reasons {
		if r.Reason == reason {
			return r.Code
		}
	}
	return federation.CodeNotHonoured
}

// Notes are what is wrong with the object beside its conditions, but for parents that the hub does not serve: other
// controllers may.
func (s *Status) Notes() (all []Condition) {
	for _, p := range s.notes {
		if p.Object == s.Object.String() && !strings.HasPrefix(p.Field, "spec.parentRefs") {
			all = append(all, Condition{Field: p.Field, Message: p.Message})
		}
	}
	return all
}

func (s *Status) tell(code, field, format string, args ...any) {
	s.notes = append(s.notes, config.Problem{Code: code, Object: s.Object.String(), Field: field, Message: fmt.Sprintf(format, args...)})
}

func (s *Status) unsupported(field, format string, args ...any) {
	s.tell(federation.CodeNotHonoured, field, format, args...)
}

// faults are the conditions of a type that do not hold. The first says what the condition is.
type faults []Condition

func (f *faults) add(kind, reason, field, format string, args ...any) {
	*f = append(*f, Condition{Type: kind, Reason: reason, Field: field, Message: fmt.Sprintf(format, args...)})
}

func (f faults) has(kind string) bool {
	return slices.ContainsFunc(f, func(c Condition) bool { return c.Type == kind })
}

// conditions are all faults, and the types without any as conditions that hold.
func (f faults) conditions(types ...string) []Condition {
	all := slices.Clone(f)
	for _, kind := range types {
		if !f.has(kind) {
			all = append(all, Condition{Type: kind, Status: true, Reason: kind})
		}
	}
	slices.SortStableFunc(all, func(a, b Condition) int { return strings.Compare(a.Type, b.Type) })
	return all
}

// holds reports whether a condition of the type holds.
func holds(conditions []Condition, kind string) bool {
	return slices.ContainsFunc(conditions, func(c Condition) bool { return c.Type == kind && c.Status })
}

// The types of conditions that the hub computes.
const (
	accepted   = string(gateway.RouteConditionAccepted)
	resolved   = string(gateway.RouteConditionResolvedRefs)
	programmed = string(gateway.GatewayConditionProgrammed)
)
