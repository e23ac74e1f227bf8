package testbed

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// isolated is set in the environment of a process that Isolate started.
const isolated = "ISTHMUS_TEST_ISOLATED"

// Isolate runs the tests of the package in a process with a network namespace of its own,
// and returns the exit code; it is for TestMain. Own is that namespace. It calls prepare
// before, in the network of the machine.
func Isolate(m *testing.M, prepare func() error) int {
	if os.Getenv(isolated) != "" {
		return m.Run()
	}
	if err := prepare(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	cmd := exec.Command(os.Args[0], os.Args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), isolated+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	err := cmd.Run()
	var failed *exec.ExitError
	switch {
	case errors.As(err, &failed):
		return failed.ExitCode()
	case err != nil:
		fmt.Fprintf(os.Stderr, "running the tests in a network namespace: %v; run the tests as root\n", err)
		return 1
	}
	return 0
}

// Own returns the network namespace of a test process that Isolate started.
func Own(t testing.TB) *Namespace {
	t.Helper()
	if os.Getenv(isolated) == "" {
		t.Fatal("the test process has no network namespace of its own; see Isolate")
	}
	file, err := os.Open("/proc/self/ns/net")
	if err != nil {
		t.Fatalf("opening the network namespace of the test: %v", err)
	}
	t.Cleanup(func() { file.Close() })
	n := &Namespace{t: t, name: "the test", file: file}
	n.Exec("ip", "link", "set", "lo", "up")
	return n
}
