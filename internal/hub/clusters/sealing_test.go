package clusters

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"isthmus.dev/isthmus/internal/seal"
)

// TestF20UnreadableKeyFileIsLoggedOnce: a key file that stays unreadable is logged once,
// and so is its return.
func TestF20UnreadableKeyFileIsLoggedOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "seal.key")
	keys, err := seal.OpenKeys(path, true)
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	s := &sealing{keys: keys, logger: slog.New(slog.NewTextHandler(&log, nil))}
	for range 2 {
		if err := os.Rename(path, path+".away"); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			s.reload()
		}
		if err := os.Rename(path+".away", path); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			s.reload()
		}
	}
	if lost, back := strings.Count(log.String(), "cannot be read"), strings.Count(log.String(), "can be read again"); lost != 2 || back != 2 {
		t.Errorf("it is logged %d and %d times, want 2 each:\n%s", lost, back, log.String())
	}
}
