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

// clusterProfiles is a CustomResourceDefinition of ClusterProfiles, as far as the hub reads
// them.
func clusterProfiles(version string) string {
	return fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: clusterprofiles.multicluster.x-k8s.io
  annotations: {api-approved.kubernetes.io: "https://github.com/kubernetes/enhancements/tree/master/keps/sig-multicluster/4322-cluster-inventory"}
spec:
  group: multicluster.x-k8s.io
  scope: Namespaced
  names: {kind: ClusterProfile, plural: clusterprofiles, singular: clusterprofile, listKind: ClusterProfileList}
  versions:
  - name: %s
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`, version)
}

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
// further clusters, in both versions of their API, with the shipped rights alone.
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
	home.Apply(clusterProfiles("v1alpha1"))
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

	home.Delete(profile)
	h.awaitGone(t, "west")
	h.stop()
	secrets := map[string]string{"the first token": first.Token, "the second token": second.Token}
	nowhere(t, filepath.Join(h.dir, "data"), secrets)
	notIn(t, "the log", []byte(h.log.String()), secrets)
}
