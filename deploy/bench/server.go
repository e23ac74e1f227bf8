package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/xds"
)

// server is the server under test, in a process of its own so that its CPU and
// memory are its own. It obeys lines on standard input ("change TURN", "usage")
// and answers each with one line.
type server struct {
	services  int
	recording string
}

func (s server) runHub(ctx context.Context) error {
	aggregate := federation.NewAggregate(nil)
	writer := aggregate.Open(source())
	writer.Update(fill(s.services))
	ads := xds.New(xds.Options{Snapshots: aggregate, Fleet: fleet.New(), Logger: slog.New(slog.DiscardHandler)})
	grpcServer := grpc.NewServer(ads.ServerOptions()...)
	ads.Register(grpcServer)
	return s.serve(ctx, grpcServer, func(turn int) { writer.Update(change(turn%s.services, turn+1)) })
}

// serve prints its address, then obeys until standard input ends.
func (s server) serve(ctx context.Context, g *grpc.Server, apply func(turn int)) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	failed := make(chan error, 1)
	go func() { failed <- g.Serve(listener) }()
	defer g.Stop()
	fmt.Println(listener.Addr())
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var turn int
		if n, _ := fmt.Sscanf(lines.Text(), "change %d", &turn); n == 1 {
			at := time.Now()
			apply(turn)
			fmt.Println(at.UnixNano())
			continue
		}
		cpu, rss := usage()
		fmt.Println(int64(cpu), rss)
	}
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}

// usage is the CPU time used so far and the largest resident size in KiB.
func usage() (cpu time.Duration, rss int64) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, 0
	}
	// Maxrss would include what the parent had before exec.
	if status, err := os.ReadFile("/proc/self/status"); err == nil {
		rss, _ = kibibytes(status, "VmHWM")
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), rss
}

// kibibytes is a size in the text of /proc/PID/status.
func kibibytes(status []byte, name string) (size int64, err error) {
	_, after, _ := strings.Cut(string(status), "\n"+name+":")
	if _, err := fmt.Sscan(after, &size); err != nil {
		return 0, fmt.Errorf("reading %s of a process: %w", name, err)
	}
	return size, nil
}

// child is the parent's side of a server.
type child struct {
	command *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
	address string
}

func startServer(ctx context.Context, role string, services int, recording string) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := &child{command: exec.CommandContext(ctx, self, "-role", role, "-services", fmt.Sprint(services), "-recording", recording)}
	c.command.Stderr = os.Stderr
	out, errOut := c.command.StdoutPipe()
	in, errIn := c.command.StdinPipe()
	if err := errors.Join(errOut, errIn, c.command.Start()); err != nil {
		return nil, fmt.Errorf("starting %s: %w", role, err)
	}
	c.in, c.out = in, bufio.NewReader(out)
	line, err := c.out.ReadString('\n')
	c.address = strings.TrimSpace(line)
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", role, err)
	}
	return c, nil
}

func (c *child) ask(format string, args ...any) (string, error) {
	if _, err := fmt.Fprintf(c.in, format+"\n", args...); err != nil {
		return "", err
	}
	return c.out.ReadString('\n')
}

func (c *child) change(turn int) (time.Time, error) {
	line, err := c.ask("change %d", turn)
	if err != nil {
		return time.Time{}, err
	}
	at, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
	return time.Unix(0, at), err
}

func (c *child) usage() (cpu time.Duration, rss int64, err error) {
	line, err := c.ask("usage")
	if err != nil {
		return 0, 0, err
	}
	var nanos int64
	_, err = fmt.Sscan(line, &nanos, &rss)
	return time.Duration(nanos), rss, err
}

func (c *child) stop() error {
	return errors.Join(c.in.Close(), c.command.Wait())
}
