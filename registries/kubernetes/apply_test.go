package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/kube/listwatch"
	"isthmus.dev/isthmus/registries/registrytest"
)

// told runs the events through an applier, all of them waiting at once, and
// returns how many edits they made.
func told(f *applier, recorder *registrytest.Recorder, events ...event) int {
	before := recorder.View().Edits
	for _, e := range events {
		f.take(e)
	}
	f.flush()
	return recorder.View().Edits - before
}

func lists(epoch uint64, services ...object) []event {
	out := []event{listed{kind: kindServices, items: services, epoch: epoch}}
	for k := kindSlices; k < kinds; k++ {
		out = append(out, listed{kind: k, epoch: epoch})
	}
	return out
}

func TestEventsThatWaitAreOneEdit(t *testing.T) {
	recorder := &registrytest.Recorder{}
	f := newFollower(New(Options{}), recorder)
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
	v := recorder.Wait(t, "the services", func(v registrytest.View) bool { return len(v.Services) == 10 })
	cancel()
	<-done
	if v.Edits != 1 {
		t.Errorf("%d edits", v.Edits)
	}
	recorder.Check(t)
}

// TestListsOfTwoHistoriesAreNeverMixed: after a new epoch began nothing is sent
// until everything was listed in it; then one full edit is sent.
func TestListsOfTwoHistoriesAreNeverMixed(t *testing.T) {
	recorder := &registrytest.Recorder{}
	f := newFollower(New(Options{}), recorder)
	first := lists(1, parse(t, plainService))
	for i, e := range first {
		if n := told(f, recorder, e); (n == 1) != (i == len(first)-1) {
			t.Fatalf("%d edits after %d lists", n, i+1)
		}
	}
	second := lists(2, parse(t, strings.ReplaceAll(plainService, "web", "other")))
	for i, e := range second {
		n := told(f, recorder, e, changed{kind: kindPods, set: parse(t, podYAML)})
		if (n == 1) != (i == len(second)-1) {
			t.Fatalf("%d edits after %d lists of the new epoch", n, i+1)
		}
	}
	last := recorder.Edits()[1]
	if !last.Services.Full || len(last.Services.Set) != 1 || !last.Workloads.Full || len(last.Workloads.Set) != 1 {
		t.Errorf("edit %+v", last)
	}
	if n := told(f, recorder, second...); n != 1 { // objects without versions count as changed
		t.Errorf("%d edits after a list within the epoch", n)
	}
	recorder.Check(t)
}

// TestBK19NothingIsUsedWhileAGroupIsMissing: what other kinds say meanwhile waits.
func TestBK19NothingIsUsedWhileAGroupIsMissing(t *testing.T) {
	recorder := &registrytest.Recorder{}
	f := newFollower(New(Options{}), recorder)
	told(f, recorder, append(lists(1), probed{uid: "u1"})...)
	missing := listwatch.AccessError{Verb: "list", Resource: "endpointslices", Err: apierrors.NewNotFound(schema.GroupResource{}, "")}
	told(f, recorder, followed{kind: kindSlices, err: missing})
	later := parse(t, serviceYAML)
	if n := told(f, recorder, changed{kind: kindServices, set: later}); n != 0 || recorder.View().Status.Phase != federation.Held {
		t.Errorf("%d edits, and it is %+v", n, recorder.View().Status)
	}
	if n := told(f, recorder, listed{kind: kindSlices, epoch: 1}, followed{kind: kindSlices}); n != 1 || len(recorder.View().Services) != 1 {
		t.Errorf("once the group is back there are %d edits and %d services", n, len(recorder.View().Services))
	}
}

func TestStatusOfTheLink(t *testing.T) {
	recorder := &registrytest.Recorder{}
	f := newFollower(New(Options{}), recorder)
	all := func(err error) []event {
		var out []event
		for k := range kinds {
			out = append(out, followed{kind: k, err: err})
		}
		return out
	}
	cut := errors.New("the link is cut")
	missing := listwatch.AccessError{Verb: "list", Resource: "endpointslices", Err: apierrors.NewNotFound(schema.GroupResource{}, "")}
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
		{"one watch broke", []event{followed{kind: kindPods, err: listwatch.AccessError{
			Verb: "watch", Resource: "pods",
			Err: errors.New("it broke"),
		}}}, federation.Stale, "watch pods: it broke"},
		{"it is back", []event{followed{kind: kindPods}}, federation.Ready, ""},
		{"the probe fails, sessions end", append(all(listwatch.ErrRelist), probed{err: cut}), federation.Stale, "the link is cut"},
		{"the probe is back, watches are not", []event{probed{uid: "u1"}}, federation.Stale, "the link is cut"},
		{"all are back", all(nil), federation.Ready, ""},
		{"a group is missing", []event{followed{kind: kindSlices, err: missing}}, federation.Held, "does not offer endpointslices"},
		{"it is back", []event{followed{kind: kindSlices}}, federation.Ready, ""},
		{
			"another version each time", append(all(listwatch.ErrRelist), probed{err: listwatch.UnsteadyError{Versions: "1, 2, 3"}}),
			federation.Held, "another version each time it is asked (1, 2, 3)",
		},
		{"it is steady", append([]event{probed{uid: "u1"}}, all(nil)...), federation.Ready, ""},
		{"another cluster", []event{probed{err: listwatch.ForeignError{Want: "u1", Have: "u2"}}}, federation.Held, "another cluster"},
	} {
		told(f, recorder, step.events...)
		if s := recorder.View().Status; s.Phase != step.phase || !strings.Contains(s.Message, step.message) ||
			step.message == "" && s.Message != "" {
			t.Errorf("%s: %+v", step.name, s)
		}
	}
	if v := recorder.View(); v.Edits != 1 || v.Identity.UID != "u1" {
		t.Errorf("%d edits, identity %+v", v.Edits, v.Identity)
	}
}
