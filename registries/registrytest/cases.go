package registrytest

import (
	"fmt"
	"slices"
	"testing"

	"isthmus.dev/isthmus/federation"
)

func fullFirst(t *testing.T, rig Rig) {
	a, b := service("full-a", 1, 2), service("full-b", 3)
	apply(t, rig, a, b)
	heard, _ := Start(t, rig)
	waitReady(t, rig, heard, a, b)
	first := heard.Edits()[0]
	for _, s := range []Service{a, b} {
		if first.Services.Set[rig.Key(s.Name)] == nil {
			t.Errorf("the first edit lacks %s", s.Name)
		}
	}
	if first.Identity == nil || first.Identity.UID == "" {
		t.Error("the first edit does not say which cluster this is")
	}
}

func update(t *testing.T, rig Rig) {
	a, b := service("update-a", 1), service("update-b", 2)
	apply(t, rig, a, b)
	heard, _ := Start(t, rig)
	waitReady(t, rig, heard, a, b)
	heard.Always(only(rig, a.Name))
	for _, changed := range []Service{service(a.Name, 1, 5), service(a.Name, 5), service(a.Name)} {
		rig.Apply(t, changed)
		waitFor(t, rig, heard, changed)
	}
}

func remove(t *testing.T, rig Rig) {
	a, b := service("delete-a", 1), service("delete-b", 2)
	apply(t, rig, b)
	rig.Apply(t, a)
	heard, _ := Start(t, rig)
	waitReady(t, rig, heard, a, b)
	heard.Always(only(rig, a.Name))
	rig.Delete(t, a.Name)
	waitGone(t, rig, heard, a)
	rig.Apply(t, a)
	waitFor(t, rig, heard, a)
	rig.Delete(t, a.Name)
	waitGone(t, rig, heard, a)
}

func noDifference(t *testing.T, rig Rig) {
	a, b := service("same-a", 1), service("same-b", 2)
	apply(t, rig, a, b)
	heard, _ := Start(t, rig)
	waitReady(t, rig, heard, a, b)
	heard.Always(only(rig, b.Name))
	rig.Apply(t, a)
	b = service(b.Name, 2, 3)
	rig.Apply(t, b)
	waitFor(t, rig, heard, b)
}

func reconnect(t *testing.T, rig Rig) {
	a, b := service("reconnect-a", 1), service("reconnect-b", 2)
	apply(t, rig, a, b)
	heard, _ := Start(t, rig)
	waitReady(t, rig, heard, a, b)
	heard.Always(keeps(rig, a, b))
	before := heard.View().Edits
	rig.Cut(t)
	t.Cleanup(func() { rig.Mend(t) })
	stale := heard.WaitPhase(t, federation.Stale)
	if stale.Status.Message == "" {
		t.Error("the status says STALE and not why")
	}
	c := service("reconnect-c", 9)
	apply(t, rig, c)
	if after := heard.View().Edits; after != before {
		t.Errorf("%d edits came over a link that was cut", after-before)
	}
	rig.Mend(t)
	waitReady(t, rig, heard, a, b, c)
}

func deleteWhileDisconnected(t *testing.T, rig Rig) {
	a, b := service("away-a", 1), service("away-b", 2)
	apply(t, rig, b)
	rig.Apply(t, a)
	heard, _ := Start(t, rig)
	waitReady(t, rig, heard, a, b)
	heard.Always(keeps(rig, b))
	rig.Cut(t)
	t.Cleanup(func() { rig.Mend(t) })
	heard.WaitPhase(t, federation.Stale)
	rig.Delete(t, a.Name)
	if !Offers(heard.View(), rig.Key(a.Name), a) {
		t.Error("what the registry cannot see was removed")
	}
	rig.Mend(t)
	waitGone(t, rig, heard, a)
	heard.WaitPhase(t, federation.Ready)
}

func startDisconnected(t *testing.T, rig Rig) {
	a := service("late-a", 1)
	apply(t, rig, a)
	rig.Cut(t)
	t.Cleanup(func() { rig.Mend(t) })
	heard, _ := Start(t, rig)
	heard.Wait(t, "a status with a message", func(v View) bool { return v.Status.Message != "" })
	if v := heard.View(); v.Edits != 0 || v.Status.Phase == federation.Ready {
		t.Errorf("%d edits and phase %s without a server", v.Edits, v.Status.Phase)
	}
	rig.Mend(t)
	waitReady(t, rig, heard, a)
}

func ends(t *testing.T, rig Rig) {
	a := service("ends-a", 1)
	apply(t, rig, a)
	heard, stop := Start(t, rig)
	waitReady(t, rig, heard, a)
	stop()
	if !Offers(heard.View(), rig.Key(a.Name), a) {
		t.Error("the end of Run took something away")
	}
}

func waitGone(t *testing.T, rig Rig, heard *Recorder, s Service) {
	t.Helper()
	heard.Wait(t, s.Name+" to be gone", func(v View) bool { return v.Services[rig.Key(s.Name)] == nil })
}

// only is broken by an edit that is full or changes another service. A registry that has lost
// the server, as on a machine that stops for seconds, reads all again.
func only(rig Rig, name string) func(View, federation.Edit) string {
	return func(v View, e federation.Edit) string {
		switch {
		case e.Services.Full && v.Status.Phase == federation.Stale:
			return ""
		case e.Services.Full:
			return "a change came as a full edit"
		}
		for key := range e.Services.Set {
			if key != rig.Key(name) {
				return fmt.Sprintf("it sets %s, which did not change", key)
			}
		}
		if slices.ContainsFunc(e.Services.Gone, func(k federation.ServiceKey) bool { return k != rig.Key(name) }) {
			return fmt.Sprintf("it removes %v", e.Services.Gone)
		}
		return ""
	}
}

// keeps is broken by a view that lacks one of the services, even for a moment.
func keeps(rig Rig, services ...Service) func(View, federation.Edit) string {
	return func(v View, _ federation.Edit) string {
		for _, s := range services {
			if !Offers(v, rig.Key(s.Name), s) {
				return s.Name + " was taken away"
			}
		}
		return ""
	}
}
