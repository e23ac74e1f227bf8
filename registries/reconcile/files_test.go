package reconcile

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
)

// TestAChangedKubeconfigThatIsNotUsedStaysReported: until another content is used, or the used one is
// back, the error stays; a write that goes on, or a missing file, is not a recovery.
func TestAChangedKubeconfigThatIsNotUsedStaysReported(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubeconfig")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("used")
	var used []string
	bad := errors.New("the section is wrong")
	f := Kubeconfigs([]*Kubeconfig{{ID: "c1", Path: path, Claim: func(digest string) (Claim, error) {
		data, err := os.ReadFile(path)
		if err != nil || string(data) != "good" {
			return Claim{}, bad
		}
		used = append(used, digest)
		return Claim{}, nil
	}}})[0]
	r := New(Options{Logger: slog.New(slog.DiscardHandler)})
	steps := []struct {
		text   string // empty: the file is left alone
		failed bool
	}{
		{"", false},
		{"bad", false}, // it may still be written to
		{"", true},
		{"worse", true},
		{"", true},
		{"used", true},
		{"", false},
		{"bad", false},
		{"", true},
		{"good", true},
		{"", false},
		{"", false},
	}
	for i, step := range steps {
		if step.text != "" {
			write(step.text)
		}
		if err := r.reload(f); errors.Is(err, bad) != step.failed {
			t.Errorf("step %d: %v, want an error: %t", i, err, step.failed)
		}
	}
	if len(used) != 1 {
		t.Errorf("%d contents were used, want 1", len(used))
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := r.reload(f); err != nil {
		t.Errorf("a missing file: %v", err)
	}
}
