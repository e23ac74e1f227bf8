package config_test

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"pgregory.net/rapid"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
)

var (
	foundAt = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	probed  = federation.VerdictKey{Observer: "n1", Gateway: netip.MustParseAddrPort("192.0.2.1:15443")}
)

// opinion is what a hub found of the one gateway, so many minutes after noon;
// nothing where minutes are negative.
func opinion(t testing.TB, hub string, reachable bool, minutes int) config.Event {
	t.Helper()
	found := federation.GatewayHealth{Observer: "n1", Reachable: reachable}
	if minutes >= 0 {
		found.Since = map[netip.AddrPort]time.Time{probed.Gateway: foundAt.Add(time.Duration(minutes) * time.Minute)}
	}
	o, err := config.NewGatewayHealth(hub, found)
	if err != nil {
		t.Fatal(err)
	}
	if err := o.CheckName(); err != nil {
		t.Fatal(err)
	}
	return config.Event{New: o}
}

// TestHubsAgreeOnGateways: one that reached a gateway outvotes all others, and
// what the last one says is what a snapshot gets.
func TestHubsAgreeOnGateways(t *testing.T) {
	up := func(hub string, minutes int) config.Event { return opinion(t, hub, true, minutes) }
	down := func(hub string, minutes int) config.Event { return opinion(t, hub, false, minutes) }
	gone := func(e config.Event) config.Event { return config.Event{Old: e.New} }
	for name, c := range map[string]struct {
		events []config.Event
		want   string
	}{
		"one, reachable":                       {[]config.Event{up("a", 1)}, "reachable since 12:01"},
		"one, not":                             {[]config.Event{down("a", 1)}, "unreachable since 12:01"},
		"any is enough":                        {[]config.Event{down("a", 1), up("b", 2), down("c", 3)}, "reachable since 12:02"},
		"since the first reached it":           {[]config.Event{up("a", 3), up("b", 1)}, "reachable since 12:01"},
		"since the last did not":               {[]config.Event{down("a", 3), down("b", 1)}, "unreachable since 12:03"},
		"a hub that found it now and before":   {[]config.Event{down("a", 1), up("a", 2)}, "reachable since 12:02"},
		"one that is gone":                     {[]config.Event{up("a", 1), down("b", 2), gone(up("a", 1))}, "unreachable since 12:02"},
		"all that are gone":                    {[]config.Event{up("a", 1), gone(up("a", 1))}, "nothing"},
		"one that says nothing of it any more": {[]config.Event{up("a", 1), up("a", -1)}, "nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			state := config.NewState(config.Options{Hub: "hub"})
			verdicts := map[federation.VerdictKey]federation.Verdict{}
			for i, e := range c.events {
				var edit federation.Edit
				state, edit = state.Next([]config.Event{e}, int64(i))
				take(verdicts, edit.Verdicts)
				if len(edit.Objects.Set)+len(edit.Services.Set)+len(edit.Problems.Set) > 0 {
					t.Errorf("it also means %+v", edit)
				}
			}
			if got := shownVerdict(verdicts); got != c.want {
				t.Errorf("it is %s, want %s", got, c.want)
			}
		})
	}
}

func take(verdicts map[federation.VerdictKey]federation.Verdict, d federation.Delta[federation.VerdictKey, federation.Verdict]) {
	for _, key := range d.Gone {
		delete(verdicts, key)
	}
	for key, v := range d.Set {
		verdicts[key] = v
	}
}

func shownVerdict(verdicts map[federation.VerdictKey]federation.Verdict) string {
	v, known := verdicts[probed]
	if !known {
		return "nothing"
	}
	return map[bool]string{true: "reachable", false: "unreachable"}[v.Reachable] + " since " + v.Since.Format("15:04")
}

// TestPropertyAgreementHasNoOrder.
func TestPropertyAgreementHasNoOrder(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var events []config.Event
		for i := range rapid.IntRange(1, 5).Draw(rt, "hubs") {
			events = append(events, opinion(t, fmt.Sprint(i), rapid.Bool().Draw(rt, "reachable"), rapid.IntRange(-1, 9).Draw(rt, "minutes")))
		}
		seen := func(events []config.Event) string {
			verdicts := map[federation.VerdictKey]federation.Verdict{}
			state := config.NewState(config.Options{Hub: "hub"})
			for _, e := range events {
				var edit federation.Edit
				state, edit = state.Next([]config.Event{e}, 1)
				take(verdicts, edit.Verdicts)
			}
			return shownVerdict(verdicts)
		}
		if one, other := seen(events), seen(rapid.Permutation(events).Draw(rt, "order")); one != other {
			rt.Errorf("it is %s, and in another order %s", one, other)
		}
	})
}
