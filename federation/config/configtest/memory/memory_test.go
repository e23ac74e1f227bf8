package memory_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/configtest"
	"isthmus.dev/isthmus/federation/config/configtest/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) {
	configtest.Run(t, func(*testing.T) configtest.Store { return memory.New() })
}

func TestFailureIsSaidAndNothingIsTakenAway(t *testing.T) {
	s := memory.New()
	revision := configtest.Must(t, s, configtest.Set(0, configtest.Object("a", 1)))
	recorder, _ := configtest.Listen(t, s)
	recorder.WaitRevision(t, revision)
	s.Fail(errors.New("cut"))
	seen := recorder.Wait(t, "trouble", func(s configtest.Seen) bool { return s.Codes() == "UNREACHABLE" })
	if len(seen.Objects) != 1 {
		t.Errorf("%d objects are left", len(seen.Objects))
	}
	if _, err := s.Commit(t.Context(), configtest.Set(revision, configtest.Object("b", 1))); !errors.Is(err, config.ErrUnavailable) {
		t.Errorf("a commit gives %v", err)
	}
	s.Fail(nil)
	recorder.Wait(t, "the end of trouble", func(s configtest.Seen) bool { return s.Codes() == "" })
}

func TestLeaseEndsInTheTimeOfTheTest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory.New()
		recorder, _ := configtest.Listen(t, s)
		if _, err := s.Register(context.Background(), *configtest.Object("a", 1), time.Hour); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		gone := func(s configtest.Seen) bool { return len(s.Objects) == 0 && len(s.Updates) > 1 }
		synctest.Wait()
		if gone(recorder.Now()) {
			t.Fatal("it went at once")
		}
		timer := time.NewTimer(time.Hour + time.Second)
		<-timer.C
		synctest.Wait()
		if !gone(recorder.Now()) {
			t.Errorf("it is there after %v", time.Since(began))
		}
	})
}
