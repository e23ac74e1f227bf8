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

// istioctlPatience is how long istioctl may take.
const istioctlPatience = time.Minute

// noCluster is a kubeconfig for a cluster that does not answer.
const noCluster = `{apiVersion: v1, kind: Config, current-context: none, contexts: [{name: none, context: {cluster: none, user: none}}],
  clusters: [{name: none, cluster: {server: "http://127.0.0.1:1"}}], users: [{name: none, user: {}}]}
`

// Istioctl runs Istio's own command line, unmodified, with a kubeconfig for a cluster that
// does not answer, and returns what it prints. Most commands that ask a control plane need a
// --revision then: they would ask the cluster for it.
func Istioctl(t testing.TB, args ...string) (string, error) {
	t.Helper()
	path := locate(t, toolset.Istioctl)
	home := t.TempDir()
	kubeconfig := filepath.Join(home, "kubeconfig")
	if err := os.WriteFile(kubeconfig, []byte(noCluster), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), istioctlPatience)
	defer cancel()
	command := exec.CommandContext(ctx, path, append(args, "--kubeconfig", kubeconfig)...)
	command.Env = []string{"HOME=" + home}
	output, err := command.CombinedOutput()
	return string(output), err
}
