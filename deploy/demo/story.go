package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"isthmus.dev/isthmus/deploy/bridge"
	"isthmus.dev/isthmus/deploy/testbed"
)

// stay tells a story and keeps everything running until a signal comes.
func stay(out io.Writer, tell func(*stage)) error {
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer cancel()
	s := &stage{out: out}
	defer s.end()
	over := make(chan struct{})
	go func() {
		defer close(over)
		tell(s)
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

// lab makes the networks that the guide bridges; the folder gets a link to their
// files.
func lab(s *stage, f folder) {
	files := bridge.StartLab(s)
	if err := os.Symlink(files, f.file("files")); err != nil {
		s.Fatal(err)
	}
	_, _ = fmt.Fprintf(s.out, `Two networks without a route to each other, with the same addresses:
  n1 with the cluster c1: the workload web-c1, the client caller-c1, and gateway-c1, a machine for a gateway
  n2 with the cluster c2: the workload web-c2, the client caller-c2, and gateway-c2, a machine for a gateway
.lab/files has the kubeconfigs, and the program at, which runs a command at one of these places.
%s
`, toldLab) // the log is the only listener
}

// teller prints what happens.
type teller struct {
	stage    *stage
	out      io.Writer
	topology *bridge.Topology
}

func (t teller) say(format string, args ...any) {
	_, _ = fmt.Fprintf(t.out, format+"\n", args...) // the log is the only listener
}

func (t teller) tell(program string) {
	began := time.Now()
	t.say("Building three networks that cannot reach each other:")
	t.topology = bridge.Start(t.stage, bridge.Options{
		Program: program, Told: func(step string) { t.say("  - %s", step) }, Shapes: map[string]bridge.Shape{"c2": {Gateways: 2}},
	})
	t.crossings()
	t.shares("\nThe service %s runs in all three. 60 requests from each network were answered by:")
	t.failover()
	t.say("\nGraphiQL: %s/graphiql  (a local proxy to the hub that uses the operator's certificate)", openDoor(t.stage, t.topology.Hub))
	t.say("Try:  { networks { nodes { networkID gateways { address health { observerNetworkID state since } } } } }")
	t.say("This took %v.", time.Since(began).Round(time.Second))
	t.say("%s", told)
}

// crossings sends a request over each bridge, with a word in it that the
// gateways must not see.
func (t teller) crossings() {
	const word = "a-word-that-nobody-may-read"
	t.say("\nA request over each bridge:")
	wires := map[*bridge.Site]*testbed.Wire{}
	for _, s := range t.topology.Sites {
		wires[s] = s.Gateways[0].Sniff()
		defer wires[s].Close()
	}
	for _, from := range t.topology.Sites {
		for _, to := range t.topology.Sites {
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
	for _, s := range t.topology.Sites {
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
	for _, from := range t.topology.Sites {
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

// failover kills the gateways of a network, one after the other.
func (t teller) failover() {
	dead, from := t.topology.Site("c2"), t.topology.Site("c1")
	for i, g := range dead.Gateways {
		t.say("\nThe gateway %s of %s is killed.", g.Outside, dead.Network)
		began := time.Now()
		g.Envoy.Kill()
		want := []string{"UNREACHABLE", "LAST_RESORT"}[i]
		testbed.WaitFor(t.stage, time.Minute, "the hub to report it as "+want, func() error { return t.stands(from, g, want) })
		t.say("  After %v it is %s to %s.", time.Since(began).Round(100*time.Millisecond), want, from.Network)
		testbed.WaitFor(t.stage, time.Minute, "requests that do not fail", func() error {
			counts, failed := t.count(from, 30)
			if failed > 0 || (counts[dead.Cluster] == 0) != (want == "LAST_RESORT") {
				return fmt.Errorf("%d failed, the others were answered by %v", failed, counts)
			}
			t.say("  30 requests from %s, none failed: %s", from.Network, list(counts))
			return nil
		})
	}
}

// stands is an error unless the gateway is that to the proxies of a site.
func (t teller) stands(from *bridge.Site, g *bridge.Gateway, want string) error {
	all, err := t.topology.Hub.GatewayStates(from.Network)
	if err == nil && all[g.Entry()] != want {
		err = fmt.Errorf("it is %s", all[g.Entry()])
	}
	return err
}
