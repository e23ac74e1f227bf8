package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"
)

var attachSteps = flag.Int("attachsteps", 12, "at how many steps of an attach the hub is killed; 0: at all")

// TestF03AttachIsKilledAtEveryStep: each request of the look and of the first
// reading is a step at which the hub dies, and so is the commit. After the restart
// the cluster is attached with its credentials or neither; a repetition ends as if
// nothing had happened.
func TestF03AttachIsKilledAtEveryStep(t *testing.T) {
	c := newCrashing(t)
	c.proxy.killBefore(0, nil)
	c.attach()
	steps := c.proxy.taken()
	c.detach()
	c.wantNothing(time.Now())
	if len(steps) < 12 {
		t.Fatalf("an attach has the steps %q", steps)
	}
	chosen := make([]int, 0, len(steps))
	many := min(*attachSteps, len(steps))
	if many == 0 {
		many = len(steps)
	}
	for i := range many {
		chosen = append(chosen, 1+i*(len(steps)-1)/max(many-1, 1))
	}
	for _, at := range slices.Compact(chosen) {
		t.Run(fmt.Sprintf("%02d before %s", at, steps[at-1]), func(t *testing.T) {
			c.t = t
			dead := make(chan error, 1)
			c.proxy.killBefore(at, func() { c.p.kill(); dead <- nil })
			c.dies(dead)
		})
	}
	t.Run("when it is stored", func(t *testing.T) {
		c.t = t
		stop := c.whenStored(c.p)
		defer stop()
		c.proxy.killBefore(0, nil)
		c.dies(c.p.done)
	})
}

// dies attaches with a hub that dies, starts it again and repeats.
func (c *crashing) dies(dead <-chan error) {
	c.t.Helper()
	_, _ = c.p.at().tell("attachCluster", kubernetesInput("east", c.proxy.access)) // there may be no answer
	limit := time.NewTimer(patience)
	defer limit.Stop()
	select {
	case <-dead:
	case <-limit.C:
		c.t.Fatalf("the hub lives on; the steps were %q", c.proxy.taken())
	}
	c.proxy.killBefore(0, nil)
	c.start()
	c.wantWhole()
	c.attach()
	c.wantWhole()
	c.detach()
	c.wantNothing(time.Now())
}

// TestF04DetachIsKilledAtEveryStep: after the restart it ends by itself within 5 s,
// or nothing of it has begun.
func TestF04DetachIsKilledAtEveryStep(t *testing.T) {
	c := newCrashing(t)
	gone := func(is func() bool) func() {
		return func() {
			p := c.p // the next one may run when this one's answer is abandoned
			go func() { _, _ = p.at().tell("detachCluster", map[string]any{"clusterID": "east"}) }()
			p.at().await(c.t, "the step", func() error {
				if !is() {
					return fmt.Errorf("not yet")
				}
				return nil
			})
			p.kill()
		}
	}
	for _, step := range []struct {
		name string
		do   func()
		left bool // the state on disk is put back, as if it had not been removed yet
	}{
		{name: "the store has not answered", do: func() {
			c.store.Pause()
			gone(func() bool {
				shown, err := c.p.at().cluster("east")
				return err == nil && shown.Status.Phase == "DETACHING"
			})()
			c.store.Resume()
		}},
		{name: "it is stored", do: func() {
			stop := c.whenStored(c.p)
			defer stop()
			_, _ = c.p.at().tell("detachCluster", map[string]any{"clusterID": "east"})
			<-c.p.done
		}},
		{name: "it is shown no more", do: gone(func() bool { _, err := c.p.at().cluster("east"); return err != nil })},
		{name: "its saved state is gone", do: gone(func() bool { _, err := os.Stat(c.saved()); return err != nil })},
		{name: "it is answered", do: func() { c.detach(); c.p.kill() }},
		{name: "it is answered, and the saved state is left", left: true, do: func() { c.detach(); c.p.kill() }},
	} {
		t.Run(step.name, func(t *testing.T) {
			c.t = t
			c.attach()
			state, err := os.ReadFile(c.saved())
			if err != nil {
				t.Fatal(err)
			}
			step.do()
			if step.left {
				write(t, c.saved(), string(state))
			}
			c.start()
			began := c.p.up
			if c.secrets() == 1 {
				c.wantWhole()
				c.detach()
				began = time.Now()
			}
			c.wantNothing(began)
		})
	}
}
