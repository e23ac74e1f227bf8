package model

import (
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/apply"
)

// Outcome is the result of a request that changes the configuration.
type Outcome struct {
	DryRun     bool
	Revision   *string
	Changes    []ConfigChange
	Findings   []Finding
	Preview    *Preview
	Rollout    *Rollout
	UserErrors []UserError
}

// ApplyPayload is the result of an apply.
type ApplyPayload struct {
	Outcome
	Ticket *string
}

// DeletePayload is the result of a deletion.
type DeletePayload struct{ Outcome }

// RollbackPayload is the result of a rollback.
type RollbackPayload struct{ Outcome }

// ConfigChange is what a request does to one object.
type ConfigChange struct {
	Action ChangeAction
	Object ObjectRef
	change apply.Change
}

// Diff is computed on request: it costs more than the rest.
func (c *ConfigChange) Diff() *string { return nonEmpty(c.change.Diff()) }

// NewOutcome shows a result.
func NewOutcome(r apply.Result) Outcome {
	out := Outcome{
		DryRun: r.DryRun, Changes: make([]ConfigChange, len(r.Changes)), Findings: Findings(r.Findings), UserErrors: UserErrors(r.Errors),
	}
	if r.Revision != 0 {
		revision := Revision(r.Revision)
		out.Revision = &revision
	}
	for i, c := range r.Changes {
		out.Changes[i] = ConfigChange{Action: ChangeAction(c.Action), Object: NewObjectRef(c.Key, 0), change: c}
		if c.Object != nil && !r.DryRun {
			out.Changes[i].Object = NewObjectRef(c.Key, c.Object.Revision)
		}
	}
	return out
}

// Findings shows findings.
func Findings(all []apply.Finding) []Finding {
	out := make([]Finding, len(all))
	for i, f := range all {
		out[i] = Finding{
			Code: f.Code, DocURL: findingDoc(f.Code), Severity: Severity(f.Severity), Message: f.Message, Object: reference(f.Key),
			Field: nonEmpty(f.Field), Related: references(f.Related),
		}
	}
	return out
}

func references(keys []federation.ObjectKey) []ObjectRef {
	out := make([]ObjectRef, len(keys))
	for i, key := range keys {
		out[i] = NewObjectRef(key, 0)
	}
	return out
}

// UserErrors shows why a request is refused.
func UserErrors(all []apply.Error) []UserError {
	out := make([]UserError, len(all))
	for i, e := range all {
		doc := docURL(string(e.Code))
		out[i] = UserError{
			Code: string(e.Code), DocURL: &doc, Message: e.Message, Field: nonEmpty(e.Field), Object: reference(e.Key), Manager: nonEmpty(e.Manager),
			File: nonEmpty(e.Place.File), Document: counted(e.Place.Document), Line: counted(e.Place.Line), Column: counted(e.Place.Column),
		}
	}
	return out
}

func reference(key federation.ObjectKey) *ObjectRef {
	if key == (federation.ObjectKey{}) {
		return nil
	}
	ref := NewObjectRef(key, 0)
	return &ref
}

// counted is nil for 0, which is not a number of a line.
func counted(n int) *int {
	if n == 0 {
		return nil
	}
	return &n
}
