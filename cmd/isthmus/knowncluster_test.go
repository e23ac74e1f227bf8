package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"isthmus.dev/isthmus/deploy/testbed"
)

// TestR08WhoAClusterIsSurvivesTheCache: what was last known of a cluster is lost,
// and another one answers at its address: it is held. After an operator confirmed
// it, it is the known one, with and without the cache.
func TestR08WhoAClusterIsSurvivesTheCache(t *testing.T) {
	kube := testbed.StartKube(t, testbed.KubeOptions{Users: []testbed.KubeUser{{Name: "reader"}}})
	kube.GrantRead("reader")
	kube.Apply(strings.Split(attachedService, "---\n")...)
	dir := shortDir(t)
	startAgain := func(before *program) *program {
		t.Helper()
		if before != nil {
			_ = before.Process.Kill()
			<-before.done
			if err := os.RemoveAll(filepath.Join(dir, "data", "last-known-good")); err != nil {
				t.Fatal(err)
			}
		}
		return startProgramIn(t, dir)
	}
	p := startAgain(nil)
	if got := p.at().ask(t, "attachCluster", kubernetesInput("east", kube.User("reader"))); got.refusals() != "" {
		t.Fatalf("attached: %+v", got)
	}
	p.at().awaitPhase(t, "east", "READY")
	p = startAgain(p)
	p.at().awaitPhase(t, "east", "READY")

	kube.Replace()
	kube.GrantRead("reader")
	p = startAgain(p)
	c := p.at().awaitPhase(t, "east", "HELD")
	if !strings.Contains(c.Status.Message, "another cluster answers") {
		t.Errorf("it says %q", c.Status.Message)
	}
	if got := p.at().ask(t, "rotateCluster", kubernetesInput("east", kube.User("reader"))); !strings.Contains(got.refusals(), "OTHER_CLUSTER") {
		t.Errorf("rotated to another cluster: %+v", got)
	}
	if got := p.at().ask(t, "confirmCluster", map[string]any{"clusterID": "east"}); got.refusals() != "" {
		t.Fatalf("confirmed: %+v", got)
	}
	p.at().awaitPhase(t, "east", "READY")
	p = startAgain(p)
	p.at().awaitPhase(t, "east", "READY")
}
