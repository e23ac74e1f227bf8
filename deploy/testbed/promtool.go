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

// promtoolPatience is how long promtool may take.
const promtoolPatience = time.Minute

// Promtool runs promtool and returns what it prints. Relative paths are below dir.
func Promtool(t testing.TB, dir string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), promtoolPatience)
	defer cancel()
	command := exec.CommandContext(ctx, locate(t, toolset.Promtool), args...)
	command.Dir = dir
	output, err := command.CombinedOutput()
	return string(output), err
}

// ControlPlaneDashboard is Istio's dashboard of istiod for Grafana, as JSON.
func ControlPlaneDashboard(t testing.TB) []byte {
	t.Helper()
	beside := filepath.Dir(locate(t, toolset.PilotDiscovery))
	data, err := os.ReadFile(filepath.Join(beside, filepath.Base(toolset.ControlPlaneDashboard)))
	if err != nil {
		t.Fatalf("reading Istio's dashboard: %v", err)
	}
	return data
}
