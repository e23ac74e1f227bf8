package server

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func listen(t *testing.T, addr string, options ListenOptions) (net.Listener, error) {
	t.Helper()
	options.Flag = "--xds-addr"
	listener, err := Listen(t.Context(), addr, options)
	if err == nil {
		t.Cleanup(func() { listener.Close() })
	}
	return listener, err
}

// TestBF02Addresses wants each error to name the flag and to say what is wrong.
func TestBF02Addresses(t *testing.T) {
	taken, err := listen(t, "127.0.0.1:0", ListenOptions{AnyPort: true})
	if err != nil {
		t.Fatal(err)
	}
	for addr, want := range map[string]string{
		"127.0.0.1:0":                       "1 to 65535",
		"127.0.0.1:70000":                   "1 to 65535",
		"127.0.0.1:-1":                      "1 to 65535",
		"127.0.0.1:http":                    "1 to 65535",
		"127.0.0.1":                         "HOST:PORT",
		"":                                  "HOST:PORT",
		"::1:80":                            "HOST:PORT",
		"example.com:80":                    "IP address of this machine",
		"203.0.113.7:15010":                 "not one of this machine's",
		taken.Addr().String():               "in use",
		"unix:":                             "1 to 107 bytes",
		"unix:@abstract":                    "1 to 107 bytes",
		"unix:/" + strings.Repeat("x", 120): "1 to 107 bytes",
	} {
		_, err := listen(t, addr, ListenOptions{})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "--xds-addr ") {
			t.Errorf("%q: got %v, want %q", addr, err, want)
		}
	}
}

// TestBF03DevIsLoopbackOnly: plaintext never leaves the machine.
func TestBF03DevIsLoopbackOnly(t *testing.T) {
	for _, addr := range []string{"0.0.0.0:15010", ":15010", "[::]:15010", "10.1.2.3:15010", "[::ffff:10.0.0.1]:15010"} {
		if _, err := listen(t, addr, ListenOptions{LoopbackOnly: true}); err == nil || !strings.Contains(err.Error(), "loopback") ||
			!strings.Contains(err.Error(), "--dev") {
			t.Errorf("%s: got %v", addr, err)
		}
	}
	for _, addr := range []string{"127.0.0.1:0", "localhost:0", "127.9.9.9:0"} {
		if _, err := listen(t, addr, ListenOptions{LoopbackOnly: true, AnyPort: true}); err != nil {
			t.Errorf("%s: %v", addr, err)
		}
	}
}

func TestUnixSocketIsPrivate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run", "xds.sock")
	if _, err := listen(t, "unix:"+path, ListenOptions{LoopbackOnly: true}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]os.FileMode{path: os.ModeSocket | 0o600, filepath.Dir(path): os.ModeDir | 0o700} {
		info, err := os.Stat(name)
		if err != nil || info.Mode() != want {
			t.Errorf("%s: got %v, %v; want %v", name, info, err, want)
		}
	}
	connection, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	connection.Close()
}

func TestUnixSocketReplacesOnlyAStaleOne(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	first, err := listen(t, "unix:"+path, ListenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := listen(t, "unix:"+path, ListenOptions{}); err == nil || !strings.Contains(err.Error(), "another program listens") {
		t.Errorf("in use: got %v", err)
	}
	first.(*net.UnixListener).SetUnlinkOnClose(false)
	first.Close()
	second, err := listen(t, "unix:"+path, ListenOptions{})
	if err != nil {
		t.Fatalf("stale: %v", err)
	}
	second.Close()
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is left behind: %v", err)
	}
	if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := listen(t, "unix:"+path, ListenOptions{}); err == nil || !strings.Contains(err.Error(), "not a socket") {
		t.Errorf("a file: got %v", err)
	}
	if content, err := os.ReadFile(path); err != nil || string(content) != "x" {
		t.Errorf("the file was touched: %v", err)
	}
}

func TestPrivilegedPortErrorIsClear(t *testing.T) {
	err := bindError(fmt.Errorf("listen: %w", os.NewSyscallError("bind", syscall.EACCES)))
	if !strings.Contains(err.Error(), "from 1024 up") {
		t.Errorf("got %v", err)
	}
}
