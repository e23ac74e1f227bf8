package main

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"isthmus.dev/isthmus/deploy/testbed"
)

// clusterProfile names the cluster of the access, as a cluster manager writes it.
func clusterProfile(version, field, name string, access testbed.Access) string {
	return fmt.Sprintf(`apiVersion: multicluster.x-k8s.io/%s
kind: ClusterProfile
metadata: {name: %s, namespace: isthmus}
spec: {clusterManager: {name: tests}}
status:
  %s:
  - name: another
    cluster: {server: "https://192.0.2.1"}
  - name: secretreader
    cluster:
      server: %q
      certificate-authority-data: %s
      extensions: [{name: client.authentication.k8s.io/exec, extension: {command: /bin/true}}]
`, version, name, field, access.URL, base64.StdEncoding.EncodeToString(access.CA))
}

func profileToken(name, token string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Secret
metadata: {name: %s, namespace: isthmus}
data: {token: %s}
`, name, base64.StdEncoding.EncodeToString([]byte(token)))
}

// TestG40ClusterProfilesAttachRotateAndDetach: ClusterProfiles of an attached cluster name
// further clusters, in both versions of their API, with the shipped rights alone. A cluster that works is not harmed
// by other ClusterProfiles, nor by hundreds of them, nor for as long as its token is missing (U45).
func TestG40ClusterProfilesAttachRotateAndDetach(t *testing.T) {
	t.Parallel()
	home, access := startHome(t, "cluster-profiles.yaml")
	away := startAway(t)
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte("clusterProfiles: {clusters: [home], secret: \"{name}-token\"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	h := startHub(t, "--config", path)
	if got := h.ask(t, "attachCluster", kubernetesInput("home", access)); got.refusals() != "" {
		t.Fatalf("attached: %+v", got)
	}
	h.awaitProblem(t, "home", "CLUSTER_PROFILES_UNREADABLE", "install their CustomResourceDefinition")
	home.Apply(testbed.ClusterProfiles)
	first, second := away.User("first"), away.User("second")
	profile := clusterProfile("v1alpha1", "credentialProviders", "west", first)
	home.Apply(profile)
	if c := h.awaitPhase(t, "west", "FAILED"); !strings.Contains(c.Status.Message, "no Secret isthmus/west-token") {
		t.Errorf("a ClusterProfile without a token: %q", c.Status.Message)
	}
	home.Apply(profileToken("west-token", first.Token))
	if c := h.awaitPhase(t, "west", "READY"); c.Services.TotalCount == 0 {
		t.Errorf("of west there is %+v", c)
	}

	home.Apply(profileToken("west-token", second.Token))
	h.await(t, "the rotation", func() error {
		if !strings.Contains(h.log.String(), "a registry was replaced") {
			return fmt.Errorf("not yet")
		}
		return nil
	})
	home.Apply(strings.Replace(clusterProfile("v1alpha1", "accessProviders", "bad", first), "secretreader", "other", 1))
	if c := h.awaitPhase(t, "bad", "FAILED"); !strings.Contains(c.Status.Message, `no access provider "secretreader"`) {
		t.Errorf("a ClusterProfile of another provider: %q", c.Status.Message)
	}
	home.Apply(strings.Replace(clusterProfile("v1alpha1", "accessProviders", "odd.id", first), "secretreader", "other", 1))
	h.awaitProblem(t, "home", "CLUSTER_PROFILE_INVALID", "metadata.name")
	h.awaitPhase(t, "west", "READY")

	h.contestedProfiles(t, home, first)
	h.manyProfiles(t, home, first)
	home.Delete(profile)
	h.awaitGone(t, "west")
	h.stop()
	secrets := map[string]string{"the first token": first.Token, "the second token": second.Token}
	nowhere(t, filepath.Join(h.dir, "data"), secrets)
	notIn(t, "the log", []byte(h.log.String()), secrets)
}

// contestedProfiles has ClusterProfiles claim what others have: the ID of a cluster, a cluster under a second ID, and under a
// new ID after a rename.
func (h *hubUnderTest) contestedProfiles(t *testing.T, home *testbed.Kube, access testbed.Access) {
	t.Helper()
	profile := func(name string) string { return clusterProfile("v1alpha1", "credentialProviders", name, access) }
	works := func(name string) {
		t.Helper()
		if c := h.awaitPhase(t, name, "READY"); c.Services.TotalCount == 0 {
			t.Errorf("of %s there is %+v", name, c)
		}
	}
	home.Apply(profile("home"), profileToken("home-token", access.Token))
	h.awaitProblem(t, "home", "DUPLICATE_CLUSTER_ID", "isthmus/home of cluster home")
	home.Apply(profile("east"), profileToken("east-token", access.Token)) // comes first, by its name
	works("east")
	h.awaitPhase(t, "west", "FAILED")
	h.awaitProblem(t, "west", "DUPLICATE_CLUSTER", "east")
	home.Delete(profile("east"))
	h.awaitGone(t, "east")
	works("west")

	home.Delete(profileToken("west-token", ""))
	h.await(t, "the missing token to be shown", func() error {
		c, err := h.cluster("west")
		if err == nil && !strings.Contains(c.Status.Message, "no Secret isthmus/west-token") {
			err = fmt.Errorf("it is %+v", c)
		}
		return err
	})
	home.Apply(profileToken("west-token", access.Token))
	works("west")

	home.Delete(profile("west")) // a rename, while the older name is served
	home.Apply(profile("west2"), profileToken("west2-token", access.Token))
	h.awaitGone(t, "west")
	works("west2")
	home.Apply(profile("west"))
	home.Delete(profile("west2"))
	h.awaitGone(t, "west2")
	works("west")
	home.Delete(profile("home"))
}

// manyProfiles has 600 ClusterProfiles without a token beside the one that works, of which the hub takes 500. Those
// that were attached before stay.
func (h *hubUnderTest) manyProfiles(t *testing.T, home *testbed.Kube, access testbed.Access) {
	t.Helper()
	profiles := make([]string, 600)
	for i := range profiles {
		profiles[i] = clusterProfile("v1alpha1", "credentialProviders", fmt.Sprintf("many-%d", i), access)
	}
	clusters := func() (n int, err error) {
		var all struct{ Clusters struct{ TotalCount int } }
		err = h.query(`{clusters {totalCount}}`, &all)
		return all.Clusters.TotalCount, err
	}
	count := func(want int) {
		t.Helper()
		h.await(t, fmt.Sprintf("%d clusters", want), func() error {
			n, err := clusters()
			if err == nil && n != want {
				err = fmt.Errorf("there are %d", n)
			}
			return err
		})
	}
	before, err := clusters()
	if err != nil {
		t.Fatal(err)
	}
	home.Apply(profiles...)
	count(500 + 2) // home, and that of the hub's own services
	var seen struct {
		West, Many struct {
			Status struct{ Phase, Message string }
		}
	}
	err = h.query(`{west: cluster(clusterID: "west") {status {phase message}}
		many: cluster(clusterID: "many-0") {status {phase message}}}`, &seen)
	if err != nil || seen.West.Status.Phase != "READY" || seen.Many.Status.Phase != "FAILED" ||
		!strings.Contains(seen.Many.Status.Message, "no Secret isthmus/many-0-token") {
		t.Errorf("beside many there is %+v, %v", seen, err)
	}
	home.Delete(profiles...)
	count(before)
	h.awaitPhase(t, "west", "READY")
}
