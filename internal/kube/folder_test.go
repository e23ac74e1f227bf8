package kube

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// script runs looks through one folder; a content of "BAD" is refused by its check.
func goodUnlessBad(content []byte) error {
	if bytes.HasPrefix(content, []byte("BAD")) {
		return &Refusal{Findings: []Finding{{Code: CodeExec, Field: "users[0].user.exec", Message: "no"}}}
	}
	return nil
}

func whole(name, content string) listed {
	return listed{name: name, content: []byte(content), settled: true}
}

func partial(name, content string) listed { return listed{name: name, content: []byte(content)} }

func printed(events []FileEvent) string {
	var lines []string
	for _, event := range events {
		line := fmt.Sprintf("%s %s", event.Kind, event.ID)
		if event.Kind == FileReady {
			line += "=" + string(event.Content)
		}
		if event.Kind == FileProblem {
			line += " " + string(event.Problem.Code) + " " + strings.Join(event.Files, "+")
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "; ")
}

func TestFolderSteps(t *testing.T) {
	type step struct {
		look []listed
		want string
	}
	unreadable := listed{name: "a.yaml", settled: true, problem: Finding{Code: CodeUnreadable, Field: "a.yaml", Message: "x"}}
	cases := map[string][]step{
		"new, changed, removed": {
			{[]listed{whole("a.yaml", "1"), whole("b", "1")}, "ready a=1; ready b=1"},
			{[]listed{whole("a.yaml", "1"), whole("b", "1")}, ""},
			{[]listed{whole("a.yaml", "2"), whole("b", "1")}, "ready a=2"},
			{[]listed{whole("b", "1")}, ""},
			{[]listed{whole("b", "1")}, "gone a"},
			{[]listed{whole("b", "1")}, ""},
		},
		"half written": {
			{[]listed{partial("a.yaml", "")}, ""},
			{[]listed{partial("a.yaml", "BA")}, ""},
			{[]listed{partial("a.yaml", "BAC")}, ""},
			{[]listed{partial("a.yaml", "BAC")}, "ready a=BAC"},
			{[]listed{partial("a.yaml", "BAD")}, ""},
			{[]listed{whole("a.yaml", "good")}, "ready a=good"},
		},
		"broken for a moment": {
			{[]listed{whole("a.yaml", "1")}, "ready a=1"},
			{[]listed{whole("a.yaml", "BAD")}, "problem a exec a.yaml"},
			{[]listed{whole("a.yaml", "BAD")}, ""},
			{[]listed{whole("a.yaml", "1")}, "ready a=1"},
			{[]listed{unreadable}, "problem a unreadable a.yaml"},
			{[]listed{whole("a.yaml", "1")}, "ready a=1"},
		},
		"replaced by a rename": {
			{[]listed{whole("a.yaml", "1")}, "ready a=1"},
			{nil, ""},
			{[]listed{partial("a.yaml", "2")}, ""},
			{[]listed{partial("a.yaml", "2")}, "ready a=2"},
		},
		"two files of one ID": {
			{[]listed{whole("a.yaml", "1"), whole("a.kubeconfig", "2"), whole("b", "1")}, "problem a two-files a.kubeconfig+a.yaml; ready b=1"},
			{[]listed{whole("a.yaml", "1"), whole("b", "1")}, ""},
			{[]listed{whole("a.yaml", "1"), whole("b", "1")}, "ready a=1"},
			{[]listed{whole("a.yaml", "1"), whole("a.kubeconfig", "2"), whole("b", "1")}, "problem a two-files a.kubeconfig+a.yaml"},
		},
		"renamed to another suffix": {
			{[]listed{whole("a.yaml", "1")}, "ready a=1"},
			{[]listed{whole("a.kubeconfig", "1")}, ""},
			{[]listed{whole("a.kubeconfig", "1")}, ""},
		},
		"names that are not IDs": {
			{
				[]listed{whole("A.yaml", "1"), whole("a.b.yaml", "1"), whole("c_d", "1")},
				"problem A cluster-id A.yaml; problem a.b cluster-id a.b.yaml; problem c_d cluster-id c_d",
			},
		},
		"names that are not text": {
			{[]listed{whole("\xff\xfe.yaml", "1"), whole("b", "1")}, "ready b=1; problem \uFFFD cluster-id \xff\xfe.yaml"},
			{[]listed{whole("b", "1")}, ""},
			{[]listed{whole("b", "1")}, "gone \uFFFD"},
		},
	}
	for name, steps := range cases {
		t.Run(name, func(t *testing.T) {
			state := newFolder(goodUnlessBad)
			for i, step := range steps {
				if events, _ := state.step(step.look); printed(events) != step.want {
					t.Fatalf("step %d: got %q, want %q", i, printed(events), step.want)
				}
			}
		})
	}
}

func TestFolderAsksForAnotherLook(t *testing.T) {
	state := newFolder(nil)
	for i, c := range []struct {
		look []listed
		want bool
	}{{[]listed{partial("a", "1")}, true}, {[]listed{partial("a", "1")}, false}, {nil, true}, {nil, false}} {
		if _, again := state.step(c.look); again != c.want {
			t.Errorf("look %d: again is %v", i, again)
		}
	}
}

func TestCheckErrorsOfOtherKinds(t *testing.T) {
	state := newFolder(func([]byte) error { return errors.New("no") })
	if events, _ := state.step([]listed{whole("a", "1")}); printed(events) != "problem a syntax a" {
		t.Errorf("got %q", printed(events))
	}
}

// The problem of a file names the code of its only finding once.
func TestAProblemOfAFileNamesItsCodeOnce(t *testing.T) {
	refusal := &Refusal{Findings: []Finding{{Code: CodeExec, Field: "users[0].user.exec", Message: "no"}}}
	f := newFolder(func([]byte) error { return refusal })
	events, _ := f.step([]listed{whole("a.yaml", "x")})
	if len(events) != 1 || events[0].Problem.String() != "a.yaml: kubeconfig refused: users[0].user.exec: no (exec)" {
		t.Errorf("got %v", events)
	}
}
