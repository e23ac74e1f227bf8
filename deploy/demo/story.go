package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"isthmus.dev/isthmus/deploy/bridge"
	"isthmus.dev/isthmus/deploy/testbed"
)

// stay builds the world, tells the story and keeps everything running until a
// signal comes.
func stay(program string, out io.Writer) error {
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer cancel()
	s := &stage{out: out}
	defer s.end()
	over := make(chan struct{})
	go func() {
		defer close(over)
		teller{stage: s, out: out}.tell(program)
	}()
	select {
	case <-over:
	case <-ctx.Done():
		return nil
	}
	if s.Failed() {
		return errors.New("the story did not come to its end")
	}
	<-ctx.Done()
	return nil
}

// teller prints what happens.
type teller struct {
	stage *stage
	out   io.Writer
	world *bridge.World
}

func (t teller) say(format string, args ...any) {
	_, _ = fmt.Fprintf(t.out, format+"\n", args...) // the log is the only listener
}

func (t teller) tell(program string) {
	began := time.Now()
	t.say("Building three networks that cannot reach each other:")
	t.world = bridge.Start(t.stage, bridge.Options{Program: program, Told: func(step string) { t.say("  - %s", step) }})
	t.crossings()
	t.shares("\nThe service %s runs in all three. 60 requests from each network were answered by:")
	t.failover()
	t.say("\nGraphiQL: %s/graphiql  (a door to the hub with the operator's certificate)", openDoor(t.stage, t.world.Hub))
	t.say("Try:  { networks { networkID gateways { address health { observer standing since } } } }")
	t.say("This took %v.", time.Since(began).Round(time.Second))
	t.say("%s", told)
}

// crossings sends a request over each bridge, with a word in it that the
// gateways must not see.
func (t teller) crossings() {
	const word = "a-word-that-nobody-may-read"
	t.say("\nA request over each bridge:")
	wires := map[*bridge.Site]*testbed.Wire{}
	for _, s := range t.world.Sites {
		wires[s] = s.Gateways[0].Sniff()
		defer wires[s].Close()
	}
	for _, from := range t.world.Sites {
		for _, to := range t.world.Sites {
			if from == to {
				continue
			}
			answer, err := from.Ask(bridge.HostOf(to.Cluster), "/"+word)
			if err != nil {
				t.stage.Fatalf("%s asks %s: %v", from.Cluster, to.Cluster, err)
			}
			t.say("  %-3s in %s  →  gateway %s  →  %s in %s:  answered by %s, which saw the caller %s",
				from.Cluster, from.Network, to.Gateways[0].Outside, bridge.HostOf(to.Cluster), to.Network, answer.Cluster, answer.Identity())
		}
	}
	for _, s := range t.world.Sites {
		seen := "TLS only"
		if wires[s].Saw(word) {
			seen = "the request in plain text"
			t.stage.Errorf("the gateway of %s saw a request in plain text", s.Network)
		}
		t.say("  What crossed the wire at the gateway of %s: %s", s.Network, seen)
	}
}

// shares counts who answers.
func (t teller) shares(format string) {
	t.say(format, bridge.Host)
	for _, from := range t.world.Sites {
		counts, failed := t.count(from, 60)
		t.say("  from %s:  %s%s", from.Network, list(counts), failures(failed))
	}
}

func (t teller) count(from *bridge.Site, n int) (counts map[string]int, failed int) {
	counts = map[string]int{}
	for range n {
		answer, err := from.Ask(bridge.Host, "/")
		if err != nil {
			failed++
			continue
		}
		counts[answer.Cluster]++
	}
	return counts, failed
}

func list(counts map[string]int) string {
	var all []string
	for cluster, n := range counts {
		all = append(all, fmt.Sprintf("%s %d", cluster, n))
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

func failures(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" (%d failed)", n)
}

// failover kills a gateway and waits until nobody is sent to it.
func (t teller) failover() {
	dead, from := t.world.Site("c2"), t.world.Site("c1")
	t.say("\nThe gateway of %s is killed.", dead.Network)
	began := time.Now()
	dead.Gateways[0].Envoy.Kill()
	for time.Since(began) < time.Minute {
		if counts, failed := t.count(from, 20); failed == 0 && counts[dead.Cluster] == 0 {
			t.say("  After %v, %s is left out and no request fails: %s", time.Since(began).Round(100*time.Millisecond), dead.Network, list(counts))
			return
		}
	}
	t.stage.Fatalf("requests of %s still go to the dead gateway of %s", from.Network, dead.Network)
}
