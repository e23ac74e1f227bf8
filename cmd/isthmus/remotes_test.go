package main

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"isthmus.dev/isthmus/deploy/testbed"
)

// startHome is an API server, and the hub's access to it with the rights of our
// manifests alone.
func startHome(t *testing.T, manifests ...string) (*testbed.Kube, testbed.Access) {
	t.Helper()
	return startReader(t, "home", manifests...)
}

// startReader is startHome with a name for the API server.
func startReader(t *testing.T, name string, manifests ...string) (*testbed.Kube, testbed.Access) {
	t.Helper()
	home := testbed.StartKube(t, testbed.KubeOptions{Name: name})
	for _, file := range append([]string{"reader.yaml"}, manifests...) {
		manifest, err := os.ReadFile("../../deploy/kubernetes/" + file)
		if err != nil {
			t.Fatal(err)
		}
		home.Apply(string(manifest))
	}
	access := home.Admin
	access.Cert, access.Key = nil, nil
	access.Token = home.ServiceAccountToken(testbed.TokenOptions{Namespace: "isthmus", Account: "isthmus-reader"})
	return home, access
}

// readingHome is a config file that has the Secrets of home read.
func readingHome(t *testing.T) []string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte("remoteSecrets: {clusters: [home]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"--config", path}
}

// startAway is another one with a service, which the users first and second read.
func startAway(t *testing.T) *testbed.Kube {
	t.Helper()
	away := testbed.StartKube(t, testbed.KubeOptions{Name: "away", Users: []testbed.KubeUser{{Name: "first"}, {Name: "second"}}})
	away.GrantRead("first")
	away.GrantRead("second")
	away.Apply(strings.Split(attachedService, "---\n")...)
	return away
}

// remoteSecret is what istioctl's create-remote-secret makes.
func remoteSecret(name, key string, kubeconfig []byte) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Secret
metadata: {name: %s, namespace: istio-system, labels: {istio/multiCluster: "true"}}
data: {%q: %s}
`, name, key, base64.StdEncoding.EncodeToString(kubeconfig))
}

func (h *hubUnderTest) awaitProblem(t *testing.T, id, code, holds string) {
	t.Helper()
	h.await(t, "the problem "+code+" at "+id, func() error {
		c, err := h.cluster(id)
		if err != nil {
			return err
		}
		for _, p := range c.Problems.Nodes {
			if p.Code == code && strings.Contains(p.Field+" "+p.Message, holds) {
				return nil
			}
		}
		return fmt.Errorf("its problems are %+v", c.Problems.Nodes)
	})
}

func (h *hubUnderTest) awaitGone(t *testing.T, id string) {
	t.Helper()
	clock, began := testbed.StartClock(t), time.Now()
	h.await(t, "cluster "+id+" to be gone", func() error {
		if c, err := h.cluster(id); err == nil {
			return fmt.Errorf("it is %+v", c)
		}
		return nil
	})
	if took := clock.Since(began); took > 5*time.Second {
		t.Errorf("%s is gone after %v", id, took)
	}
}

// TestRemoteSecretsAttachRotateAndDetach: Istio's remote secrets in an attached
// cluster name further clusters (seed 5.6); an operator's word comes first.
func TestRemoteSecretsAttachRotateAndDetach(t *testing.T) {
	t.Parallel()
	home, access := startHome(t, "remote-secrets.yaml")
	away := startAway(t)
	h := startHub(t, readingHome(t)...)
	if got := h.ask(t, "attachCluster", kubernetesInput("home", access)); got.refusals() != "" {
		t.Fatalf("attached: %+v", got)
	}
	first, second := away.User("first"), away.User("second")
	secrets := map[string]string{"the first token": first.Token, "the second token": second.Token}
	home.Apply(remoteSecret("remote-west", "west", first.Kubeconfig()))
	if c := h.awaitPhase(t, "west", "READY"); c.Services.TotalCount == 0 {
		t.Errorf("of west there is %+v", c)
	}

	home.Apply(remoteSecret("remote-west", "west", second.Kubeconfig()))
	h.await(t, "the rotation", func() error {
		if !strings.Contains(h.log.String(), "a registry was replaced") {
			return fmt.Errorf("not yet")
		}
		return nil
	})
	home.Apply(remoteSecret("remote-bad", "bad", []byte(fmt.Sprintf(kubeconfig, "exec: {command: /bin/true}"))))
	if c := h.awaitPhase(t, "bad", "FAILED"); !strings.Contains(c.Status.Message, "(exec)") ||
		!strings.Contains(c.Status.Message, "istio-system/remote-bad of cluster home") {
		t.Errorf("a kubeconfig that executes: %q", c.Status.Message)
	}
	home.Apply(remoteSecret("remote-odd", "No.ID", first.Kubeconfig()))
	h.awaitProblem(t, "home", "REMOTE_SECRET_INVALID", "No.ID")
	home.Apply(remoteSecret("remote-home", "home", first.Kubeconfig()))
	h.awaitProblem(t, "home", "DUPLICATE_CLUSTER_ID", "remote-home")
	home.Apply(remoteSecret("remote-west-2", "west", first.Kubeconfig()))
	h.awaitProblem(t, "west", "DUPLICATE_CLUSTER_ID", "remote-west-2")
	if got := h.ask(t, "detachCluster", map[string]any{"clusterID": "west"}); got.refusals() != "ATTACHED_ELSEWHERE" ||
		!strings.Contains(got.UserErrors[0].Message, "remote-west of cluster home") {
		t.Errorf("a cluster of a Secret is detached: %+v", got)
	}

	home.Delete(remoteSecret("remote-west-2", "west", nil))
	if got := h.ask(t, "attachCluster", kubernetesInput("west", first)); got.refusals() != "" {
		t.Fatalf("an operator does not get the ID: %+v", got)
	}
	h.awaitProblem(t, "west", "DUPLICATE_CLUSTER_ID", "remote-west")
	if got := h.ask(t, "detachCluster", map[string]any{"clusterID": "west"}); got.refusals() != "" {
		t.Errorf("detached: %+v", got)
	}
	h.awaitPhase(t, "west", "READY")
	home.Delete(remoteSecret("remote-west", "west", nil))
	h.awaitGone(t, "west")

	home.Apply(remoteSecret("remote-west", "west", first.Kubeconfig()))
	h.awaitPhase(t, "west", "READY")
	if got := h.ask(t, "detachCluster", map[string]any{"clusterID": "home"}); got.refusals() != "" {
		t.Errorf("detached: %+v", got)
	}
	h.awaitGone(t, "west")
	h.awaitGone(t, "home") // a Secret of its own had the ID too
	h.stop()
	nowhere(t, filepath.Join(h.dir, "data"), secrets)
	notIn(t, "the log", []byte(h.log.String()), secrets)
}

// TestRemoteSecretsOutliveTheirCluster: a cluster whose Secrets cannot be read
// detaches nothing, after a restart neither; what went meanwhile goes when they are
// read again.
func TestRemoteSecretsOutliveTheirCluster(t *testing.T) {
	t.Parallel() // it waits most of the time
	home, access := startHome(t, "remote-secrets.yaml")
	away := startAway(t)
	reading := readingHome(t)
	p := startProgramIn(t, shortDir(t), reading...)
	if got := p.at().ask(t, "attachCluster", kubernetesInput("home", access)); got.refusals() != "" {
		t.Fatalf("attached: %+v", got)
	}
	home.Apply(remoteSecret("remote-west", "west", away.User("first").Kubeconfig()))
	services := p.at().awaitPhase(t, "west", "READY").Services.TotalCount
	saved := filepath.Join(p.dir, "data", "last-known-good", "west.Kubernetes.db")
	p.at().await(t, "the saved state", func() error { _, err := os.Stat(saved); return err })
	home.Stop()
	p.at().awaitPhase(t, "home", "STALE")
	p.at().awaitPhase(t, "west", "READY")
	p.kill()

	p = startProgramIn(t, p.dir, reading...)
	p.at().await(t, "west to be served as it was", func() error {
		c, err := p.at().cluster("west")
		if err == nil && (c.Status.Phase != "STALE" || c.Services.TotalCount != services ||
			!strings.Contains(c.Status.Message, "Secret of cluster home")) {
			err = fmt.Errorf("it is %+v", c)
		}
		return err
	})
	home.Restart()
	p.at().awaitPhase(t, "west", "READY")
	p.kill()
	home.Delete(remoteSecret("remote-west", "west", nil))
	clock := testbed.StartClock(t)
	p = startProgramIn(t, p.dir, reading...)
	p.at().await(t, "nothing of west to be left", func() error {
		if c, err := p.at().cluster("west"); err == nil {
			return fmt.Errorf("it is %+v", c)
		}
		if _, err := os.Stat(saved); err == nil {
			return fmt.Errorf("its saved state is there")
		}
		return nil
	})
	if took := clock.Since(p.up); took > 5*time.Second {
		t.Errorf("it took %v from the moment when the hub was back", took)
	}
}

// TestR12RemoteSecretsAreOffByDefault, and on for the clusters that the config file
// names: others are not asked, whatever their account may do.
func TestR12RemoteSecretsAreOffByDefault(t *testing.T) {
	t.Parallel()
	home, access := startHome(t, "remote-secrets.yaml")
	away := startAway(t)
	home.Apply(remoteSecret("remote-west", "west", away.User("first").Kubeconfig()))
	other := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(other, []byte("remoteSecrets: {clusters: [elsewhere]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string][]string{"Default": nil, "OfAnotherCluster": {"--config", other}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxy := startAPIProxy(t, access)
			h := startHub(t, args...)
			if got := h.ask(t, "attachCluster", kubernetesInput("home", proxy.access)); got.refusals() != "" {
				t.Fatalf("attached: %+v", got)
			}
			h.awaitPhase(t, "home", "READY")
			proxy.killBefore(0, nil)
			h.await(t, "the next proof of the cluster", func() error {
				if steps := proxy.taken(); len(steps) < 3 {
					return fmt.Errorf("the steps are %q", steps)
				}
				return nil
			})
			h.stop()
			if steps := strings.Join(proxy.taken(), "\n"); strings.Contains(steps, "/secrets") ||
				strings.Contains(h.log.String(), "an object names it") {
				t.Errorf("Secrets are read:\n%s", steps)
			}
		})
	}
}
