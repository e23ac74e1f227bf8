package retry

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// wantAbout fails unless the pause is within a quarter of want.
func wantAbout(t *testing.T, got, want time.Duration) {
	t.Helper()
	if got < want*3/4 || got > want*5/4+1 {
		t.Errorf("the pause is %v, want about %v", got, want)
	}
}

func TestPausesDoubleUpToTheLongest(t *testing.T) {
	b := Backoff{First: time.Second, Longest: 5 * time.Second}
	for _, want := range []time.Duration{1, 2, 4, 5, 5} {
		wantAbout(t, b.Next(), want*time.Second)
	}
	b.Reset()
	wantAbout(t, b.Next(), time.Second)
}

func TestATryThatWorkedForLongResetsThePauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := Backoff{First: time.Second, Longest: 4 * time.Second}
		b.Next()
		began := time.Now()
		b.Wait(t.Context())
		b.Began(began) // for about two seconds
		wantAbout(t, b.Next(), 4*time.Second)
		Sleep(t.Context(), time.Minute)
		b.Began(began)
		wantAbout(t, b.Next(), time.Second)
	})
}

func TestSleepEndsWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if Sleep(ctx, time.Hour) || Sleep(ctx, 0) {
		t.Error("a sleep of an ended context is complete")
	}
	if !Sleep(t.Context(), 0) {
		t.Error("a sleep without a duration is cut off")
	}
}

func TestUntilTriesUntilItSucceeds(t *testing.T) {
	b := Backoff{First: time.Millisecond, Longest: time.Millisecond}
	tries, failures := 0, 0
	done := b.Until(t.Context(), func() error {
		tries++
		if tries < 3 {
			return errors.New("not yet")
		}
		return nil
	}, func(error, time.Duration) { failures++ })
	if !done || tries != 3 || failures != 2 {
		t.Errorf("done %v after %d tries and %d failures", done, tries, failures)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if b.Until(ctx, func() error { cancel(); return errors.New("ended") },
		func(error, time.Duration) { t.Error("the end of a context is reported as a failure") }) {
		t.Error("it is done though the context ended")
	}
}
