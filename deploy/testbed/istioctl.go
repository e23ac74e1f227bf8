package testbed

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"isthmus.dev/isthmus/deploy/testbed/toolset"
)

// noCluster is a kubeconfig for a cluster that does not answer.
const noCluster = `{apiVersion: v1, kind: Config, current-context: none, contexts: [{name: none, context: {cluster: none, user: none}}],
  clusters: [{name: none, cluster: {server: "http://127.0.0.1:1"}}], users: [{name: none, user: {}}]}
`

// Istioctl runs Istio's own command line, unmodified, with a kubeconfig for a cluster that
// does not answer, and returns what it prints. Most commands that ask a control plane need a
// --revision then: they would ask the cluster for it.
func Istioctl(t testing.TB, args ...string) (string, error) {
	t.Helper()
	return IstioctlOf(t, nil, []byte(noCluster), args...)
}

// IstioctlOf is Istioctl with the kubeconfig of a cluster, in a network namespace.
func IstioctlOf(t testing.TB, at *Namespace, kubeconfig []byte, args ...string) (string, error) {
	t.Helper()
	home := t.TempDir()
	file := filepath.Join(home, "kubeconfig")
	if err := os.WriteFile(file, kubeconfig, 0o600); err != nil {
		t.Fatal(err)
	}
	return outputOf(t, at, toolset.Istioctl, append(args, "--kubeconfig", file), func(c *exec.Cmd) { c.Env = []string{"HOME=" + home} })
}

// outputPatience is how long a tool may take that ends by itself.
const outputPatience = time.Minute

// outputOf runs a tool to its end in a network namespace, as set up, and returns what it prints.
func outputOf(t testing.TB, at *Namespace, tool string, args []string, setUp func(*exec.Cmd)) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), outputPatience)
	defer cancel()
	command := exec.CommandContext(ctx, locate(t, tool), args...)
	setUp(command)
	var output []byte
	err := at.Run(func() (err error) {
		output, err = command.CombinedOutput()
		return err
	})
	return string(output), err
}
