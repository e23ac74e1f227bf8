package output

import (
	"fmt"
	"strconv"
	"strings"

	"isthmus.dev/isthmus/client"
)

// Problem is something that keeps manifests from being taken.
type Problem struct {
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Object  string `json:"object,omitempty"`
	Field   string `json:"field,omitempty"`
	Code    string `json:"code"`
	Message string `json:"message"`
}

// String has the place first, so that editors can go there.
func (p Problem) String() string {
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

// namesField reports whether the message itself names its field.
func (p Problem) namesField() bool {
	return strings.HasPrefix(p.Message, p.Field+" ") || strings.Contains(p.Message, strconv.Quote(p.Field))
}

// ProblemOf is a problem that the hub has with a request.
func ProblemOf(e client.UserError) Problem {
	p := Problem{File: OrEmpty(e.File), Field: OrEmpty(e.Field), Code: e.Code, Message: e.Message}
	if e.Line != nil {
		p.Line = *e.Line
	}
	if e.Column != nil {
		p.Column = *e.Column
	}
	if e.Object != nil && e.Object.Name != "" {
		p.Object = RefName(*e.Object)
	}
	return p
}

// SourceProblems are the problems of a source of configuration, at most that many, and where the others are listed.
func SourceProblems(of client.Source, most int) []string {
	var all []string
	for _, p := range of.Problems[:min(len(of.Problems), most)] {
		all = append(all, Problem{Object: p.Object, Field: OrEmpty(p.Field), Code: p.Code, Message: p.Message}.String())
	}
	if more := len(of.Problems) - most; more > 0 {
		all = append(all, fmt.Sprintf("%d more: isthmus status", more))
	}
	return all
}

// FindingText is a finding in one line.
func FindingText(f client.Finding) string {
	p := Problem{Field: OrEmpty(f.Field), Code: f.Code, Message: f.Message}
	if f.Object != nil && f.Object.Name != "" {
		p.Object = RefName(*f.Object)
	}
	said := strings.ToLower(string(f.Severity)) + ": " + p.String()
	var related []string
	for _, r := range f.Related {
		if !strings.Contains(f.Message, r.Namespace+"/"+r.Name) {
			related = append(related, RefName(r))
		}
	}
	if len(related) > 0 {
		said += " (see " + strings.Join(related, ", ") + ")"
	}
	return said
}
