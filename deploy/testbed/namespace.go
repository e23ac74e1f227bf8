package testbed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// A Namespace is a network namespace without a name on the machine: it goes
// when the test ends, or with the test process. A nil Namespace is the network
// of the test itself; Run, Listen, DialContext and Get work there, too.
type Namespace struct {
	t     testing.TB
	name  string
	file  *os.File
	links []link
}

// NewNamespace makes a namespace with nothing but its loopback. It ends the
// test if the right to do so is missing.
func NewNamespace(t testing.TB, name string) *Namespace {
	t.Helper()
	Needs(t, "a network namespace")
	file, err := unshareNetwork()
	if err != nil {
		t.Fatalf("making the network namespace %s: %v; this needs CAP_SYS_ADMIN and CAP_NET_ADMIN: run the tests as root", name, err)
	}
	t.Cleanup(func() { file.Close() })
	n := &Namespace{t: t, name: name, file: file}
	n.Exec("ip", "link", "set", "lo", "up")
	n.Sysctl("net/ipv4/ip_unprivileged_port_start", "0")
	return n
}

func (n *Namespace) String() string {
	if n == nil {
		return "the network of the test"
	}
	return n.name
}

// Path names the namespace for nsenter --net=PATH while the test runs.
func (n *Namespace) Path() string {
	return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), n.file.Fd())
}

// Run calls do on a thread inside the namespace. Sockets and processes that do
// makes itself, not in other goroutines, belong to the namespace for good.
func (n *Namespace) Run(do func() error) error {
	if n == nil {
		return do()
	}
	result := make(chan error, 1)
	go func() { result <- onThread(func() error { return n.enter(do) }) }()
	return <-result
}

func (n *Namespace) enter(do func() error) error {
	if err := setns(n.file); err != nil {
		return fmt.Errorf("entering the network namespace %s: %w", n.name, err)
	}
	return do()
}

// Listen listens on a literal address inside the namespace for this process.
func (n *Namespace) Listen(address string) (net.Listener, error) {
	var listener net.Listener
	err := n.Run(func() (err error) {
		listener, err = net.Listen("tcp", address)
		return err
	})
	return listener, err
}

// DialContext dials a literal address from inside the namespace.
func (n *Namespace) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	var conn net.Conn
	err := n.Run(func() (err error) {
		conn, err = new(net.Dialer).DialContext(ctx, network, address)
		return err
	})
	return conn, err
}

// Exec runs a command inside the namespace, returns what it printed and ends
// the test if it fails.
func (n *Namespace) Exec(argv ...string) string {
	n.t.Helper()
	return n.exec("", nil, argv...)
}

func (n *Namespace) exec(input string, files []*os.File, argv ...string) string {
	n.t.Helper()
	var printed bytes.Buffer
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), &printed, &printed
	cmd.ExtraFiles = files
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	err := n.Run(cmd.Run)
	if errors.Is(err, exec.ErrNotFound) {
		n.t.Fatalf("running %s: %v; run make tools as root, or install iproute2 and iptables", argv[0], err)
	}
	if err != nil {
		n.t.Fatalf("running %s in %s: %v\n%s", strings.Join(argv, " "), n, err, printed.Bytes())
	}
	return printed.String()
}

// Sysctl sets a value below /proc/sys of the namespace, named with slashes.
func (n *Namespace) Sysctl(name, value string) {
	n.t.Helper()
	path := filepath.Join("/proc/sys", name)
	if err := n.Run(func() error { return os.WriteFile(path, []byte(value), 0o644) }); err != nil {
		n.t.Fatalf("setting %s in %s: %v", name, n, err)
	}
}

// Address returns the first address that the namespace has in a Network.
func (n *Namespace) Address() netip.Addr {
	n.t.Helper()
	if len(n.links) == 0 {
		n.t.Fatalf("the network namespace %s has joined no network", n.name)
	}
	return n.links[0].address
}

// place returns the address to serve on: the wanted one, else the first of the
// namespace, else loopback.
func (n *Namespace) place(wanted netip.Addr) netip.Addr {
	switch {
	case wanted.IsValid():
		return wanted
	case n != nil && len(n.links) > 0:
		return n.links[0].address
	default:
		return netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
}

// unshareNetwork makes a new namespace, which lives as long as the file.
func unshareNetwork() (*os.File, error) {
	var file *os.File
	result := make(chan error, 1)
	go func() {
		result <- onThread(func() (err error) {
			err = syscall.Unshare(syscall.CLONE_NEWNET)
			if err != nil {
				return os.NewSyscallError("unshare", err)
			}
			file, err = os.Open("/proc/thread-self/ns/net")
			return err
		})
	}()
	return file, <-result
}

// onThread calls do locked to a thread and brings the thread back to its
// network namespace. A thread that cannot go back ends with its goroutine.
func onThread(do func() error) error {
	runtime.LockOSThread()
	home, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		runtime.UnlockOSThread()
		return err
	}
	defer home.Close()
	err = do()
	if setns(home) == nil {
		runtime.UnlockOSThread()
	}
	return err
}

func setns(file *os.File) error {
	number, known := map[string]uintptr{"amd64": 308, "arm64": 268}[runtime.GOARCH]
	if !known {
		return errors.New("the number of setns is not known for " + runtime.GOARCH)
	}
	if _, _, errno := syscall.Syscall(number, file.Fd(), syscall.CLONE_NEWNET, 0); errno != 0 {
		return os.NewSyscallError("setns", errno)
	}
	return nil
}
