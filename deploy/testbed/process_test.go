package testbed

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

const childVariable = "TESTBED_CHILD"

// startSleeper runs a shell with a child of its own.
func startSleeper(t *testing.T) *Process {
	t.Helper()
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Fatal(err)
	}
	return StartProgram(t, ProgramOptions{Name: "sleeper", Path: shell, Args: []string{"-c", "echo hello; sleep 1000 & wait"}})
}

// gone reports that nothing of a process group runs any more.
func gone(group int) error {
	if err := syscall.Kill(-group, 0); !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("the process group %d still runs", group)
	}
	return nil
}

func TestProcessStopsWithAllItsChildren(t *testing.T) {
	for name, end := range map[string]func(*Process){"stop": (*Process).Stop, "kill": (*Process).Kill} {
		t.Run(name, func(t *testing.T) {
			sleeper := startSleeper(t)
			end(sleeper)
			WaitFor(t, time.Minute, "the process to end", func() error { return gone(sleeper.PID()) })
		})
	}
}

func TestProcessPausesAndRestarts(t *testing.T) {
	sleeper := startSleeper(t)
	first := sleeper.PID()
	sleeper.Pause()
	WaitFor(t, time.Minute, "the process to be frozen", func() error { return inState(first, "T") })
	sleeper.Resume()
	WaitFor(t, time.Minute, "the process to go on", func() error { return inState(first, "S") })
	sleeper.Restart()
	if sleeper.PID() == first {
		t.Errorf("after a restart the process still has the id %d", first)
	}
	WaitFor(t, time.Minute, "the second greeting", func() error {
		if got := strings.Count(string(sleeper.Output()), "hello"); got != 2 {
			return fmt.Errorf("%d greetings, want one of each run", got)
		}
		return nil
	})
}

func inState(pid int, want string) error {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return err
	}
	if fields := strings.Fields(string(stat)); fields[2] != want {
		return fmt.Errorf("the process %d is in state %s, not %s", pid, fields[2], want)
	}
	return nil
}

// runChild runs one test of this binary as a child that is told to misbehave.
func runChild(t *testing.T, logs string) string {
	t.Helper()
	child := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	child.Env = append(os.Environ(), childVariable+"=1", "ISTHMUS_TEST_LOGS="+logs, "TMPDIR="+t.TempDir())
	printed, err := child.CombinedOutput()
	if err == nil {
		t.Fatalf("the child did not fail:\n%s", printed)
	}
	return string(printed)
}

func TestProcessEndsWithATestThatPanics(t *testing.T) {
	if os.Getenv(childVariable) != "" {
		fmt.Printf("pid=%d.\n", startSleeper(t).PID())
		go panic("deliberate")
		select {}
	}
	printed := runChild(t, t.TempDir())
	_, rest, _ := strings.Cut(printed, "pid=")
	text, _, _ := strings.Cut(rest, ".")
	pid, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("the child did not name a process: %v\n%s", err, printed)
	}
	t.Cleanup(func() { syscall.Kill(-pid, syscall.SIGKILL) }) // its own child outlives it
	WaitFor(t, time.Minute, "the process to end", func() error {
		if err := syscall.Kill(pid, 0); err == nil {
			return inState(pid, "Z")
		}
		return nil
	})
}

func TestProcessKeepsItsLogWhenTheTestFails(t *testing.T) {
	if os.Getenv(childVariable) != "" {
		sleeper := startSleeper(t)
		WaitFor(t, time.Minute, "the greeting", func() error {
			if len(sleeper.Output()) == 0 {
				return errors.New("no output")
			}
			return nil
		})
		t.Fatal("deliberate")
	}
	logs := t.TempDir()
	printed := runChild(t, logs)
	kept := filepath.Join(logs, t.Name(), "sleeper.log")
	text, err := os.ReadFile(kept)
	if err != nil || string(text) != "hello\n" {
		t.Errorf("the kept log is %q, %v; want the greeting", text, err)
	}
	if !strings.Contains(printed, kept) {
		t.Errorf("the test log does not name %s:\n%s", kept, printed)
	}
}
