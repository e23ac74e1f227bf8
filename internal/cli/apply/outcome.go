package apply

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"

	"isthmus.dev/isthmus/client"
	"isthmus.dev/isthmus/internal/cli/cmdutil"
	"isthmus.dev/isthmus/internal/cli/output"
)

// refused tells every reason why a request was refused; the error says what to do.
func refused(io cmdutil.Streams, reasons []client.UserError) error {
	codes := map[string]bool{}
	for _, r := range reasons {
		codes[r.Code] = true
		if _, err := fmt.Fprintln(io.Err, output.ProblemOf(r)); err != nil {
			return err
		}
	}
	what := fmt.Sprintf("%d problems", len(reasons))
	if len(reasons) == 1 {
		what = "1 problem"
	}
	if !codes["UNAVAILABLE"] { // the store may have made what it did not answer
		what += ", nothing was changed"
	}
	return cmdutil.Failed{Code: cmdutil.ExitFailed, Text: what + "; " + cmdutil.Remedy(codes)}
}

// warn prints the findings of a request, except that a dry run gives no ticket: the
// command line asks for none.
func warn(io cmdutil.Streams, of client.Outcome) error {
	for _, f := range of.Findings {
		if of.DryRun && f.Code == "NOT_BUILT" {
			continue
		}
		if _, err := fmt.Fprintln(io.Err, output.FindingText(f)); err != nil {
			return err
		}
	}
	return nil
}

// printOutcome prints what was changed: lines, names, JSON or YAML.
func printOutcome(to io.Writer, o output.Format, of client.Outcome) error {
	if o.IsWhole() {
		value, err := output.ShownAs("Outcome", of)
		if err != nil {
			return err
		}
		return o.Print(to, value)
	}
	var errs []error
	for _, c := range of.Changes {
		text := output.RefName(c.Object)
		if o.Name != "name" {
			text += " " + output.Did(c.Action)
			if of.DryRun {
				text += " (dry run)"
			}
		}
		_, err := fmt.Fprintln(to, text)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// summary is the last line of a change, for people.
func summary(of client.Outcome) string {
	count := map[client.ChangeAction]int{}
	for _, c := range of.Changes {
		count[c.Action]++
	}
	var parts []string
	for _, action := range []client.ChangeAction{
		client.ChangeActionCreate, client.ChangeActionUpdate, client.ChangeActionDelete,
		client.ChangeActionUnchanged,
	} {
		if count[action] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", count[action], output.Did(action)))
		}
	}
	all := cmp.Or(strings.Join(parts, ", "), "nothing to change")
	switch {
	case of.DryRun:
		return all + "; nothing was changed (dry run)"
	case count[client.ChangeActionUnchanged] == len(of.Changes):
		return all
	}
	return all + "; the configuration is at revision " + output.OrEmpty(of.Revision)
}
