package seal

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestR12LeftoversBesideTheKeyFile: a half-written key file of a crash goes when the
// keys are opened next; one that another hub may be writing stays.
func TestR12LeftoversBesideTheKeyFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "seal.key")
	old, young, other := filepath.Join(dir, ".new-1"), filepath.Join(dir, ".new-2"), filepath.Join(dir, "new-1")
	for _, name := range []string{old, young, other} {
		if err := os.WriteFile(name, []byte("a key"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	hourAgo := time.Now().Add(-time.Hour)
	for _, name := range []string{old, other} {
		if err := os.Chtimes(name, hourAgo, hourAgo); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := OpenKeys(path, true); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(old); !os.IsNotExist(err) {
		t.Errorf("the leftover is there: %v", err)
	}
	for _, name := range []string{young, other, path} {
		if _, err := os.Stat(name); err != nil {
			t.Errorf("%s is gone: %v", filepath.Base(name), err)
		}
	}
}
