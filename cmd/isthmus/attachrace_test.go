package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"isthmus.dev/isthmus/deploy/testbed"
)

// TestF56OfTwoAttachesOneWins: of requests for one ID at the same time, and of
// those for one API server under several IDs (B-K16).
func TestF56OfTwoAttachesOneWins(t *testing.T) {
	t.Parallel()
	kube := testbed.StartKube(t, testbed.KubeOptions{Users: []testbed.KubeUser{{Name: "reader"}}})
	kube.GrantRead("reader")
	reader := kube.User("reader")
	for name, c := range map[string]struct {
		ids  []string
		want string
	}{
		"one ID":         {[]string{"east", "east"}, "DUPLICATE_CLUSTER_ID"},
		"one API server": {[]string{"east", "west"}, "DUPLICATE_CLUSTER"},
	} {
		t.Run(name, func(t *testing.T) {
			h := startHub(t)
			answers := make([]clusterAnswer, len(c.ids))
			var together sync.WaitGroup
			for i, id := range c.ids {
				together.Go(func() { answers[i] = h.ask(t, "attachCluster", kubernetesInput(id, reader)) })
			}
			together.Wait()
			got := []string{answers[0].refusals(), answers[1].refusals()}
			slices.Sort(got)
			if got[0] != "" || got[1] != c.want {
				t.Errorf("the answers are %q, want one of them refused with %s", got, c.want)
			}
		})
	}
}

// TestSourcesThatNameOneIDAreShown: a file of the folder has the ID before a
// Cluster object has it, and lets it go again (F56).
func TestSourcesThatNameOneIDAreShown(t *testing.T) {
	t.Parallel()
	kube := testbed.StartKube(t, testbed.KubeOptions{Users: []testbed.KubeUser{{Name: "reader"}}})
	kube.GrantRead("reader")
	reader := kube.User("reader")
	away := startAway(t)
	dir := shortDir(t)
	h := startHub(t, "--kubeconfig-dir", dir)
	if got := h.ask(t, "attachCluster", kubernetesInput("east", reader)); got.refusals() != "" {
		t.Fatalf("attached: %+v", got)
	}
	h.awaitPhase(t, "east", "READY")
	write(t, filepath.Join(dir, "west.yaml"), string(away.User("first").Kubeconfig()))
	h.awaitPhase(t, "west", "READY")
	if got := h.ask(t, "detachCluster", map[string]any{"clusterID": "west"}); got.refusals() != "ATTACHED_ELSEWHERE" ||
		!strings.Contains(got.UserErrors[0].Message, "--kubeconfig-dir") {
		t.Errorf("a cluster of the folder is detached: %+v", got)
	}
	if got := h.ask(t, "rotateCluster", kubernetesInput("none", reader)); !strings.Contains(got.refusals(), "NOT_ATTACHED") {
		t.Errorf("a cluster that is not there is rotated: %+v", got)
	}
	write(t, filepath.Join(dir, "east.yaml"), string(reader.Kubeconfig()))
	h.await(t, "the conflict", func() error {
		c, err := h.cluster("east")
		if err == nil && (len(c.Problems.Nodes) != 1 || c.Problems.Nodes[0].Code != "DUPLICATE_CLUSTER_ID") {
			err = fmt.Errorf("its problems are %+v", c.Problems)
		}
		return err
	})
	h.awaitPhase(t, "east", "READY")
}
