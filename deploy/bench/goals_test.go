package main

import "testing"

// TestG101MissedGoalsFail: a figure above its goal is printed as such, and makes the program fail.
func TestG101MissedGoalsFail(t *testing.T) {
	var g goals
	if said := g.check("reading", 1.5, 1.5); said != "goal 1.5" || g.err() != nil {
		t.Errorf("a figure at its goal: %q, %v", said, g.err())
	}
	if said := g.check("a change", 2, 1.3); said != "above the goal 1.3" {
		t.Errorf("a figure above its goal: %q", said)
	}
	if said := g.check("reading", 1, 1.5); said != "goal 1.5" || g.err() == nil || g.err().Error() != "a change is 2.00, above the goal 1.3" {
		t.Errorf("one of three is above its goal: %q, %v", said, g.err())
	}
}
