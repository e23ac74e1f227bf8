package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

var crashes = flag.Int("crashes", 3, "how often a hub that applies is killed")

// setSize is how many objects each apply changes together.
const setSize = 5

// applier applies set after set to a hub that is killed now and then. It alone
// writes.
type applier struct {
	t          *testing.T
	hub        *hubUnderTest
	generation int   // that was acknowledged last
	revision   int64 // that it made
	acked      map[int]int64
	unknown    int // applies without an answer
	made       int // of these, those that are in force all the same
}

type applyAnswer struct {
	Apply struct {
		Revision   string
		UserErrors []struct{ Code, Message string }
	}
}

// apply applies a set as a whole. It returns an error if there was no answer.
func (a *applier) apply(generation int) (revision int64, err error) {
	var manifests strings.Builder
	for i := range setSize {
		fmt.Fprintf(&manifests, `apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: part-%d, namespace: crash, labels: {generation: "%d"}}
spec: {hosts: [part-%d.example.com], resolution: STATIC, ports: [{number: 80, name: http}], endpoints: [{address: 192.0.2.%d}]}
---
`, i, generation, i, 1+generation%250)
	}
	var answer applyAnswer
	err = a.hub.query(fmt.Sprintf(
		`mutation {apply(input: {manifests: [%q], message: "generation %d", idempotencyKey: "generation-%d", expectedRevision: "%d"}) {revision userErrors {code message}}}`,
		manifests.String(), generation, generation, a.revision), &answer)
	if err != nil {
		return 0, err
	}
	if len(answer.Apply.UserErrors) > 0 && answer.Apply.UserErrors[0].Code == "UNAVAILABLE" { // a slow disk; its end is not known
		return 0, fmt.Errorf("repeat later: %s", answer.Apply.UserErrors[0].Message)
	}
	if len(answer.Apply.UserErrors) > 0 {
		a.t.Fatalf("generation %d on revision %d: %+v", generation, a.revision, answer.Apply.UserErrors)
	}
	return strconv.ParseInt(answer.Apply.Revision, 10, 64)
}

func (a *applier) acknowledged(generation int, revision int64) {
	if revision <= a.revision {
		a.t.Fatalf("generation %d made revision %d after revision %d", generation, revision, a.revision)
	}
	a.generation, a.revision, a.acked[generation] = generation, revision, revision
}

// applyUntilKilled applies until the hub, which dies after so long, does not
// answer any more.
func (a *applier) applyUntilKilled(p *program, life time.Duration) {
	a.acked = map[int]int64{}
	killer := time.AfterFunc(life, func() { _ = p.Process.Kill() }) // the end is waited for below
	defer killer.Stop()
	for {
		revision, err := a.apply(a.generation + 1)
		if err != nil {
			break
		}
		a.acknowledged(a.generation+1, revision)
	}
	<-p.done
	a.unknown++
}

// repeat asks until the hub answers. It may say "repeat later", while the store of a busy
// machine is silent, and nothing else.
func (a *applier) repeat(what string, ask func() error) {
	a.t.Helper()
	a.hub.await(a.t, what, func() error {
		err := ask()
		if err != nil && !strings.Contains(err.Error(), "repeat later") {
			a.t.Fatalf("%s: %v", what, err)
		}
		return err
	})
}

// check compares what the hub holds with what it acknowledged.
func (a *applier) check() {
	a.t.Helper()
	var answer struct {
		ConfigObjects struct {
			Nodes []struct {
				Name   string
				Labels []struct{ Key, Value string }
			}
		}
		History struct {
			Nodes []struct{ Revision, Message string }
		}
	}
	a.repeat("what is in force", func() error {
		return a.hub.query(`{configObjects(first: 500, filter: {kind: "ServiceEntry", namespace: "crash"}) {nodes {name labels {key value}}}
			history(first: 500) {nodes {revision message}}}`, &answer)
	})
	found := map[string]int{}
	for _, o := range answer.ConfigObjects.Nodes {
		for _, l := range o.Labels {
			found[l.Value]++
		}
	}
	last, next := strconv.Itoa(a.generation), strconv.Itoa(a.generation+1)
	switch {
	case found[next] == setSize && len(found) == 1:
		a.made++
	case found[last] == setSize && len(found) == 1, a.generation == 0 && len(found) == 0:
	default:
		a.t.Fatalf("generation %d was acknowledged, and in force are %v", a.generation, found)
	}
	recorded := map[string]string{}
	above := int64(0)
	for i, r := range answer.History.Nodes {
		recorded[r.Message] = r.Revision
		revision, err := strconv.ParseInt(r.Revision, 10, 64)
		if err != nil || i > 0 && revision >= above {
			a.t.Fatalf("revision %s stands below %d in the history", r.Revision, above)
		}
		above = revision
	}
	for generation, revision := range a.acked {
		if revision >= above && recorded[fmt.Sprintf("generation %d", generation)] != strconv.FormatInt(revision, 10) {
			a.t.Errorf("generation %d was acknowledged as revision %d, the history has %q", generation, revision,
				recorded[fmt.Sprintf("generation %d", generation)])
		}
	}
}

// TestF01KilledHubLosesNoAcknowledgedApply kills a hub at random moments while
// sets are applied over the API. After each start every acknowledged apply is
// there, none is there by half, and the one that had no answer can be repeated.
func TestF01KilledHubLosesNoAcknowledgedApply(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	a := &applier{t: t, hub: &hubUnderTest{client: socketClient(filepath.Join(dir, "graphql"))}}
	began, applies := time.Now(), 0
	for kills := 0; kills < *crashes || applies == 0 && kills < *crashes+20; kills++ { // a slow hub may die before its first answer
		p := startProgramIn(t, dir)
		a.check()
		if a.unknown > 0 {
			var revision int64
			a.repeat(fmt.Sprintf("the repeated generation %d", a.generation+1), func() (err error) {
				revision, err = a.apply(a.generation + 1)
				return err
			})
			a.acknowledged(a.generation+1, revision)
			a.check()
		}
		before := a.generation
		a.applyUntilKilled(p, time.Duration(50+rand.IntN(1000))*time.Millisecond)
		applies += a.generation - before
	}
	startProgramIn(t, dir)
	a.check()
	if applies == 0 {
		t.Error("no apply was acknowledged")
	}
	t.Logf("%d kills in %v: %d applies acknowledged, none lost; of %d without an answer %d were in force as a whole, the others not at all",
		a.unknown, time.Since(began).Round(time.Second), applies, a.unknown, a.made)
}
