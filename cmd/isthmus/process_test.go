package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"isthmus.dev/isthmus/internal/cli/cmdutil"
)

// program is a hub in a process of its own.
type program struct {
	*exec.Cmd
	dir  string
	log  Text
	done chan error
	up   time.Time // when it first answered
}

func startProgram(t *testing.T) *program {
	t.Helper()
	return startProgramIn(t, shortDir(t))
}

// startProgramIn starts a hub on the files of the folder, and waits until it is
// ready.
func startProgramIn(t *testing.T, dir string, args ...string) *program {
	t.Helper()
	return startCommand(t, dir, append(append([]string{os.Args[0]}, sockets(dir)...), args...)...)
}

func startCommand(t *testing.T, dir string, command ...string) *program {
	t.Helper()
	p := &program{dir: dir, done: make(chan error, 1)}
	p.Cmd = exec.Command(command[0], command[1:]...)
	p.Env = append(os.Environ(), asProgram+"=1")
	p.Stderr = &p.log
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { p.done <- p.Wait(); close(ended) }()
	t.Cleanup(func() {
		_ = p.Process.Kill() // it may have ended
		<-ended
	})
	h := &hubUnderTest{client: socketClient(filepath.Join(p.dir, "graphql"))}
	h.await(t, "the program to be ready", func() error {
		status, body, err := h.get("/readyz")
		if err == nil && p.up.IsZero() {
			p.up = time.Now()
		}
		if err == nil && status != 200 {
			err = fmt.Errorf("it answers %d %s", status, body)
		}
		return err
	})
	return p
}

// holdRequest opens a request whose body does not end, so that a drain has
// something to wait for.
func (p *program) holdRequest(t *testing.T) {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(context.Background(), "unix", filepath.Join(p.dir, "graphql"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_,
		err = io.WriteString(conn,
		"POST /graphql HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: 100\r\n\r\n")
	if err != nil {
		t.Fatal(err)
	}
	// The interim answer means that the handler is reading the body.
	if _, err := io.ReadFull(conn, make([]byte, len("HTTP/1.1 100 Continue"))); err != nil {
		t.Fatal(err)
	}
}

func (p *program) signal(t *testing.T) {
	t.Helper()
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
}

func (p *program) wantExit(t *testing.T, within time.Duration, code int) {
	t.Helper()
	limit := time.NewTimer(within)
	defer limit.Stop()
	select {
	case <-p.done:
		if got := p.ProcessState.ExitCode(); got != code {
			t.Errorf("exit %d, want %d\n%s", got, code, p.log.String())
		}
	case <-limit.C:
		t.Errorf("it still runs after %v", within)
	}
}

func TestF12FirstSignalDrains(t *testing.T) {
	t.Parallel()
	p := startProgram(t)
	p.beginDrain(t)
	p.wantExit(t, patience, cmdutil.ExitDone)
}

// TestF12SecondSignalEndsAtOnce: without waiting for the drain, which lasts for an hour here.
func TestF12SecondSignalEndsAtOnce(t *testing.T) {
	t.Setenv(endlessDrain, "1")
	p := startProgram(t)
	p.beginDrain(t)
	if len(p.done) > 0 {
		t.Fatalf("it ended by the first signal\n%s", p.log.String())
	}
	p.signal(t)
	p.wantExit(t, patience, cmdutil.ExitFailed)
}

// beginDrain asks a hub that has a request to end.
func (p *program) beginDrain(t *testing.T) {
	t.Helper()
	p.holdRequest(t)
	p.signal(t)
	health := &hubUnderTest{client: socketClient(filepath.Join(p.dir, "health"))}
	health.await(t, "the hub to be not ready", func() error {
		if len(p.done) > 0 {
			return nil // it drained before anybody looked
		}
		if status, body, err := health.get("/readyz"); err != nil || status != 503 {
			return fmt.Errorf("it answers %d %s, %w", status, body, err)
		}
		return nil
	})
}

func TestF01KilledHubStartsAgainOnItsData(t *testing.T) {
	t.Parallel()
	p := startProgram(t)
	if err := p.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-p.done
	again := startProgramIn(t, p.dir)
	again.signal(t)
	again.wantExit(t, patience, cmdutil.ExitDone)
}
