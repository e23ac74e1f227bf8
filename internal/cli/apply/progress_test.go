package apply

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"isthmus.dev/isthmus/client"
	"isthmus.dev/isthmus/internal/cli/cmdutil"
	"isthmus.dev/isthmus/internal/cli/session"
)

func TestProgressOnATerminalIsOneLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e strings.Builder
		p := &progress{to: &e, live: true, began: time.Now()}
		p.print("1 of 2")
		p.print("1 of 2")
		if err := p.last("2 of 2"); err != nil {
			t.Fatal(err)
		}
		if got, want := e.String(), "\r\x1b[K1 of 2 (0s)\r\x1b[K1 of 2 (0s)\r\x1b[K2 of 2\n"; got != want {
			t.Errorf("it writes %q, want %q", got, want)
		}
	})
}

func TestWaitingTellsProgressAndRefusals(t *testing.T) {
	zero := 0
	yes, no := true, false
	words := "port 0"
	rollout := func(r client.Rollout) client.Outcome { return client.Outcome{Rollout: &r} }
	refusal := client.Rollout{Delivered: 2, Acked: 1, Rejected: 1, Reached: &no}
	refusal.Proxies.Nodes = []client.ProxyProgress{{NodeID: "p2", State: client.RolloutStateRejected, Error: &words}}
	many := refusal // U91: more than the hub lists on a page
	many.Delivered, many.Rejected = 52, 51
	for name, c := range map[string]struct {
		first  client.Outcome
		then   []client.Outcome
		says   string
		failed string
	}{
		"at once":   {rollout(client.Rollout{Delivered: 2, Acked: 2, Reached: &yes}), nil, "2 of 2 proxies received it, 2 accepted it\n", ""},
		"nobody":    {rollout(client.Rollout{Reached: &yes}), nil, "no connected proxy", ""},
		"not known": {client.Outcome{}, nil, "", "cannot tell"},
		"later": {
			rollout(client.Rollout{Pending: 2, Reached: &no}),
			[]client.Outcome{
				rollout(client.Rollout{Pending: 1, Delivered: 1, Acked: 1, Reached: &no}),
				rollout(client.Rollout{Delivered: 2, Acked: 2, Reached: &yes}),
			},
			"0 of 2 proxies received it, 0 accepted it\n1 of 2 proxies received it, 1 accepted it\n2 of 2 proxies received it, 2 accepted it\n", "",
		},
		"refused": {
			rollout(refusal), nil, "p2 rejected it: port 0\n",
			"but 2 of 2 proxies received it, 1 accepted it, 1 rejected it; correct the objects",
		},
		"refused by many": {rollout(many), nil, "p2 rejected it: port 0\nand 50 more rejected it\n", "51 rejected it"},
		"refused later": {
			rollout(client.Rollout{Pending: 2, Reached: &no}),
			[]client.Outcome{{UserErrors: []client.UserError{{Code: "BUSY", Message: "m", Line: &zero}}}},
			"m [BUSY]", "1 problem",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var e strings.Builder
			s := &session.Session{IO: cmdutil.Streams{Out: &e, Err: &e}, Timeout: time.Minute}
			err := awaitProxies(t.Context(), s, &waiting{state: "acked", share: 1}, c.first,
				func(context.Context, time.Duration) (client.Outcome, error) {
					next := c.then[0]
					c.then = c.then[1:]
					return next, nil
				})
			if (err == nil) != (c.failed == "") || err != nil && !strings.Contains(err.Error(), c.failed) || !strings.Contains(e.String(), c.says) {
				t.Errorf("it says %q and %v", e.String(), err)
			}
		})
	}
	late := &session.Session{IO: cmdutil.Streams{Err: &strings.Builder{}}, Timeout: time.Nanosecond}
	err := awaitProxies(t.Context(), late, &waiting{state: "acked"}, rollout(client.Rollout{Pending: 1, Reached: &no}), nil)
	if err == nil || !strings.Contains(err.Error(), "--timeout") || !strings.Contains(err.Error(), "the change was made") {
		t.Errorf("when the time is over: %v", err)
	}
}
