package apply

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"isthmus.dev/isthmus/client"
	"isthmus.dev/isthmus/internal/cli/cmdutil"
	"isthmus.dev/isthmus/internal/cli/output"
	"isthmus.dev/isthmus/internal/cli/session"
)

// waiting are the flags that say what to wait for.
type waiting struct {
	state string
	share float64
}

func (w *waiting) bind(f *pflag.FlagSet) {
	f.StringVar(&w.state, "wait", "", "wait until proxies have the change: `STATE` is acked (also without a value) or delivered")
	f.Lookup("wait").NoOptDefVal = "acked"
	f.Float64Var(&w.share, "share", 1, "the share of the affected proxies that --wait waits for, 0 to 1")
}

func (w *waiting) check() error {
	if w.share < 0 || w.share > 1 {
		return cmdutil.Usagef("--share: %v is not from 0 to 1", w.share)
	}
	if w.state == "" {
		return nil
	}
	return cmdutil.OneOf("wait", w.state, "acked", "delivered")
}

// turn is how long the hub is asked to wait within one request. Longer waits are
// many requests with one idempotency key, between which progress is printed.
const turn = 2 * time.Second

// input is what a request asks the hub to wait for; nil: nothing.
func (w *waiting) input(atMost time.Duration) *client.WaitInput {
	if w.state == "" {
		return nil
	}
	timeout := atMost.Round(time.Millisecond).String()
	return &client.WaitInput{State: client.WaitState(strings.ToUpper(w.state)), Share: &w.share, Timeout: &timeout}
}

// sendChange sends a change of the configuration, with a key that makes repeating it
// harmless, prints the result, and waits for proxies if the flags ask for it.
func sendChange(
	ctx context.Context, s *session.Session, w *waiting, o output.Format,
	send func(context.Context, *client.WaitInput, *string) (client.Outcome, error),
) error {
	key := rand.Text()
	short, cancel := s.Within(ctx)
	defer cancel()
	of, err := send(short, w.input(0), &key)
	if err != nil {
		return unanswered(err)
	}
	if err := warn(s.IO, of); err != nil {
		return err
	}
	if len(of.UserErrors) > 0 {
		return refused(s.IO, of.UserErrors)
	}
	if err := printOutcome(s.IO.Out, o, of); err != nil {
		return err
	}
	if o.Name == "table" {
		if _, err := fmt.Fprintln(s.IO.Err, summary(of)); err != nil {
			return err
		}
	}
	if w.state == "" || of.DryRun {
		return nil
	}
	return awaitProxies(ctx, s, w, of, func(ctx context.Context, atMost time.Duration) (client.Outcome, error) {
		return send(ctx, w.input(atMost), &key)
	})
}

// unanswered is the error of a change that the hub may make all the same.
func unanswered(err error) error {
	if errors.Is(err, cmdutil.ErrTimeout) {
		return fmt.Errorf("%w; the hub may make the change all the same: look with \"isthmus history\" before you repeat it, and apply many objects in parts", err)
	}
	return err
}

// awaitProxies repeats a request until what is waited for came to pass.
func awaitProxies(
	ctx context.Context, s *session.Session, w *waiting, of client.Outcome, again func(context.Context, time.Duration) (client.Outcome, error),
) error {
	p := newProgress(s)
	defer p.done()
	for {
		r := of.Rollout
		switch {
		case r == nil:
			return fmt.Errorf("the change was made, but this hub cannot tell which proxies have it; look with \"isthmus get proxies\"")
		case r.Reached != nil && *r.Reached:
			return p.last(rolloutText(r))
		case r.Reached == nil: // a finding says which proxies are not counted
			p.done()
			if p.turns > 0 {
				if err := warn(s.IO, of); err != nil {
					return err
				}
			}
			return p.last(rolloutText(r) + " (only proxies of this hub are counted)")
		}
		left := s.Timeout - time.Since(p.began)
		allAnswered := w.state == "acked" && r.Pending == 0 && r.Delivered == r.Acked+r.Rejected && r.Rejected > 0
		if left <= 0 || allAnswered {
			return p.failure(r, allAnswered)
		}
		p.print(rolloutText(r))
		bounded, cancel := context.WithTimeoutCause(ctx, min(left, turn)+10*time.Second, cmdutil.ErrTimeout)
		next, err := again(bounded, min(left, turn))
		cancel()
		if err != nil {
			return fmt.Errorf("the change was made, but waiting for proxies failed: %w", err)
		}
		if len(next.UserErrors) > 0 {
			return refused(s.IO, next.UserErrors)
		}
		of.Rollout, of.Findings = next.Rollout, next.Findings
		p.turns++
	}
}

func rolloutText(r *client.Rollout) string {
	all := r.Pending + r.Delivered
	if all == 0 {
		return "no connected proxy is affected"
	}
	text := fmt.Sprintf("%d of %d proxies received it, %d accepted it", r.Delivered, all, r.Acked)
	if r.Rejected > 0 {
		text += fmt.Sprintf(", %d rejected it", r.Rejected)
	}
	return text
}

// progress prints the progress of something: on a terminal in one line that is written
// over, else in a line whenever it differs.
type progress struct {
	to      io.Writer
	live    bool // to takes a line that is written over
	timeout time.Duration
	began   time.Time
	told    string
	turns   int
}

func newProgress(s *session.Session) *progress {
	return &progress{to: s.IO.Err, live: s.Look.Live, timeout: s.Timeout, began: time.Now()}
}

func (p *progress) print(text string) {
	switch {
	case p.live:
		_, _ = fmt.Fprintf(p.to, "\r\x1b[K%s (%s)", text, time.Since(p.began).Round(time.Second)) // its own error cannot be shown
	case text != p.told:
		_, _ = fmt.Fprintln(p.to, text) // its own error cannot be shown
	}
	p.told = text
}

// done removes the line.
func (p *progress) done() {
	if p.live && p.told != "" {
		_, _ = fmt.Fprint(p.to, "\r\x1b[K") // its own error cannot be shown
	}
	p.told = ""
}

func (p *progress) last(text string) error {
	p.done()
	_, err := fmt.Fprintln(p.to, text)
	return err
}

// failure says which proxies rejected the change, in their words, and what to do: wait
// longer unless all proxies answered.
func (p *progress) failure(r *client.Rollout, allAnswered bool) error {
	p.done()
	for _, one := range r.Proxies.Nodes {
		if output.OrEmpty(one.Error) != "" {
			_, _ = fmt.Fprintf(p.to, "%s rejected it: %s\n", one.NodeID, *one.Error) // its own error cannot be shown
		}
	}
	if more := r.Rejected - len(r.Proxies.Nodes); more > 0 {
		_, _ = fmt.Fprintf(p.to, "and %d more rejected it\n", more) // its own error cannot be shown
	}
	after, next := "", `correct the objects, or go back with "isthmus rollback"`
	if !allAnswered {
		after = fmt.Sprintf("after %s ", time.Since(p.began).Round(100*time.Millisecond))
		next = `look with "isthmus get proxies", wait longer with --timeout, or go back with "isthmus rollback"`
	}
	return cmdutil.Failed{Code: cmdutil.ExitFailed, Text: fmt.Sprintf("the change was made, but %s%s; %s", after, rolloutText(r), next)}
}
