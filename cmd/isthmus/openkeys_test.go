package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/internal/cli/cmdutil"
)

// TestBY6KeysThatOthersCanReadAreRefused, and those that belong to others: the hub's own ends the start, a
// gateway's is not used and shown as a problem.
func TestBY6KeysThatOthersCanReadAreRefused(t *testing.T) {
	dir, ca := shortDir(t), testbed.NewAuthority(t, "ca")
	flags := secureFlags(t, dir, ca)
	if err := os.Chmod(filepath.Join(dir, "key"), 0o644); err != nil {
		t.Fatal(err)
	}
	code, _, errText := command(t, append([]string{"serve", "--data-dir", filepath.Join(dir, "data")}, flags...)...)
	if code != cmdutil.ExitFailed || !strings.Contains(errText, "--tls-key") || !strings.Contains(errText, "0600") ||
		strings.Contains(errText, "BEGIN") {
		t.Errorf("exit %d with %q", code, errText)
	}
	write(t, filepath.Join(dir, "key"), "") // to be rewritten
	secureFlags(t, dir, ca)
	if err := os.Chmod(filepath.Join(dir, "key"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(filepath.Join(dir, "key"), 1000, -1); err != nil {
		t.Fatal(err)
	}
	code, _, errText = command(t, append([]string{"serve", "--data-dir", filepath.Join(dir, "data")}, flags...)...)
	if code != cmdutil.ExitFailed || !strings.Contains(errText, "--tls-key") ||
		!strings.Contains(errText, "belongs to another user (number 1000)") {
		t.Errorf("of another user: exit %d with %q", code, errText)
	}
	secrets := filepath.Join(dir, "secrets")
	if err := os.MkdirAll(filepath.Join(secrets, "edge", "web"), 0o700); err != nil {
		t.Fatal(err)
	}
	cert, key := ca.Issue(testbed.Subject{Name: "web"})
	write(t, filepath.Join(secrets, "edge", "web", "tls.crt"), string(cert))
	open := write(t, filepath.Join(secrets, "edge", "web", "tls.key"), string(key))
	if err := os.Chmod(open, 0o604); err != nil {
		t.Fatal(err)
	}
	h := startHub(t, "--secret-dir", secrets)
	says := func(refused bool) func() error {
		return func() error {
			c, err := h.cluster("hub")
			found := false
			for _, p := range c.Problems.Nodes {
				found = found || p.Code == "SECRET_UNUSABLE" && strings.Contains(p.Message, "0604") && strings.Contains(p.Message, "0600")
			}
			if err == nil && found != refused {
				err = fmt.Errorf("its problems are %+v", c.Problems.Nodes)
			}
			return err
		}
	}
	h.await(t, "the open key to be told", says(true))
	if err := os.Chmod(open, 0o600); err != nil {
		t.Fatal(err)
	}
	h.await(t, "the closed key to be taken", says(false))
	if strings.Contains(h.log.String(), "BEGIN") {
		t.Error("the log holds key material")
	}
}
