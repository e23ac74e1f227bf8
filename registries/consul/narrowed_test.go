package consul

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/registries/registrytest"
)

// staleCounter notes how many requests of proofs were sent when the cluster became
// STALE.
type staleCounter struct {
	*rig
	proofs atomic.Int64
}

type staleSink struct {
	registrytest.Sink
	to *staleCounter
}

func (c *staleCounter) Run(ctx context.Context, to registrytest.Sink) error {
	return c.rig.Run(ctx, staleSink{to, c})
}

func (s staleSink) Status(status federation.RegistryStatus) {
	if status.Phase == federation.Stale {
		s.to.proofs.CompareAndSwap(0, int64(s.to.asked(CountCanary)))
	}
	s.Sink.Status(status)
}

// TestR84ANarrowedPolicyNamesWhatIsHidden: a policy that loses services at run time
// shows within 10 s, however long the polls wait: at the first proof that begins after
// the change. Everything that was known stays.
func TestR84ANarrowedPolicyNamesWhatIsHidden(t *testing.T) {
	t.Parallel()
	if 2*beatEvery > 10*time.Second {
		t.Errorf("a proof every %s: one after a change may end later than 10 s", beatEvery)
	}
	r, _, p, _ := startTokenRig(t, "hub", 10*time.Minute)
	c := &staleCounter{rig: r}
	r.fill("web", 7)
	r.fill("other", 1)
	recorder, _ := registrytest.Start(t, c)
	recorder.WaitPhase(t, federation.Ready)
	recorder.Always(never(r, "web-000", "web-006", "other-000"))
	edits := recorder.View().Edits
	p.set(noWebRules)
	before := r.asked(CountCanary)
	v := staleBy(t, recorder, "hidden")
	if !strings.Contains(v.Status.Message, `hidden from it: "web-000", "web-001", "web-002", "web-003", "web-004" and 2 more`) ||
		strings.Contains(v.Status.Message, "other") {
		t.Errorf("the status says %q", v.Status.Message)
	}
	if sent, round := int(c.proofs.Load())-before, 1+len(tables); sent > 2*round {
		t.Errorf("%d requests of proofs were sent before it showed; one proof has %d", sent, round)
	}
	if v.Edits != edits && !stopped(recorder) {
		t.Errorf("%d edits of a token that does not see everything", v.Edits-edits)
	}
	p.set(readAllRules)
	recorder.WaitPhase(t, federation.Ready)
}
