package etcd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestR10DamagedLogOfWrites: a log of writes with bytes that are not etcd's gives no raw message of etcd's: the error names the
// folder and says what to do.
func TestR10DamagedLogOfWrites(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "etcd")
	s, err := Open(t.Context(), Options{DataDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	logs, err := filepath.Glob(filepath.Join(dir, "member", "wal", "*.wal"))
	if err != nil || len(logs) == 0 {
		t.Fatalf("found %q, %v", logs, err)
	}
	text, err := os.ReadFile(logs[0])
	if err != nil {
		t.Fatal(err)
	}
	for i := range 64 {
		text[64+i] ^= 0xff
	}
	if err := os.WriteFile(logs[0], text, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err = Open(t.Context(), Options{DataDir: dir})
	if err == nil {
		s.Close()
		t.Fatal("a store with a damaged log opens")
	}
	for _, want := range []string{dir, "is damaged", "restore a backup"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q: %v", want, err)
		}
	}
}

// TestR12CloseEnds: the embedded etcd waits for its disk when it ends; the hub does not wait for ever.
func TestR12CloseEnds(t *testing.T) {
	never := make(chan struct{})
	defer close(never)
	if err := ends(func() { <-never }, time.Millisecond); err == nil || !strings.Contains(err.Error(), "disk") {
		t.Errorf("a close that hangs: %v", err)
	}
	if err := ends(func() {}, time.Hour); err != nil {
		t.Errorf("one that ends: %v", err)
	}
}
