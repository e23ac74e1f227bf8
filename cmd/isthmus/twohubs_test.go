package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"isthmus.dev/isthmus/deploy/testbed"
)

// TestTwoHubsAttachAndDetach: what one of two hubs on one etcd attaches, both have;
// what the other detaches is gone from both, with what they saved. Of two requests
// at the same time, one at each, one wins (F56).
func TestTwoHubsAttachAndDetach(t *testing.T) {
	t.Parallel()
	store := testbed.StartEtcd(t, testbed.EtcdOptions{})
	kube := testbed.StartKube(t, testbed.KubeOptions{Users: []testbed.KubeUser{{Name: "reader"}, {Name: "second"}}})
	kube.GrantRead("reader")
	kube.GrantRead("second")
	kube.Apply(strings.Split(attachedService, "---\n")...)
	key := filepath.Join(shortDir(t), "seal.key")
	var hubs [2]*program
	for i := range hubs {
		hubs[i] = startProgramIn(t, shortDir(t), "--etcd-endpoints", store.URL, "--seal-key", key)
	}
	both := func(do func(*program)) {
		t.Helper()
		for _, p := range hubs {
			do(p)
		}
	}
	for round := range 3 {
		var answers [2]clusterAnswer
		var together sync.WaitGroup
		for i, p := range hubs {
			together.Go(func() { answers[i], _ = p.at().tell("attachCluster", kubernetesInput("east", kube.User("reader"))) })
		}
		together.Wait()
		if got := answers[0].refusals() + answers[1].refusals(); got != "DUPLICATE_CLUSTER_ID" || answers[0].Cluster == nil &&
			answers[1].Cluster == nil {
			t.Fatalf("round %d: the answers are %+v", round, answers)
		}
		both(func(p *program) {
			p.at().awaitPhase(t, "east", "READY")
			p.at().await(t, "the saved state", func() error { _, err := os.Stat(p.savedEast()); return err })
		})
		if got := hubs[1].at().ask(t, "rotateCluster", kubernetesInput("east", kube.User("second"))); got.refusals() != "" {
			t.Errorf("rotated: %+v", got)
		}
		if got := hubs[round%2].at().ask(t, "detachCluster", map[string]any{"clusterID": "east"}); got.refusals() != "" {
			t.Fatalf("detached: %+v", got)
		}
		both(func(p *program) {
			p.at().await(t, "nothing of the cluster to be left", func() error {
				if c, err := p.at().cluster("east"); err == nil {
					return fmt.Errorf("it is %+v", c)
				}
				if _, err := os.Stat(p.savedEast()); err == nil {
					return fmt.Errorf("its saved state is left")
				}
				return nil
			})
		})
	}
}

func (p *program) savedEast() string {
	return filepath.Join(p.dir, "data", "last-known-good", "east.Kubernetes.db")
}
