package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"isthmus.dev/isthmus/client"
)

// did is what a request does to an object, as kubectl says it.
func did(action client.ChangeAction) string {
	switch action {
	case client.ChangeActionCreate:
		return "created"
	case client.ChangeActionUpdate:
		return "configured"
	case client.ChangeActionDelete:
		return "deleted"
	}
	return "unchanged"
}

// failed is a command that told on standard error what is wrong; the error is the
// last line.
type failed struct {
	code int
	text string
}

func (f failed) Error() string { return f.text }

// problem is something that keeps manifests from being taken.
type problem struct {
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Object  string `json:"object,omitempty"`
	Field   string `json:"field,omitempty"`
	Code    string `json:"code"`
	Message string `json:"message"`
}

// String has the place first, so that editors can go there.
func (p problem) String() string {
	var out strings.Builder
	if p.File != "" {
		out.WriteString(p.File)
		if p.Line > 0 {
			fmt.Fprintf(&out, ":%d:%d", p.Line, max(p.Column, 1))
		}
		out.WriteString(": ")
	}
	if p.Object != "" {
		out.WriteString(p.Object + ": ")
	}
	if p.Field != "" && !p.namesField() {
		out.WriteString(p.Field + ": ")
	}
	fmt.Fprintf(&out, "%s [%s]", p.Message, p.Code)
	return out.String()
}

// namesField tells that the message says itself which field it speaks of.
func (p problem) namesField() bool {
	return strings.HasPrefix(p.Message, p.Field+" ") || strings.Contains(p.Message, strconv.Quote(p.Field))
}

func problemOf(e client.UserError) problem {
	p := problem{File: orEmpty(e.File), Field: orEmpty(e.Field), Code: e.Code, Message: e.Message}
	if e.Line != nil {
		p.Line = *e.Line
	}
	if e.Column != nil {
		p.Column = *e.Column
	}
	if e.Object != nil && e.Object.Name != "" {
		p.Object = refName(*e.Object)
	}
	return p
}

// refused tells every reason why a request was refused; the error says what to do.
func refused(io streams, reasons []client.UserError) error {
	codes := map[string]bool{}
	for _, r := range reasons {
		codes[r.Code] = true
		if _, err := fmt.Fprintln(io.err, problemOf(r)); err != nil {
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
	return failed{code: exitFailed, text: what + "; " + remedy(codes)}
}

// warn tells the findings of a request. That a dry run gives no ticket is told
// to nobody: the command line asks for none.
func warn(io streams, of client.Outcome) error {
	for _, f := range of.Findings {
		if of.DryRun && f.Code == "NOT_BUILT" {
			continue
		}
		if _, err := fmt.Fprintln(io.err, findingText(f)); err != nil {
			return err
		}
	}
	return nil
}

func findingText(f client.Finding) string {
	p := problem{Field: orEmpty(f.Field), Code: f.Code, Message: f.Message}
	if f.Object != nil && f.Object.Name != "" {
		p.Object = refName(*f.Object)
	}
	said := strings.ToLower(string(f.Severity)) + ": " + p.String()
	var related []string
	for _, r := range f.Related {
		if !strings.Contains(f.Message, r.Namespace+"/"+r.Name) {
			related = append(related, refName(r))
		}
	}
	if len(related) > 0 {
		said += " (see " + strings.Join(related, ", ") + ")"
	}
	return said
}

// printOutcome prints what was changed: lines, names, JSON or YAML.
func printOutcome(to io.Writer, o output, of client.Outcome) error {
	if o.isWhole() {
		value, err := shownAs("Outcome", of)
		if err != nil {
			return err
		}
		return o.printValue(to, value)
	}
	var errs []error
	for _, c := range of.Changes {
		text := refName(c.Object)
		if o.sort != "name" {
			text += " " + did(c.Action)
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
	for _, action := range []client.ChangeAction{client.ChangeActionCreate, client.ChangeActionUpdate, client.ChangeActionDelete, client.ChangeActionUnchanged} {
		if count[action] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", count[action], did(action)))
		}
	}
	all := cmp.Or(strings.Join(parts, ", "), "nothing to change")
	switch {
	case of.DryRun:
		return all + "; nothing was changed (dry run)"
	case count[client.ChangeActionUnchanged] == len(of.Changes):
		return all
	}
	return all + "; the configuration is at revision " + orEmpty(of.Revision)
}
