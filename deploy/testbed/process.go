package testbed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	readyLimit = 3 * time.Minute // several start beside each other
	stopLimit  = 15 * time.Second

	capNetAdmin = 12 // CAP_NET_ADMIN of Linux
)

// ProgramOptions say how a program is run.
type ProgramOptions struct {
	Name      string // For logs and errors.
	Path      string // Absolute; the user that UID names need not be able to reach it.
	Args      []string
	Env       []string   // In addition to the environment of the test.
	Dir       string     // The working directory; empty is that of the test.
	Namespace *Namespace // Nil is the network of the test.
	UID       int        // User and group to run as; 0 is that of the test. Others need root.
	NetAdmin  bool       // With a UID: it keeps the right to open transparent sockets.
	// Ready returns nil once the program serves. Nil waits for nothing.
	Ready func(context.Context) error
}

// A Process is one program that a test started. Its methods may be called from
// any goroutine, but Restart only from that of the test.
type Process struct {
	t       testing.TB
	options ProgramOptions
	log     *processLog

	mu  sync.Mutex
	run *run
}

// A run is one life of a process. err is set before exited is closed.
type run struct {
	pid    int
	exited chan struct{}
	err    error
}

// StartProgram runs a program and returns when it is ready; it is killed when
// the test ends.
func StartProgram(t testing.TB, options ProgramOptions) *Process {
	t.Helper()
	p := &Process{t: t, options: options, log: openLog(t, options)}
	t.Cleanup(func() {
		p.Kill()
		p.log.close()
	})
	p.Restart()
	return p
}

// Restart stops the process if it runs, starts it again with the same arguments
// and returns when it is ready. It ends the test if that fails.
func (p *Process) Restart() {
	p.t.Helper()
	p.Stop()
	if err := p.launch(); err != nil {
		p.t.Fatalf("starting %s: %v", p.options.Name, err)
	}
	if err := p.awaitReady(readyLimit); err != nil {
		p.t.Fatalf("starting %s: %v", p.options.Name, err)
	}
}

func (p *Process) awaitReady(limit time.Duration) error {
	if p.options.Ready == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	exited := p.Exited()
	err := poll(ctx, exited, func() error {
		attempt, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		return p.options.Ready(attempt)
	})
	select {
	case <-exited:
		return fmt.Errorf("it ended before it was ready: %w", p.current().ended())
	default:
	}
	if err != nil {
		return fmt.Errorf("not ready after %s: %w", limit, err)
	}
	return nil
}

// launch starts the program on a thread that stays until the program ends: the
// kernel ends the program when that thread ends.
func (p *Process) launch() error {
	program, err := os.Open(p.options.Path)
	if err != nil {
		return err
	}
	defer program.Close()
	cmd := p.command(program)
	started := make(chan error, 1)
	life := &run{exited: make(chan struct{})}
	go func() {
		defer close(life.exited)
		life.err = p.options.Namespace.Run(func() error {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			if err := cmd.Start(); err != nil {
				started <- err
				return err
			}
			life.pid = cmd.Process.Pid
			started <- nil
			return cmd.Wait()
		})
	}()
	select {
	case err = <-started:
	case <-life.exited:
		err = life.err
	}
	if err != nil {
		return err
	}
	p.mu.Lock()
	p.run = life
	p.mu.Unlock()
	return nil
}

// command runs the open file, so that the program may be in a folder that the
// user of the process cannot enter.
func (p *Process) command(program *os.File) *exec.Cmd {
	cmd := &exec.Cmd{
		Path:        "/proc/self/fd/3",
		Args:        append([]string{p.options.Path}, p.options.Args...),
		Env:         append(os.Environ(), p.options.Env...),
		Dir:         p.options.Dir,
		Stdout:      p.log.file,
		Stderr:      p.log.file,
		ExtraFiles:  []*os.File{program},
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL},
	}
	if uid := uint32(p.options.UID); uid != 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uid, Gid: uid}
		if p.options.NetAdmin {
			cmd.SysProcAttr.AmbientCaps = []uintptr{capNetAdmin}
		}
	}
	return cmd
}

func (p *Process) current() *run {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.run
}

// signal reaches the whole process group; it reports whether it still runs.
func (p *Process) signal(signals ...syscall.Signal) bool {
	life := p.current()
	if life == nil || life.over() {
		return false
	}
	for _, signal := range signals {
		if err := syscall.Kill(-life.pid, signal); errors.Is(err, syscall.ESRCH) {
			return false
		}
	}
	return true
}

// Stop asks the process to end, kills it after 15 s and returns when it is gone.
func (p *Process) Stop() {
	if p.signal(syscall.SIGTERM, syscall.SIGCONT) {
		awaitEnd(p)
	}
}

func awaitEnd(p *Process) {
	timer := time.NewTimer(stopLimit)
	defer timer.Stop()
	select {
	case <-p.Exited():
	case <-timer.C:
		p.Kill()
	}
}

// Kill ends the process at once with SIGKILL and returns when it is gone.
func (p *Process) Kill() {
	if p.signal(syscall.SIGKILL) {
		<-p.Exited()
	}
}

// Pause freezes the process: its connections stay open without answers. It returns when no
// thread runs any more, which takes a moment on a machine with other work.
func (p *Process) Pause() {
	if !p.signal(syscall.SIGSTOP) {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), readyLimit)
	defer cancel()
	if err := poll(ctx, p.Exited(), func() error { return frozen(p.PID()) }); err != nil {
		p.t.Errorf("%s is not frozen: %v", p.options.Name, err)
	}
}

// frozen says which thread of the process runs still.
func frozen(pid int) error {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil {
		return err
	}
	for _, thread := range threads {
		stat, err := os.ReadFile(thread)
		if err != nil {
			continue // it has ended
		}
		// The name before the state may hold anything.
		if _, state, _ := strings.Cut(string(stat[bytes.LastIndexByte(stat, ')')+1:]), " "); !strings.HasPrefix(state, "T") {
			return fmt.Errorf("%s says %.40s", thread, state)
		}
	}
	return nil
}

// Resume ends a Pause.
func (p *Process) Resume() { p.signal(syscall.SIGCONT) }

// PID returns the process id of the present or last run.
func (p *Process) PID() int { return p.current().pid }

// Exited is closed when the present run has ended.
func (p *Process) Exited() <-chan struct{} { return p.current().exited }

// Output returns what the process has printed in all its runs.
func (p *Process) Output() []byte { return p.log.bytes() }

func (r *run) over() bool {
	select {
	case <-r.exited:
		return true
	default:
		return false
	}
}

func (r *run) ended() error {
	if r.err != nil {
		return r.err
	}
	return errors.New("exit status 0")
}
