package main

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/internal/cli/cmdutil"
	"isthmus.dev/isthmus/internal/version"
)

func TestVersion(t *testing.T) {
	code, out, errText := command(t, "version")
	if code != cmdutil.ExitDone || !strings.HasPrefix(out, "isthmus "+version.Version) || errText != "" {
		t.Errorf("exit %d with %q and %q", code, out, errText)
	}
}

func TestBF1WrongUsageIsOneLineAndExit2(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"unknown command": {[]string{"frobnicate"}, "frobnicate"},
		"unknown flag":    {[]string{"serve", "--dev", "--frobnicate"}, "--frobnicate"},
		"mistyped flag": {
			[]string{"serve", "--dev", "--grapql-addr", "unix:a"},
			`(did you mean "--graphql-addr"?); see "isthmus serve --help"`,
		},
		"flag given twice":       {[]string{"serve", "--dev", "--xds-addr", "unix:a", "--xds-addr", "unix:b"}, "given twice"},
		"argument":               {[]string{"serve", "extra"}, "extra"},
		"flag without value":     {[]string{"serve", "--config"}, "--config"},
		"dev and TLS":            {[]string{"serve", "--dev", "--tls-cert", "x"}, "--dev"},
		"no TLS":                 {[]string{"serve"}, "--tls-cert, --tls-key, --tls-client-ca"},
		"one TLS flag missing":   {[]string{"serve", "--tls-cert", "a", "--tls-key", "b"}, "--tls-client-ca"},
		"equal addresses":        {[]string{"serve", "--dev", "--xds-addr", "127.0.0.1:8080"}, "--graphql-addr and --xds-addr"},
		"etcd that is not a URL": {[]string{"serve", "--dev", "--etcd-endpoints", "etcd"}, "--etcd-endpoints"},
		"plaintext etcd abroad":  {[]string{"serve", "--dev", "--etcd-endpoints", "http://192.0.2.1:2379"}, "https"},
		"etcd with a password":   {[]string{"serve", "--dev", "--etcd-endpoints", "https://u:hidden-word@192.0.2.1:2379"}, "without a user"},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, errText := command(t, c.args...)
			if code != cmdutil.ExitUsage || out != "" {
				t.Errorf("exit %d, out %q", code, out)
			}
			if !strings.Contains(errText, c.want) || strings.Count(errText, "\n") != 1 || strings.Contains(errText, "hidden-word") {
				t.Errorf("it says %q, want one line with %q", errText, c.want)
			}
		})
	}
}

func TestBF2BadAddressesNameTheirFlag(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for name, address := range map[string]string{
		"in use":      taken.Addr().String(),
		"port 0":      "127.0.0.1:0",
		"port 70000":  "127.0.0.1:70000",
		"not local":   "192.0.2.7:8080",
		"every (BF3)": "0.0.0.0:18093",
		"no address":  "eight",
	} {
		t.Run(name, func(t *testing.T) {
			dir := shortDir(t)
			for _, flag := range []string{"--graphql-addr", "--xds-addr", "--health-addr"} {
				args := sockets(dir)
				for i := range args {
					if args[i] == flag {
						args[i+1] = address
					}
				}
				code, _, errText := command(t, args...)
				if code == cmdutil.ExitDone || !strings.Contains(errText, flag) {
					t.Errorf("exit %d with %q, want one that names %s", code, errText, flag)
				}
			}
		})
	}
}

func TestBF5BadDataFolders(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(t *testing.T, path string)
		want  string
	}{
		"a file": {func(t *testing.T, path string) { write(t, path, "x") }, "is not a folder"},
		"a symbolic link": {func(t *testing.T, path string) {
			if err := os.Symlink(t.TempDir(), path); err != nil {
				t.Fatal(err)
			}
		}, "symbolic link"},
		"open to others": {func(t *testing.T, path string) {
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(path, 0o777); err != nil {
				t.Fatal(err)
			}
		}, "other users can write"},
		"newer": {func(t *testing.T, path string) {
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(path, "format"), "99\n")
		}, "newer"},
		"below a file": {func(t *testing.T, path string) { write(t, filepath.Dir(path)+"/x", "x") }, "--data-dir"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := shortDir(t)
			args := sockets(dir)
			path := filepath.Join(dir, "data")
			c.spoil(t, path)
			if name == "below a file" {
				args[3] = filepath.Join(dir, "x", "data")
			}
			code, _, errText := command(t, args...)
			if code != cmdutil.ExitFailed || !strings.Contains(errText, "--data-dir") || !strings.Contains(errText, c.want) {
				t.Errorf("exit %d with %q, want %q", code, errText, c.want)
			}
		})
	}
}

func TestF30SecondHubOnOneFolderEndsSoon(t *testing.T) {
	h := startHub(t)
	args := sockets(shortDir(t))
	args[3] = filepath.Join(h.dir, "data")
	testbed.Within(t, 2*time.Second, func() time.Duration {
		began := time.Now()
		code, _, errText := command(t, args...)
		if code != cmdutil.ExitFailed || !strings.Contains(errText, "another isthmus") || !strings.Contains(errText, args[3]) {
			t.Errorf("exit %d with %q", code, errText)
		}
		return time.Since(began)
	})
}

func TestUnreachableEtcdIsNamed(t *testing.T) {
	t.Parallel()
	code, _, errText := command(t, append(sockets(shortDir(t)), "--etcd-endpoints", "http://127.0.0.1:1")...)
	if code != cmdutil.ExitFailed || !strings.Contains(errText, "127.0.0.1:1: no answer within 5s; check the endpoints") {
		t.Errorf("exit %d with %q", code, errText)
	}
}
