package retry

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestG74ThingsArePausedApart: each has pauses of its own, and a wait ends when the first of them
// has ended, once.
func TestG74ThingsArePausedApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := Pauses[string]{First: time.Second, Longest: time.Minute}
		if p.Has("a", time.Now()) || p.Wait(time.Now()) != time.Minute {
			t.Error("there are pauses at first")
		}
		wantAbout(t, p.Next("a"), time.Second)
		wantAbout(t, p.Next("a"), 2*time.Second)
		pause := p.Next("b")
		wantAbout(t, pause, time.Second)
		if wait := p.Wait(time.Now()); wait != pause {
			t.Errorf("the wait is %v, want %v", wait, pause)
		}
		Sleep(t.Context(), pause)
		if p.Has("b", time.Now()) || !p.Has("a", time.Now()) {
			t.Error("not the pause of b alone has ended")
		}
		if first, then := p.Wait(time.Now()), p.Wait(time.Now()); first != 0 || then == 0 {
			t.Errorf("the waits are %v and %v", first, then)
		}
		p.End("a")
		p.Reset("a")
		if p.Has("a", time.Now()) {
			t.Error("a pause that was ended goes on")
		}
		wantAbout(t, p.Next("a"), time.Second)
	})
}
