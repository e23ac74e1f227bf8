package conformance

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"isthmus.dev/isthmus/deploy/testbed"
)

// programs is, in the environment, the folder of the programs that the tests build.
const programs = "ISTHMUS_CONFORMANCE_PROGRAMS"

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	flag.Parse()
	if testing.Short() || os.Getenv(programs) != "" {
		return testbed.Isolate(m, func() error { return nil })
	}
	dir, err := os.MkdirTemp("", "isthmus-conformance-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	os.Setenv(programs, dir)
	return testbed.Isolate(m, func() error { return build(dir) })
}

// build builds the hub, and what the pods of the suite run.
func build(dir string) error {
	const istios = "istio.io/istio/pkg/test/echo/cmd/"
	for _, p := range []struct{ from, path string }{
		{"../..", "isthmus.dev/isthmus/cmd/isthmus"},
		{".", "sigs.k8s.io/gateway-api/conformance/echo-basic"},
		{".", "isthmus.dev/isthmus/deploy/conformance/coredns"},
		{"echo", istios + "server"},
		{"echo", istios + "client"},
	} {
		cmd := exec.Command("go", "build", "-o", dir, p.path)
		cmd.Dir = p.from
		cmd.Env = append(os.Environ(), testbed.Shared()...)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("building %s: %w\n%s", p.path, err, out)
		}
	}
	return nil
}

func program(name string) string { return filepath.Join(os.Getenv(programs), name) }
