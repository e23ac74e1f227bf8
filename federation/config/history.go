package config

import "time"

// Step is what one revision did to one object. Of a step whose record is not kept
// any more and was not noted, only Revision is known.
type Step struct {
	Revision int64
	Action   Action
	Time     time.Time
	Author   string
	Message  string
	Manager  string
}

// ObjectHistory is what was done to one object.
type ObjectHistory struct {
	Steps []Step // the newest first
	// Compacted means that older steps existed and are not kept any more.
	Compacted bool
}

// StepOf is the step that a revision with that note made.
func StepOf(revision int64, action Action, n Note) Step {
	return Step{Revision: revision, Action: action, Time: n.Time, Author: n.Author, Message: n.Message, Manager: n.Manager}
}
