package datadir

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestR12LeftoversAreRemovedAtStart: what a crash left beside files that were being
// replaced may hold keys.
func TestR12LeftoversAreRemovedAtStart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data[1]")
	gone := []string{".new-123", "last-known-good/.new-456", "token-keys/.new-789"}
	stays := []string{"seal.key", "last-known-good/east.json", "news", ".new-folder/kept"}
	for _, name := range append(gone, stays...) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("a key"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	for _, name := range gone {
		if _, err := os.Stat(filepath.Join(dir, name)); !os.IsNotExist(err) {
			t.Errorf("%s is left: %v", name, err)
		}
	}
	for _, name := range stays {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Errorf("%s is gone: %v", name, err)
		}
	}
}

// TestWhatIsNotAFolderIsNamed: the error says which path to look at.
func TestWhatIsNotAFolderIsNamed(t *testing.T) {
	dir := t.TempDir()
	keys := filepath.Join(dir, "token-keys")
	if err := os.WriteFile(keys, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := Open(dir)
	if err == nil {
		_ = d.Close()
	}
	if err == nil || !strings.Contains(err.Error(), keys) {
		t.Errorf("the error is %v", err)
	}
}
