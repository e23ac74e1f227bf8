package federation

import (
	"net/netip"
	"slices"
	"testing"
	"time"
)

var probedAt = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// probed is an edit with what the observer found of a gateway.
func probed(observer NetworkID, gateway string, reachable bool) Edit {
	key := VerdictKey{Observer: observer, Gateway: netip.MustParseAddrPort(gateway)}
	return Edit{Verdicts: Delta[VerdictKey, Verdict]{Set: map[VerdictKey]Verdict{key: {Reachable: reachable, Since: probedAt}}}}
}

func threeGateways() []Edit {
	return []Edit{attach("c1", "n1"), attach("c2", "n2"), attach("c3", "n3"), networkObject("n2", &NetworkObject{Gateways: []NetworkGateway{
		{Address: "192.0.2.1"}, {Address: "192.0.2.2"}, {Address: "192.0.2.3", From: []NetworkID{"n3"}},
	}})}
}

// TestF85UnreachableGatewaysAreLeftOut, for the observers that cannot
// reach them and for no other; TestF86: never the last.
func TestF85UnreachableGatewaysAreLeftOut(t *testing.T) {
	const one, two, three = "192.0.2.1:15443", "192.0.2.2:15443", "192.0.2.3:15443"
	for name, c := range map[string]struct {
		verdicts []Edit
		from1    []string
		from3    []string
		states   []GatewayState // from n1
	}{
		"nothing found": {nil, []string{one, two}, []string{one, two, three}, []GatewayState{Unprobed, Unprobed, NotServing}},
		"all is well": {
			[]Edit{probed("n1", one, true), probed("n1", two, true)},
			[]string{one, two},
			[]string{one, two, three},
			[]GatewayState{Reachable, Reachable, NotServing},
		},
		"one is dead": {
			[]Edit{probed("n1", one, false), probed("n1", two, true)},
			[]string{two},
			[]string{one, two, three},
			[]GatewayState{Unreachable, Reachable, NotServing},
		},
		"one, others quiet": {
			[]Edit{probed("n1", one, false)},
			[]string{two},
			[]string{one, two, three},
			[]GatewayState{Unreachable, Unprobed, NotServing},
		},
		"F86 all are dead": {
			[]Edit{probed("n1", one, false), probed("n1", two, false)},
			[]string{one, two},
			[]string{one, two, three},
			[]GatewayState{LastResort, LastResort, NotServing},
		},
		"F86 those that serve another are not a remainder": {
			[]Edit{probed("n1", one, false), probed("n1", two, false), probed("n1", three, true)},
			[]string{one, two},
			[]string{one, two, three},
			[]GatewayState{LastResort, LastResort, NotServing},
		},
		"seen from elsewhere": {
			[]Edit{probed("n3", one, false), probed("n3", three, false)},
			[]string{one, two},
			[]string{two},
			[]GatewayState{Unprobed, Unprobed, NotServing},
		},
		"back again": {
			[]Edit{probed("n1", one, false), probed("n1", one, true)},
			[]string{one, two},
			[]string{one, two, three},
			[]GatewayState{Reachable, Unprobed, NotServing},
		},
		"of a gateway not there": {
			[]Edit{probed("n1", "192.0.2.9:15443", false)},
			[]string{one, two},
			[]string{one, two, three},
			[]GatewayState{Unprobed, Unprobed, NotServing},
		},
	} {
		t.Run(name, func(t *testing.T) {
			n, _ := after(append(threeGateways(), c.verdicts...)...).Network("n2")
			if got := gatewayTexts(n, "n1"); !slices.Equal(got, c.from1) {
				t.Errorf("n1 enters by %q, want %q", got, c.from1)
			}
			if got := gatewayTexts(n, "n3"); !slices.Equal(got, c.from3) {
				t.Errorf("n3 enters by %q, want %q", got, c.from3)
			}
			if got := n.GatewayStatesFrom("n1"); !slices.Equal(got, c.states) {
				t.Errorf("for n1 their states are %q, want %q", got, c.states)
			}
		})
	}
}

// TestVerdictsOutlastGateways: a gateway that goes and comes is judged as before,
// and what is withdrawn leaves nothing.
func TestVerdictsOutlastGateways(t *testing.T) {
	const one = "192.0.2.1:15443"
	edits := threeGateways()
	s := after(append([]Edit{probed("n1", one, false)}, edits...)...) // whatever comes first
	if n, _ := s.Network("n2"); !slices.Equal(gatewayTexts(n, "n1"), []string{"192.0.2.2:15443"}) {
		t.Errorf("n1 enters by %q", gatewayTexts(n, "n1"))
	}
	s, changes := Next(s, Edit{Verdicts: Delta[VerdictKey,
		Verdict]{Gone: []VerdictKey{{Observer: "n1", Gateway: netip.MustParseAddrPort(one)}}}})
	n, _ := s.Network("n2")
	if len(gatewayTexts(n, "n1")) != 2 || !slices.Equal(changes.Networks, []NetworkID{"n2"}) {
		t.Errorf("after it was withdrawn n1 enters by %q, and the changes are %+v", gatewayTexts(n, "n1"), changes)
	}
	s, _ = Next(s, probed("n1", one, false))
	s, _ = Next(s, Edit{Verdicts: Delta[VerdictKey, Verdict]{Full: true}})
	if n, _ := s.Network("n2"); len(n.Gateways[0].Verdicts) != 0 {
		t.Errorf("after a full edit without it, the verdict is %+v", n.Gateways[0].Verdicts)
	}
}

// TestVerdictsCostWhatChanged: the network concerned changes, nothing else, and
// nothing for what was known.
func TestVerdictsCostWhatChanged(t *testing.T) {
	s := after(append(threeGateways(), networkObject("n3", &NetworkObject{Gateways: []NetworkGateway{{Address: "192.0.2.8"}}}))...)
	s, changes := Next(s, probed("n1", "192.0.2.1:15443", false))
	if !slices.Equal(changes.Networks, []NetworkID{"n2"}) || len(changes.Services)+len(changes.Clusters)+len(changes.Objects) != 0 ||
		changes.Settings {
		t.Errorf("the changes are %+v", changes)
	}
	if n, _ := s.Network("n2"); n.Version != s.Version() {
		t.Errorf("n2 is of version %d of %d", n.Version, s.Version())
	}
	again, changes := Next(s, probed("n1", "192.0.2.1:15443", false))
	if again != s || !changes.Empty() {
		t.Errorf("what was known made %+v", changes)
	}
}
