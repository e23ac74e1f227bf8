package main

import (
	"strings"
	"testing"
)

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

// TestG106PoliciesThatCostMoreFail: what a change costs with policies is compared with what it costs without them before and after.
func TestG106PoliciesThatCostMoreFail(t *testing.T) {
	var g goals
	if said := policyLine(&g, [3]float64{1e6, 1.2e6, 1.4e6}); !strings.Contains(said, "ratio 1.00 (goal 1.3)") || g.err() != nil {
		t.Errorf("policies that cost nothing: %q, %v", said, g.err())
	}
	if said := policyLine(&g, [3]float64{1e6, 1.6e6, 1.4e6}); !strings.Contains(said, "ratio 1.33 (above the goal 1.3)") || g.err() == nil {
		t.Errorf("policies that cost a third: %q, %v", said, g.err())
	}
}
