package main

import (
	"bytes"
	"cmp"
	"fmt"
	"io/fs"
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
	t.Parallel()
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
	if got := p.at().ask(t, "rotateCluster", kubernetesInput("east", kube.User("reader"))); !strings.Contains(got.refusals(),
		"OTHER_CLUSTER") {
		t.Errorf("rotated to another cluster: %+v", got)
	}
	if got := p.at().ask(t, "confirmCluster", map[string]any{"clusterID": "east"}); got.refusals() != "" {
		t.Fatalf("confirmed: %+v", got)
	}
	p.at().awaitPhase(t, "east", "READY")
	p = startAgain(p)
	p.at().awaitPhase(t, "east", "READY")
}

// TestR08TheStoreKnowsTheClustersOfFiles: the same with a kubeconfig of the watched
// folder and of the config file, whose identity is in the store of record, too.
func TestR08TheStoreKnowsTheClustersOfFiles(t *testing.T) {
	t.Parallel()
	for _, place := range []string{"folder", "config file"} {
		t.Run(place, func(t *testing.T) {
			t.Parallel()
			kube := testbed.StartKube(t, testbed.KubeOptions{Users: []testbed.KubeUser{{Name: "reader"}}})
			kube.GrantRead("reader")
			dir := shortDir(t)
			clusters := filepath.Join(dir, "clusters")
			if err := os.Mkdir(clusters, 0o700); err != nil {
				t.Fatal(err)
			}
			kubeconfig := write(t, filepath.Join(clusters, "east.yaml"), string(kube.User("reader").Kubeconfig()))
			args := []string{"--kubeconfig-dir", clusters}
			if place == "config file" {
				args = []string{"--config", write(t, filepath.Join(dir, "x.yaml"),
					"clusters: [{id: east, provider: Kubernetes, kubernetes: {kubeconfig: "+kubeconfig+"}}]\n")}
			}
			p := startProgramIn(t, dir, args...)
			p.at().awaitPhase(t, "east", "READY")
			p.at().await(t, "the store to know the cluster",
				func() error { return holds(filepath.Join(dir, "data", "etcd"), "known-clusters/east") })
			again := func() {
				_ = p.Process.Kill()
				<-p.done
				if err := os.RemoveAll(filepath.Join(dir, "data", "last-known-good")); err != nil {
					t.Fatal(err)
				}
				p = startProgramIn(t, dir, args...)
			}
			kube.Replace()
			kube.GrantRead("reader")
			again()
			if c := p.at().awaitPhase(t, "east", "HELD"); !strings.Contains(c.Status.Message, "another cluster answers") {
				t.Errorf("it says %q", c.Status.Message)
			}
			if got := p.at().ask(t, "confirmCluster", map[string]any{"clusterID": "east"}); got.refusals() != "" {
				t.Fatalf("confirmed: %+v", got)
			}
			p.at().awaitPhase(t, "east", "READY")
			again()
			p.at().awaitPhase(t, "east", "READY")
		})
	}
}

// holds fails unless a file of the folder has the text.
func holds(dir, text string) error {
	found := fmt.Errorf("no file of %s has %q", dir, text)
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if bytes.Contains(data, []byte(text)) {
			found = nil
		}
		return err
	})
	return cmp.Or(err, found)
}
