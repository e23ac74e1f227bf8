package wanted

import (
	"fmt"
	"strings"

	gateway "sigs.k8s.io/gateway-api/apis/v1"

	"isthmus.dev/isthmus/federation"
)

// unusable counts the listeners that are valid, and that proxies cannot have.
type unusable struct {
	secrets int // those of which a Secret is missing
	ports   int // those whose port the proxies, or the agents beside them, have for themselves
}

// why says what is wrong; "": nothing.
func (u unusable) why() string {
	var all []string
	if u.secrets > 0 {
		all = append(all, "Secrets of listeners are missing")
	}
	if u.ports > 0 {
		all = append(all, "proxies listen at ports of listeners themselves")
	}
	return strings.Join(all, "; ")
}

// portReserved is the code of findings of proxies that have the port of a listener for themselves.
const portReserved = "PORT_RESERVED"

// reservedPort says why proxies do not listen at the port of the object's listener; "": nothing says that they do not.
func reservedPort(m Mesh, of federation.ObjectKey, listener int) string {
	if m.Findings == nil {
		return ""
	}
	at := fmt.Sprintf("%s spec.listeners[%d]: ", of, listener)
	for _, f := range m.Findings(of) {
		if why, is := strings.CutPrefix(f.Message, at); is && f.Code == portReserved {
			return why
		}
	}
	return ""
}

// withoutPort are the conditions of a listener whose port proxies cannot have.
func withoutPort(conditions []Condition, message string) []Condition {
	for i, c := range conditions {
		switch {
		case c.Status == no && !c.Pending:
		case c.Type == accepted:
			conditions[i] = Condition{Type: accepted, Status: no, Reason: string(gateway.ListenerReasonPortUnavailable), Message: message}
		case c.Type == programmed:
			conditions[i] = Condition{Type: programmed, Status: no, Reason: string(gateway.ListenerReasonInvalid), Message: message}
		}
	}
	return conditions
}

// withUnusable are the conditions of an object of whose listeners some cannot be used. Of several
// listeners, the others work.
func withUnusable(conditions []Condition, of unusable, listeners int) []Condition {
	message := of.why()
	if message == "" {
		return conditions
	}
	for i, c := range conditions {
		switch {
		case c.Type == accepted && c.Status == yes:
			conditions[i].Reason, conditions[i].Message = string(gateway.GatewayReasonListenersNotValid), message
		case c.Type == programmed && c.Status == yes && of.secrets+of.ports == listeners:
			conditions[i] = Condition{Type: programmed, Status: no, Reason: string(gateway.GatewayReasonInvalid), Message: message}
		}
	}
	return conditions
}
