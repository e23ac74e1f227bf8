package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"isthmus.dev/isthmus/internal/cli/cmdutil"
)

// ca runs a ca command against the program's hub.
func (p *program) ca(t *testing.T, args ...string) (code int, out, errText string) {
	t.Helper()
	return command(t, append([]string{"ca"}, append(args, "--server", "unix:"+filepath.Join(p.dir, "graphql"))...)...)
}

// TestTheAuthorityIsShownAndRotated by the command line.
func TestTheAuthorityIsShownAndRotated(t *testing.T) {
	p := startProgram(t)
	code, before, errText := p.ca(t, "show")
	if code != cmdutil.ExitDone || !strings.Contains(before, "signs:        yes") || strings.Count(before, "SIGNING") != 1 ||
		strings.Count(before, "cluster.local") != 2 {
		t.Fatalf("exit %d with\n%s%s", code, before, errText)
	}
	code, out, errText := p.ca(t, "rotate")
	if code != cmdutil.ExitDone || !strings.Contains(out, "is trusted and signs from ") {
		t.Fatalf("exit %d with %q %q", code, out, errText)
	}
	_, after, _ := p.ca(t, "show")
	if strings.Count(after, "SIGNING") != 1 || strings.Count(after, "WAITING") != 1 || strings.Count(after, "cluster.local") != 3 {
		t.Errorf("after the rotation it shows\n%s", after)
	}
	if code, _, errText := p.ca(t, "rotate"); code != cmdutil.ExitFailed || !strings.Contains(errText, "SIGNER_ROTATING") {
		t.Errorf("a second rotation: exit %d with %q", code, errText)
	}
	p.at().awaitMetrics(t, `isthmus_authority_rotations_total{outcome="done"} 1`, `isthmus_authority_rotations_total{outcome="refused"} 1`)
}

// TestBE3AHubWhoseAuthorityDoesNotOpen starts and serves, signs nothing, says so
// wherever one looks, and signs again with the right key file.
func TestBE3AHubWhoseAuthorityDoesNotOpen(t *testing.T) {
	t.Parallel()
	p := startProgram(t)
	p.signal(t)
	p.wantExit(t, patience, cmdutil.ExitDone)
	key := filepath.Join(p.dir, "data", "seal.key")
	right, err := os.ReadFile(key)
	if err != nil {
		t.Fatal(err)
	}
	other := startProgram(t)
	other.signal(t)
	other.wantExit(t, patience, cmdutil.ExitDone)
	wrong, err := os.ReadFile(filepath.Join(other.dir, "data", "seal.key"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, key, string(wrong))
	p = startProgramIn(t, p.dir)
	p.at().awaitPhase(t, "c1", "READY")
	const why = "give the hub the key file with which it was sealed"
	if status, body, err := p.at().get("/readyz"); err != nil || status != 200 ||
		!strings.Contains(body, "ok\nwarning: no certificates are signed: ") || !strings.Contains(body, why) {
		t.Errorf("/readyz answers %d %q, %v", status, body, err)
	}
	if _, out, _ := p.ca(t, "show"); !strings.Contains(out, "signs:        no") || !strings.Contains(out, why) ||
		!strings.Contains(out, "UNUSABLE") {
		t.Errorf("it shows\n%s", out)
	}
	if code, _, errText := p.ca(t, "rotate"); code != cmdutil.ExitFailed || !strings.Contains(errText, "SIGNER_UNUSABLE") ||
		!strings.Contains(errText, why) {
		t.Errorf("rotating: exit %d with %q", code, errText)
	}
	p.at().awaitMetrics(t, "isthmus_authority_trouble 1")
	if _, page, err := p.at().get("/metrics"); err != nil || strings.Contains(page, "\nisthmus_authority_signer_expiry_timestamp_seconds ") {
		t.Errorf("nobody signs, and there is an expiry, %v", err)
	}
	if !strings.Contains(p.log.String(), why) {
		t.Errorf("the log does not say why:\n%s", p.log.String())
	}
	write(t, key, string(right))
	p.at().await(t, "the hub to sign again", func() error {
		_, out, _ := p.ca(t, "show")
		if !strings.Contains(out, "signs:        yes") || strings.Contains(out, "message") {
			return fmt.Errorf("it shows %s", out)
		}
		return nil
	})
	p.at().awaitMetrics(t, "isthmus_authority_trouble 0", "isthmus_authority_signer_expiry_timestamp_seconds ")
	if _, body, _ := p.at().get("/readyz"); body != "ok\n" {
		t.Errorf("/readyz answers %q", body)
	}
}
