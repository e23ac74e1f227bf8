package etcd_test

import (
	"testing"
	"time"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation/config/configtest"
	"isthmus.dev/isthmus/federation/config/etcd"
)

// slowest is how long a change may take while a minority of the members is gone.
const slowest = 1500 * time.Millisecond

// ofThree is a store of three real members, with something in it and somebody who
// follows it.
type ofThree struct {
	*testbed.EtcdCluster
	t        *testing.T
	c        *etcd.Config
	recorder *configtest.Recorder
	base     int64
}

func startThree(t *testing.T) *ofThree {
	t.Helper()
	s := &ofThree{EtcdCluster: testbed.StartEtcdCluster(t, 3), t: t}
	s.c = reach(t, s.Endpoints()...).Config(etcd.ConfigOptions{Patience: time.Minute, Probe: 200 * time.Millisecond})
	s.base = configtest.Must(t, s.c, configtest.Set(0, configtest.Object("a", 1)))
	s.recorder, _ = configtest.Listen(t, s.c)
	s.recorder.WaitRevision(t, s.base)
	return s
}

// change makes as many changes, and returns how long the slowest took to be
// acknowledged and seen.
func (s *ofThree) change(n int) time.Duration {
	s.t.Helper()
	worst := time.Duration(0)
	for range n {
		began := time.Now()
		revision, err := s.c.Commit(s.t.Context(), configtest.Set(s.base, configtest.Object("a", s.base)))
		if err != nil {
			s.t.Fatalf("a change is refused after %v: %v", time.Since(began), err)
		}
		s.base = revision
		s.recorder.WaitRevision(s.t, revision)
		worst = max(worst, time.Since(began))
	}
	return worst
}

// named reports whether that member is the only trouble.
func (s *ofThree) named(member int) func(configtest.Seen) bool {
	return func(seen configtest.Seen) bool {
		return code("MEMBER_DOWN")(seen) && seen.Problems[0].Object == s.Endpoints()[member]
	}
}

// TestR70DeadMemberIsNamedAndSlowsNothing: of three, one is killed.
func TestR70DeadMemberIsNamedAndSlowsNothing(t *testing.T) {
	s := startThree(t)
	dead := s.Follower()
	s.Members[dead].Kill()
	s.recorder.Wait(t, "the member, and no other, to be named", s.named(dead))
	testbed.Within(t, slowest, func() time.Duration { return s.change(10) })
	s.Members[dead].Restart()
	s.recorder.Wait(t, "the end of trouble", code(""))
}

// TestR71SilentMemberRefusesNothing: the member takes requests and never answers.
func TestR71SilentMemberRefusesNothing(t *testing.T) {
	s := startThree(t)
	for _, c := range []struct {
		name       string
		of         func() int
		begin, end func(member int)
	}{
		{"frozen follower", s.Follower, func(i int) { s.Members[i].Pause() }, func(i int) { s.Members[i].Resume() }},
		{"cut off follower", s.Follower, func(i int) { s.Links[i].Blackhole() }, func(i int) { s.Links[i].Pass() }},
		{"cut off leader", s.Leader, func(i int) { s.Links[i].Blackhole() }, func(i int) { s.Links[i].Pass() }},
	} {
		t.Run(c.name, func(t *testing.T) {
			s.t = t
			testbed.Within(t, slowest, func() time.Duration {
				silent := c.of()
				c.begin(silent)
				took := s.change(6)
				s.recorder.Wait(t, "the member to be named", s.named(silent))
				c.end(silent)
				s.recorder.Wait(t, "the end of trouble", code(""))
				return took
			})
		})
	}
}

// TestR71FrozenLeaderIsReplaced: changes go on after the election.
func TestR71FrozenLeaderIsReplaced(t *testing.T) {
	s := startThree(t)
	frozen := s.Leader()
	s.Members[frozen].Pause()
	waitUntil(t, "a change to be accepted", func() bool {
		newest, err := s.c.Records(t.Context(), 0, 1)
		if err != nil {
			return false
		}
		s.base, err = s.c.Commit(t.Context(), configtest.Set(newest[0].Revision, configtest.Object("a", "new")))
		return err == nil
	})
	testbed.Within(t, slowest, func() time.Duration { return s.change(6) })
	s.Members[frozen].Resume()
	s.recorder.Wait(t, "the end of trouble", code(""))
	s.change(3)
}
