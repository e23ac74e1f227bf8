package wanted_test

import (
	"slices"
	"testing"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/gatewayapi"
	"isthmus.dev/isthmus/federation/config/writeback/wanted"
)

// TestG113PortsThatProxiesHaveThemselves: a listener whose port the proxies of the Gateway have for themselves is not accepted, and
// others go on.
func TestG113PortsThatProxiesHaveThemselves(t *testing.T) {
	holding := func(types ...string) (all []gatewayapi.Condition) {
		for _, kind := range types {
			all = append(all, gatewayapi.Condition{Type: kind, Status: true, Reason: kind})
		}
		return all
	}
	for _, kind := range []string{"Gateway", "ListenerSet"} {
		key := edgeOf(kind)
		for name, test := range map[string]struct {
			found []wanted.Finding
			of    []string
			first string
		}{
			"no port":    {nil, []string{"Accepted True Accepted", "Programmed True Programmed"}, "Accepted True Accepted"},
			"another":    {[]wanted.Finding{{Code: "RULE_IGNORED", Message: key.String() + " spec.listeners[0]: a"}}, []string{"Accepted True Accepted", "Programmed True Programmed"}, "Accepted True Accepted"},
			"one of two": {[]wanted.Finding{{Code: "PORT_RESERVED", Message: key.String() + " spec.listeners[0]: a"}}, []string{"Accepted True ListenersNotValid", "Programmed True Programmed"}, "Accepted False PortUnavailable"},
			"both": {[]wanted.Finding{
				{Code: "PORT_RESERVED", Message: key.String() + " spec.listeners[1]: b"},
				{Code: "PORT_RESERVED", Message: key.String() + " spec.listeners[0]: a"},
			}, []string{"Accepted True ListenersNotValid", "Programmed False Invalid"}, "Accepted False PortUnavailable"},
		} {
			m := wanted.Mesh{
				Read: federation.Empty().Read(),
				Gateways: func(federation.ObjectKey) (gatewayapi.Status, bool) {
					return gatewayapi.Status{Controller: "c", Conditions: holding("Accepted", "Programmed"), Listeners: []gatewayapi.ListenerStatus{
						{Name: "a", Conditions: holding("Accepted", "Programmed", "ResolvedRefs")}, {Name: "b", Conditions: holding("Accepted", "Programmed", "ResolvedRefs")},
					}}, true
				},
				Delivered: func(...federation.ObjectKey) (wanted.Delivery, bool) { return wanted.Delivery{Accepted: 1}, true },
				Findings:  func(federation.ObjectKey) []wanted.Finding { return test.found },
			}
			status, _ := wanted.For(m, wanted.Object{Cluster: "c1", Key: key})
			if got := says(status.Conditions); !slices.Equal(got, test.of) {
				t.Errorf("%s of a %s: the conditions are %q", name, kind, got)
			}
			if got := says(status.Listeners[0].Conditions); got[0] != test.first {
				t.Errorf("%s of a %s: the conditions of the listener are %q", name, kind, got)
			}
		}
	}
}
