package testbed

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// Ports are taken from a range below the one that the kernel gives to clients.
const (
	firstPort = 20000
	portCount = 10000
)

// FreePort returns a TCP and UDP port of address in a namespace (nil: the
// network of the test) that no other test process of this user gets until this
// test ends.
func FreePort(t testing.TB, namespace *Namespace, address netip.Addr) int {
	t.Helper()
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("isthmus-ports-%d", os.Getuid()))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatalf("finding a free port: %v", err)
	}
	for range 200 {
		port := firstPort + rand.IntN(portCount)
		claim, err := claimPort(filepath.Join(dir, fmt.Sprint(port)))
		if err != nil {
			continue
		}
		if namespace.Run(func() error { return tryPort(address, port) }) != nil {
			claim.Close()
			continue
		}
		t.Cleanup(func() { claim.Close() })
		return port
	}
	t.Fatalf("finding a free port on %s: all are taken", address)
	return 0
}

// claimPort locks the file of a port; the lock ends with the file or the process.
func claimPort(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

func tryPort(address netip.Addr, port int) error {
	to := netip.AddrPortFrom(address, uint16(port)).String()
	listener, err := net.Listen("tcp", to)
	if err != nil {
		return err
	}
	defer listener.Close()
	packets, err := net.ListenPacket("udp", to)
	if err != nil {
		return err
	}
	return packets.Close()
}
