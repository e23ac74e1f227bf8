package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// lookEvery is how often files and processes without events are looked at.
const lookEvery = 50 * time.Millisecond

// folder is where a running demo keeps its process ID, its log, and a link to a
// folder for all else that it writes, which the users of proxies may enter.
type folder string

func (f folder) file(name string) string { return filepath.Join(string(f), name) }

// told is the last line of the story: the demo goes on without a listener.
const (
	told    = "The demo keeps running. To stop it, run make demo-down."
	toldLab = "The networks keep running. To remove them, run make lab-down."
)

// up starts the program again in the background, with these arguments, and shows
// its story to the end.
func up(f folder, args []string, out io.Writer) error {
	if pid, running := f.running(); running {
		return fmt.Errorf("it runs already, as process %d; end that first (make demo-down, make lab-down)", pid)
	}
	if os.Geteuid() != 0 {
		return errors.New("it makes network namespaces: run it as root")
	}
	if err := errors.Join(f.clear(), os.MkdirAll(string(f), 0o755)); err != nil {
		return err
	}
	log, err := os.Create(f.file("log"))
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // only written to by the demo
	self, err := os.Executable()
	if err != nil {
		return err
	}
	files, err := f.files()
	if err != nil {
		return err
	}
	demo := exec.Command(self, append(args, string(f))...)
	demo.Stdout, demo.Stderr, demo.Env = log, log, append(os.Environ(), "TMPDIR="+files)
	demo.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := demo.Start(); err != nil {
		return err
	}
	if err := os.WriteFile(f.file("pid"), []byte(strconv.Itoa(demo.Process.Pid)), 0o600); err != nil {
		return errors.Join(err, demo.Process.Kill())
	}
	ended := make(chan error, 1)
	go func() { ended <- demo.Wait() }()
	return f.show(out, ended)
}

// files makes the folder for files.
func (f folder) files() (string, error) {
	dir, err := os.MkdirTemp("", tempName)
	if err != nil {
		return "", err
	}
	return dir, errors.Join(os.Chmod(dir, 0o755), os.Symlink(dir, f.file("tmp")))
}

// tempName begins the name of the folder for files.
const tempName = "isthmus-demo-"

// clear removes the folder and that for files.
func (f folder) clear() error {
	dir, err := os.Readlink(f.file("tmp"))
	if err == nil && strings.HasPrefix(filepath.Base(dir), tempName) {
		err = os.RemoveAll(dir)
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, os.RemoveAll(string(f)))
}

// show copies the log until the story is over or the demo has ended.
func (f folder) show(out io.Writer, ended <-chan error) error {
	log, err := os.Open(f.file("log"))
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // only read
	lines := bufio.NewReader(log)
	again := time.NewTicker(lookEvery)
	defer again.Stop()
	part := ""
	for {
		text, err := lines.ReadString('\n')
		part += text
		if err == nil {
			if _, err := io.WriteString(out, part); err != nil || strings.TrimSpace(part) == told || strings.TrimSpace(part) == toldLab {
				return err
			}
			part = ""
			continue
		}
		select {
		case <-ended:
			rest, _ := io.ReadAll(lines)
			_, _ = fmt.Fprintf(out, "%s%s", part, rest) // the error below says more
			return errors.Join(fmt.Errorf("it ended; %s has all that it said", f.file("log")), os.Remove(f.file("pid")))
		case <-again.C:
		}
	}
}

// running reports whether the demo of this folder runs.
func (f folder) running() (pid int, running bool) {
	text, err := os.ReadFile(f.file("pid"))
	if err != nil {
		return 0, false
	}
	pid, err = strconv.Atoi(string(text))
	if err != nil {
		return 0, false
	}
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return pid, err == nil && strings.HasSuffix(string(line), "\x00"+string(f)+"\x00")
}

// down ends the demo; everything that it started ends with it.
func (f folder) down(out io.Writer) error {
	pid, running := f.running()
	if running {
		if err := end(pid); err != nil {
			return err
		}
	}
	if err := f.clear(); err != nil {
		return err
	}
	if !running {
		_, err := fmt.Fprintln(out, "nothing was running")
		return err
	}
	_, err := fmt.Fprintln(out, "it has ended, and everything that it created is removed")
	return err
}

// end asks the process to end, and waits until it has.
func end(pid int) error {
	process, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	if err := process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	again := time.NewTicker(lookEvery)
	defer again.Stop()
	for range 600 {
		if process.Signal(syscall.Signal(0)) != nil {
			return nil
		}
		<-again.C
	}
	return fmt.Errorf("process %d does not end", pid)
}
