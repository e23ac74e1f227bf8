package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/registries/registrytest"
)

// told runs the events through a follower, all of them waiting at once, and
// returns how many edits they made.
func told(f *follower, heard *registrytest.Recorder, events ...event) int {
	before := heard.View().Edits
	for _, e := range events {
		f.take(e)
	}
	f.flush()
	return heard.View().Edits - before
}

func lists(epoch uint64, services ...object) []event {
	out := []event{listed{kind: kindServices, items: services, epoch: epoch}}
	for k := kindSlices; k < kinds; k++ {
		out = append(out, listed{kind: k, epoch: epoch})
	}
	return out
}

func TestEventsThatWaitAreOneEdit(t *testing.T) {
	heard := &registrytest.Recorder{}
	f := newFollower(New(Options{}), heard)
	events := make(chan event, mostEvents)
	for _, e := range lists(1) {
		events <- e
	}
	for i := range 1000 {
		events <- changed{kind: kindServices, set: parse(t, strings.ReplaceAll(plainService, "web", fmt.Sprint("s", i%10)))}
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.run(ctx, events)
	}()
	v := heard.Wait(t, "the services", func(v registrytest.View) bool { return len(v.Services) == 10 })
	cancel()
	<-done
	if v.Edits != 1 {
		t.Errorf("%d edits", v.Edits)
	}
	heard.Check(t)
}

// TestListsOfTwoHistoriesAreNeverMixed: after a new epoch began nothing is said
// until everything was listed in it; what is said then is one full edit.
func TestListsOfTwoHistoriesAreNeverMixed(t *testing.T) {
	heard := &registrytest.Recorder{}
	f := newFollower(New(Options{}), heard)
	first := lists(1, parse(t, plainService))
	for i, e := range first {
		if n := told(f, heard, e); (n == 1) != (i == len(first)-1) {
			t.Fatalf("%d edits after %d lists", n, i+1)
		}
	}
	second := lists(2, parse(t, strings.ReplaceAll(plainService, "web", "other")))
	for i, e := range second {
		n := told(f, heard, e, changed{kind: kindPods, set: parse(t, podYAML)})
		if (n == 1) != (i == len(second)-1) {
			t.Fatalf("%d edits after %d lists of the new epoch", n, i+1)
		}
	}
	last := heard.Edits()[1]
	if !last.Services.Full || len(last.Services.Set) != 1 || !last.Workloads.Full || len(last.Workloads.Set) != 1 {
		t.Errorf("edit %+v", last)
	}
	if n := told(f, heard, second...); n != 1 { // objects without versions count as changed
		t.Errorf("%d edits after a list within the epoch", n)
	}
	heard.Check(t)
}

// TestBK19NothingIsUsedWhileAGroupIsMissing: what other kinds say meanwhile waits.
func TestBK19NothingIsUsedWhileAGroupIsMissing(t *testing.T) {
	heard := &registrytest.Recorder{}
	f := newFollower(New(Options{}), heard)
	told(f, heard, append(lists(1), probed{uid: "u1"})...)
	missing := accessError{verb: "list", resource: "endpointslices", err: apierrors.NewNotFound(schema.GroupResource{}, "")}
	told(f, heard, followed{kind: kindSlices, err: missing})
	later := parse(t, serviceYAML)
	if n := told(f, heard, changed{kind: kindServices, set: later}); n != 0 || heard.View().Status.Phase != federation.Held {
		t.Errorf("%d edits, and it is %+v", n, heard.View().Status)
	}
	if n := told(f, heard, listed{kind: kindSlices, epoch: 1}, followed{kind: kindSlices}); n != 1 || len(heard.View().Services) != 1 {
		t.Errorf("once the group is back there are %d edits and %d services", n, len(heard.View().Services))
	}
}

// TestBK19VersionsOfAServer: one after the other is an upgrade, three within a
// minute are none; until it is steady, losing the link does not make it better.
func TestBK19VersionsOfAServer(t *testing.T) {
	g := newGate(nil, "", time.Second)
	ask := func(times int, versions ...string) (err error) {
		for i := range times {
			_, err = g.end(round{uid: "u1", server: versions[i%len(versions)]})
		}
		return err
	}
	if err := ask(40, "1.34", "1.35"); err != nil {
		t.Errorf("an upgrade: %v", err)
	}
	if err := ask(40, ""); err != nil {
		t.Errorf("it does not say: %v", err)
	}
	err := ask(3, "1.34", "1.35", "1.36")
	if err == nil || !strings.Contains(err.Error(), `"1.34", "1.35", "1.36"`) {
		t.Fatalf("another one each time: %v", err)
	}
	if again := ask(3, "1.37", "1.38"); !errors.Is(again, err) {
		t.Errorf("and on: %v", again)
	}
	if _, cut := g.end(round{err: errors.New("the link is cut")}); !errors.Is(cut, err) {
		t.Errorf("without a link: %v", cut)
	}
	if err := ask(12, "1.36"); err != nil {
		t.Errorf("it is steady: %v", err)
	}
}

// TestF47AnotherClusterStaysHeld while it does not answer; the known one heals.
func TestF47AnotherClusterStaysHeld(t *testing.T) {
	g := newGate(nil, "u1", time.Second)
	for _, step := range []struct {
		round round
		want  string
	}{
		{round{uid: "u1"}, ""},
		{round{err: errors.New("the link is cut")}, "the link is cut"},
		{round{uid: "u2"}, "another cluster"},
		{round{err: errors.New("the link is cut")}, "another cluster"},
		{round{uid: "u1"}, ""},
	} {
		if _, err := g.end(step.round); err == nil && step.want != "" || err != nil && (step.want == "" || !strings.Contains(err.Error(), step.want)) {
			t.Errorf("after %+v: %v", step.round, err)
		}
	}
}

func TestStatusOfTheLink(t *testing.T) {
	heard := &registrytest.Recorder{}
	f := newFollower(New(Options{}), heard)
	all := func(err error) []event {
		var out []event
		for k := range kinds {
			out = append(out, followed{kind: k, err: err})
		}
		return out
	}
	cut := errors.New("the link is cut")
	missing := accessError{verb: "list", resource: "endpointslices", err: apierrors.NewNotFound(schema.GroupResource{}, "")}
	for _, step := range []struct {
		name    string
		events  []event
		phase   federation.Phase
		message string
	}{
		{"no answer", []event{probed{err: cut}}, federation.Stale, "the link is cut"},
		{"an answer", []event{probed{uid: "u1"}}, federation.Syncing, ""},
		{"lists, and one kind is not watched yet", append(lists(1), all(nil)[1:]...), federation.Syncing, ""},
		{"all watched", all(nil), federation.Ready, ""},
		{"one watch broke", []event{followed{kind: kindPods, err: accessError{verb: "watch", resource: "pods", err: ownError("it broke")}}}, federation.Stale, "watch pods: it broke"},
		{"it is back", []event{followed{kind: kindPods}}, federation.Ready, ""},
		{"the probe fails, sessions end", append(all(errAsked), probed{err: cut}), federation.Stale, "the link is cut"},
		{"the probe is back, watches are not", []event{probed{uid: "u1"}}, federation.Stale, "the link is cut"},
		{"all are back", all(nil), federation.Ready, ""},
		{"a group is missing", []event{followed{kind: kindSlices, err: missing}}, federation.Held, "does not offer endpointslices"},
		{"it is back", []event{followed{kind: kindSlices}}, federation.Ready, ""},
		{"another version each time", append(all(errAsked), probed{err: unsteadyError{"1, 2, 3"}}), federation.Held, "another version each time it is asked (1, 2, 3)"},
		{"it is steady", append([]event{probed{uid: "u1"}}, all(nil)...), federation.Ready, ""},
		{"another cluster", []event{probed{err: foreignError{want: "u1", have: "u2"}}}, federation.Held, "another cluster"},
	} {
		told(f, heard, step.events...)
		if s := heard.View().Status; s.Phase != step.phase || !strings.Contains(s.Message, step.message) || step.message == "" && s.Message != "" {
			t.Errorf("%s: %+v", step.name, s)
		}
	}
	if v := heard.View(); v.Edits != 1 || v.Identity.UID != "u1" {
		t.Errorf("%d edits, identity %+v", v.Edits, v.Identity)
	}
}
