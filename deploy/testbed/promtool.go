package testbed

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"isthmus.dev/isthmus/deploy/testbed/toolset"
)

// Promtool runs promtool and returns what it prints. Relative paths are below dir.
func Promtool(t testing.TB, dir string, args ...string) (string, error) {
	t.Helper()
	return outputOf(t, nil, toolset.Promtool, args, func(c *exec.Cmd) { c.Dir = dir })
}

// IstioDashboard is one of Istio's dashboards for Grafana, as JSON; the name is that of toolset.
func IstioDashboard(t testing.TB, name string) []byte {
	t.Helper()
	beside := filepath.Dir(locate(t, toolset.PilotDiscovery))
	data, err := os.ReadFile(filepath.Join(beside, filepath.Base(name)))
	if err != nil {
		t.Fatalf("reading Istio's dashboard: %v", err)
	}
	return data
}
