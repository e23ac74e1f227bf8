package durable_test

import (
	"os"
	"path/filepath"
	"testing"

	"isthmus.dev/isthmus/internal/durable"
)

func TestWriteFileReplacesTheWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "name")
	for _, content := range []string{"a long first content", "short", ""} {
		if err := durable.WriteFile(path, []byte(content)); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != content {
			t.Errorf("the file has %q, %v, want %q", got, err, content)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("its mode is %v, %v", info.Mode(), err)
	}
	if left, err := filepath.Glob(path + "?*"); err != nil || len(left) > 0 {
		t.Errorf("beside it are %v, %v", left, err)
	}
}

func TestWriteFileLeavesTheOldOneWhenItFails(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "name")
	if err := os.Mkdir(path+".new", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := durable.WriteFile(path, []byte("new")); err == nil {
		t.Error("a file that cannot be written is not an error")
	}
	if got, _ := os.ReadFile(path); string(got) != "old" {
		t.Errorf("the file has %q", got)
	}
}
