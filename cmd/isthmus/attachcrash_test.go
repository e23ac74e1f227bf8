package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/internal/cli/cmdutil"
)

// at is the hub of a program.
func (p *program) at() *hubUnderTest {
	return &hubUnderTest{client: socketClient(filepath.Join(p.dir, "graphql")), dir: p.dir}
}

func (p *program) kill() {
	_ = p.Process.Kill()
	<-p.done
}

// TestF03F04AttachAndDetachOutliveAKill: a hub that is killed after its answer has
// the cluster after the restart, with its credentials; and after a detach nothing
// is left of it within 5 s of the restart, on disk neither, also when the kill came
// before the files went.
func TestF03F04AttachAndDetachOutliveAKill(t *testing.T) {
	kube := testbed.StartKube(t, testbed.KubeOptions{Users: []testbed.KubeUser{{Name: "reader"}}})
	kube.GrantRead("reader")
	kube.Apply(strings.Split(attachedService, "---\n")...)
	p := startProgram(t)
	if got := p.at().ask(t, "attachCluster", kubernetesInput("east", kube.User("reader"))); got.refusals() != "" {
		t.Fatalf("attached: %+v", got)
	}
	p.kill()
	p = startProgramIn(t, p.dir)
	p.at().awaitPhase(t, "east", "READY")
	saved := filepath.Join(p.dir, "data", "last-known-good", "east.Kubernetes.db")
	var state []byte
	p.at().await(t, "the saved state", func() (err error) { state, err = os.ReadFile(saved); return err })
	if got := p.at().ask(t, "detachCluster", map[string]any{"clusterID": "east"}); got.refusals() != "" {
		t.Fatalf("detached: %+v", got)
	}
	p.kill()
	write(t, saved, string(state)) // as if the kill had come before it went
	clock := testbed.StartClock(t)
	p = startProgramIn(t, p.dir)
	p.at().await(t, "nothing of the cluster to be left", func() error {
		if _, err := os.Stat(saved); err == nil {
			return fmt.Errorf("its saved state is there")
		}
		if c, err := p.at().cluster("east"); err == nil {
			return fmt.Errorf("it is %+v", c)
		}
		return nil
	})
	if took := clock.Since(p.up); took > 5*time.Second {
		t.Errorf("it took %v from the moment when the hub was back", took)
	}
}

// TestBE3CredentialsThatDoNotOpen: with another key file than that with which they
// were sealed the cluster is STALE with what was known of it, and says why; with
// the right one it is back. Without any the hub does not start.
func TestBE3CredentialsThatDoNotOpen(t *testing.T) {
	t.Parallel()
	kube := testbed.StartKube(t, testbed.KubeOptions{Users: []testbed.KubeUser{{Name: "reader"}}})
	kube.GrantRead("reader")
	kube.Apply(strings.Split(attachedService, "---\n")...)
	dir := shortDir(t)
	config := filepath.Join(dir, "isthmus.yaml")
	write(t, config, "identity: {ca: none}\n")
	p := startProgramIn(t, dir, "--config", config)
	if got := p.at().ask(t, "attachCluster", kubernetesInput("east", kube.User("reader"))); got.refusals() != "" {
		t.Fatalf("attached: %+v", got)
	}
	p.at().awaitPhase(t, "east", "READY")
	p.signal(t)
	p.wantExit(t, patience, cmdutil.ExitDone)
	key := filepath.Join(p.dir, "data", "seal.key")
	right, err := os.ReadFile(key)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(key); err != nil {
		t.Fatal(err)
	}
	if code, _, told := command(t, append(sockets(p.dir), "--config", config)...); code != cmdutil.ExitFailed ||
		!strings.Contains(told, "seal.key") || !strings.Contains(told, "put it back") {
		t.Errorf("without a key file: exit %d with %q", code, told)
	}
	other := startProgram(t)
	other.signal(t)
	other.wantExit(t, patience, cmdutil.ExitDone)
	wrong, err := os.ReadFile(filepath.Join(other.dir, "data", "seal.key"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, key, string(wrong))
	if err := os.Chmod(key, 0o600); err != nil {
		t.Fatal(err)
	}
	p = startProgramIn(t, p.dir, "--config", config)
	c := p.at().awaitPhase(t, "east", "STALE")
	if !strings.Contains(c.Status.Message, "not in the key file") || !strings.Contains(c.Status.Message, "served as it was") {
		t.Errorf("the message is %q", c.Status.Message)
	}
	write(t, key, string(right))
	p.at().awaitPhase(t, "east", "READY")
}
