package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// The binary under test is built once, with the race detector, by the first
// test that needs it; TestMain removes it.
var (
	binaryDir string
	binary    = sync.OnceValues(func() (string, error) {
		path := filepath.Join(binaryDir, "isthmus")
		out, err := exec.Command("go", "build", "-race", "-o", path, "isthmus.dev/isthmus/cmd/isthmus").CombinedOutput()
		if err != nil {
			return "", fmt.Errorf("building the hub: %w\n%s", err, out)
		}
		return path, nil
	})
)

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "isthmus-e2e-binary-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	binaryDir = dir
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

func hubBinary(t *testing.T) string {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	return path
}
