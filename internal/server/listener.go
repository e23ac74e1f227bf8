// Package server opens the hub's listeners, keeps their certificates current, and ends connections in order.
package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// ListenOptions say what an address is for.
type ListenOptions struct {
	Flag         string // the flag that gave the address, named in every error, for example --xds-addr
	LoopbackOnly bool   // --dev and everything plaintext: loopback addresses and unix sockets only (S33)
	AnyPort      bool   // port 0 is accepted: the system chooses
}

const (
	unixPrefix  = "unix:"
	maxUnixPath = 107
)

// Listen opens HOST:PORT or unix:PATH. HOST is an IP address, localhost or, for every address, empty. A unix socket has mode
// 0600; its folder is made with mode 0700 when it is missing; a socket without a listener is replaced. The file goes
// when the listener is closed.
func Listen(ctx context.Context, addr string, options ListenOptions) (net.Listener, error) {
	var listener net.Listener
	var err error
	if path, ok := strings.CutPrefix(addr, unixPrefix); ok {
		listener, err = listenUnix(ctx, path)
	} else {
		listener, err = listenTCP(ctx, addr, options)
	}
	if err != nil {
		return nil, fmt.Errorf("%s %q: %w", options.Flag, addr, err)
	}
	return listener, nil
}

func listenTCP(ctx context.Context, addr string, options ListenOptions) (net.Listener, error) {
	host, port, err := splitAddress(addr, options.AnyPort)
	if err != nil {
		return nil, err
	}
	if options.LoopbackOnly && !loopback(host) {
		return nil,
			errors.New("plaintext is accepted only on a loopback address or unix:PATH; use 127.0.0.1, or set --tls-cert, --tls-key and --tls-client-ca instead of --dev")
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		return nil, bindError(err)
	}
	return listener, nil
}

func splitAddress(addr string, anyPort bool) (string, int, error) {
	host, text, err := net.SplitHostPort(addr)
	if err != nil {
		return "", 0, errors.New("is not an address; write HOST:PORT, [IPV6]:PORT or unix:PATH")
	}
	port, err := strconv.Atoi(text)
	if err != nil || port < 0 || port > 65535 || port == 0 && !anyPort {
		return "", 0, errors.New("the port must be a number from 1 to 65535")
	}
	if _, err := netip.ParseAddr(host); err != nil && host != "" && host != "localhost" {
		return "", 0, errors.New("the host must be an IP address of this machine or localhost")
	}
	if host == "localhost" {
		host = "127.0.0.1"
	}
	return host, port, nil
}

func loopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return err == nil && address.Unmap().IsLoopback()
}

// bindError says in our words what can be done; the system's words follow for everything else.
func bindError(err error) error {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return errors.New("the address is in use by another program; choose another port or stop it")
	case errors.Is(err, syscall.EACCES):
		return errors.New("this user may not use the address; choose a port from 1024 up")
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return errors.New("the address is not one of this machine's")
	}
	return fmt.Errorf("listening: %w", err)
}

func listenUnix(ctx context.Context, path string) (net.Listener, error) {
	if path == "" || len(path) > maxUnixPath || strings.ContainsRune(path, 0) || strings.HasPrefix(path, "@") {
		return nil, fmt.Errorf("the path of a unix socket has 1 to %d bytes and is a path of the file system", maxUnixPath)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("making the folder of the socket: %w", err)
	}
	if err := clearStale(ctx, path); err != nil {
		return nil, err
	}
	config := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		// The mode of an unbound socket becomes that of its file, so that it is never open to others.
		return raw.Control(func(fd uintptr) { _ = syscall.Fchmod(int(fd), 0o600) })
	}}
	listener, err := config.Listen(ctx, "unix", path)
	if err != nil {
		return nil, bindError(err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		_ = listener.Close()
		return nil, fmt.Errorf("protecting the socket: %w", err)
	}
	return listener, nil
}

// clearStale removes a socket without a listener, and nothing else.
func clearStale(ctx context.Context, path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("looking at the socket: %w", err)
	}
	if info.Mode()&os.ModeSocket == 0 {
		return errors.New("the path exists and is not a socket; remove it or choose another path")
	}
	connection, err := new(net.Dialer).DialContext(ctx, "unix", path)
	switch {
	case err == nil:
		_ = connection.Close()
		return errors.New("another program listens on the socket; stop it or choose another path")
	case !errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("asking whether the socket is in use: %w", err)
	}
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("removing the stale socket: %w", err)
	}
	return nil
}
